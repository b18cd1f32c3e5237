package fetch_test

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/xpkg-dev/xpkg/internal/credentials"
	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// registry is a registry that records the requests to it.
type registry struct {
	*httptest.Server
	// address is its host and port, and backend the address of the registry behind it.
	address, backend string

	mu       sync.Mutex
	fault    func(w http.ResponseWriter, r *http.Request) bool
	requests []*http.Request
}

func newRegistry(t *testing.T) *registry {
	t.Helper()
	r := unstarted(t, cluster.Registry(t))
	r.Start()
	return r
}

// unstarted returns a registry with the content of the one at an address.
func unstarted(t *testing.T, backend string) *registry {
	t.Helper()
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: backend})
	r := &registry{backend: backend}
	r.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		r.requests = append(r.requests, req.Clone(context.WithoutCancel(req.Context())))
		fault := r.fault
		r.mu.Unlock()
		if fault == nil || !fault(w, req) {
			proxy.ServeHTTP(w, req)
		}
	}))
	r.address = r.Listener.Addr().String()
	t.Cleanup(r.Close)
	return r
}

// mirrorOf is another registry with the same content.
func mirrorOf(t *testing.T, r *registry) *registry {
	t.Helper()
	m := unstarted(t, r.backend)
	m.Start()
	return m
}

// does makes the registry answer in another way, from now on.
func (r *registry) does(fault func(w http.ResponseWriter, r *http.Request) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fault = fault
}

// matching returns the requests whose path contains a string, since the last call
// of reset.
func (r *registry) matching(part string) []*http.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []*http.Request
	for _, req := range r.requests {
		if strings.Contains(req.URL.Path, part) {
			out = append(out, req)
		}
	}
	return out
}

func (r *registry) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = nil
}

// ref returns the reference of the package that push pushes, at this registry.
func (r *registry) ref() oci.Reference {
	return oci.MustParseReference(r.address + "/content/test:v1.0.0")
}

// answer returns a fault that is nothing but a status.
func answer(status int) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(status)
		return true
	}
}

// wants returns a registry that is for one user alone.
func wants(user string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if got, _, _ := r.BasicAuth(); got == user {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
}

// keychain has users, whose passwords are "secret", for a host, each in a pull secret of its own.
func keychain(t *testing.T, host string, users ...string) *credentials.Keychain {
	t.Helper()
	var secrets []corev1.Secret
	for _, user := range users {
		content := `{"auths":{"` + host + `":{"username":"` + user + `","password":"secret"}}}`
		secrets = append(secrets, corev1.Secret{
			Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(content)},
		})
	}
	k, err := credentials.New(secrets)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// dialTo connects to one address, whatever name is asked for.
func dialTo(address string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, address)
	}
}

// quiet keeps the complaints of servers about their clients out of the log.
var quiet = log.New(io.Discard, "", 0)
