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
	bare := RegistryFlags{TrustFlags: TrustFlags{CAFile: []string{file}}}
	// The number of registries that a command names does not matter.
	for _, named := range [][]string{nil, {plain}, {"registry.example.com", plain}, {plain, plain}} {
		if err := ping(t, bare, plain, named...); err != nil {
			t.Errorf("a plain registry, with the registries %q: %v", named, err)
		}
		opts, err := bare.Options(t.Context(), oci.Limits{}, nil, named...)
		if err != nil || opts.RootCAs == nil || len(opts.Hosts) != 0 {
			t.Errorf("with the registries %q: %+v, %v", named, opts, err)
		}
	}
	both := RegistryFlags{TrustFlags: TrustFlags{CAFile: []string{secure + "=" + file}}}
	for _, host := range []string{secure, plain} {
		if err := ping(t, both, host, secure, plain); err != nil {
			t.Errorf("with HOST=FILE: %v", err)
		}
	}
}

func TestErrorOfTLSRegistryOnLoopbackNamesTheFlag(t *testing.T) {
	host, _ := tlsRegistry(t)
	err := ping(t, RegistryFlags{}, host, host)
	if err == nil || !strings.Contains(err.Error(), "--ca-file "+host+"=ca.pem") {
		t.Errorf("got %v", err)
	}
}
