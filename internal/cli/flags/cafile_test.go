package flags

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// tlsRegistry serves a registry with TLS on the loopback interface, and returns its
// host and the file of its authority.
func tlsRegistry(t *testing.T) (host, file string) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	file = filepath.Join(t.TempDir(), "ca.pem")
	raw := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(server.URL, "https://"), file
}

func ping(t *testing.T, f RegistryFlags, host string, registries ...string) error {
	t.Helper()
	opts, err := f.Options(t.Context(), oci.Limits{}, nil, registries...)
	if err != nil {
		t.Fatal(err)
	}
	opts.Attempts = 1
	client := remote.New(opts)
	defer client.Close()
	return client.Ping(t.Context(), host)
}

func TestCAFileWithoutHost(t *testing.T) {
	secure, file := tlsRegistry(t)
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	plain := strings.TrimPrefix(server.URL, "http://")
	bare := RegistryFlags{CAFile: []string{file}}
	if err := ping(t, bare, secure, secure); err != nil {
		t.Errorf("the only registry of a command: %v", err)
	}
	// `xpkg copy` names two registries; the plain one stays plain.
	if err := ping(t, bare, plain, "registry.example.com", plain); err != nil {
		t.Errorf("a plain registry beside another one: %v", err)
	}
	// The manager names none.
	opts, err := bare.Options(t.Context(), oci.Limits{}, nil)
	if err != nil || opts.RootCAs == nil || len(opts.Hosts) != 0 {
		t.Errorf("without a registry: %+v, %v", opts, err)
	}
	both := RegistryFlags{CAFile: []string{secure + "=" + file}}
	for _, host := range []string{secure, plain} {
		if err := ping(t, both, host, secure, plain); err != nil {
			t.Errorf("with HOST=FILE: %v", err)
		}
	}
}

func TestErrorOfTLSRegistryOnLoopbackNamesTheFlag(t *testing.T) {
	host, _ := tlsRegistry(t)
	err := ping(t, RegistryFlags{}, host, host)
	if err == nil || !strings.Contains(err.Error(), "--ca-file "+host+"=FILE") {
		t.Errorf("got %v", err)
	}
}
