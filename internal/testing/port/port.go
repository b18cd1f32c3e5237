// Package port gives tests ports that nobody is given by chance, see
// internal/ports: a port that a test has let go could otherwise belong to somebody else
// in the next moment, who answers where nobody should, or is in the way of a program
// that was told to listen there.
package port

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/ports"
)

// Serve answers at such a port until the server is closed, or the test ends. When it is
// closed nobody answers there.
func Serve(t testing.TB, handler http.Handler) *httptest.Server {
	t.Helper()
	server := &httptest.Server{Listener: listen(t), Config: &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}}
	server.Start()
	t.Cleanup(server.Close)
	return server
}

// Free is an address of the loopback interface at which nobody listens.
func Free(t testing.TB) string {
	t.Helper()
	l := listen(t)
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return address
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := ports.Listen("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	return l
}
