package controller_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/packagestatus"
	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/archive"
	ociimage "github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// registry is a real registry behind a proxy that counts requests and injects faults.
type registry struct {
	*httptest.Server
	// address is what packages name: its host and port.
	address string
	// backend is the registry itself. Tests push there, and are not counted.
	backend string

	mu    sync.Mutex
	fault func(w http.ResponseWriter, r *http.Request) bool
	seen  []string
}

func newRegistry(t testing.TB) *registry {
	t.Helper()
	r := unstarted(cluster.Registry(t))
	r.Start()
	t.Cleanup(r.Close)
	return r
}

// withCredentials marks requests that carry some.
const withCredentials = " with credentials"

// unstarted returns another proxy, not started yet, of the registry at an address.
func unstarted(backend string) *registry {
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: backend})
	r := &registry{backend: backend}
	r.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		seen := req.Method + " " + req.URL.Path
		if req.Header.Get("Authorization") != "" {
			seen += withCredentials
		}
		r.seen = append(r.seen, seen)
		fault := r.fault
		r.mu.Unlock()
		if fault == nil || !fault(w, req) {
			proxy.ServeHTTP(w, req)
		}
	}))
	r.address = r.Listener.Addr().String()
	return r
}

// setFault sets the handler that responds instead of the registry. Nil restores the registry.
func (r *registry) setFault(fault func(w http.ResponseWriter, r *http.Request) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fault = fault
}

// requests returns the requests whose method or path contains a string.
func (r *registry) requests(part string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, s := range r.seen {
		if strings.Contains(s, part) {
			out = append(out, s)
		}
	}
	return out
}

func (r *registry) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = nil
}

// hangUp is a fault that closes the connection.
func hangUp(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }

// answer returns a registry that responds with a status only.
func answer(status int, header ...string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		return true
	}
}

// neverResponds is a fault that accepts requests and never responds.
func neverResponds(_ http.ResponseWriter, r *http.Request) bool {
	<-r.Context().Done()
	return true
}

// forUser returns a fault that rejects all users but one, whose password is "secret".
func forUser(user string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if name, password, ok := r.BasicAuth(); ok && name == user && password == "secret" {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="packages"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
}

// push pushes a package to a repository and tag, such as "acme/x:v1", and returns
// its reference for the manager, without a digest, and its digest.
func (r *registry) push(t testing.TB, name, stream string) (ref string, d oci.Digest) {
	t.Helper()
	to, err := oci.ParseReference(r.backend+"/"+name, oci.ParseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	remote := remote.New(remote.Options{})
	defer remote.Close()
	d, err = remote.Push(t.Context(), to, image(t, stream))
	if err != nil {
		t.Fatal(err)
	}
	return r.address + "/" + name, d
}

// setStatus publishes the status of a version, such as "acme/x:v1".
func (r *registry) setStatus(t testing.TB, name string, status catalog.Status) {
	t.Helper()
	remote := remote.New(remote.Options{})
	defer remote.Close()
	if _, err := packagestatus.Write(t.Context(), remote, oci.MustParseReference(r.backend+"/"+name), status); err != nil {
		t.Fatal(err)
	}
}

func image(t testing.TB, stream string) *ociimage.Image {
	t.Helper()
	i, err := ociimage.Build(t.Context(), ociimage.Input{PackageYAML: []byte(stream)})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// file writes a package as a file NAME.xpkg.
func file(t *testing.T, path, stream string) {
	t.Helper()
	var out bytes.Buffer
	if err := archive.Write(t.Context(), &out, image(t, stream), archive.WriteOptions{}, oci.Limits{}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}
