// Package port provides tests with ports that the kernel does not assign to other sockets (see
// internal/ports). A port that a test has released could otherwise belong to another process
// a moment later, which would answer requests or prevent a program from listening.
package port

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/ports"
)

// Serve starts a server on such a port. It runs until it is closed or the test ends; after
// that, connections to the port are refused.
func Serve(t testing.TB, handler http.Handler) *httptest.Server {
	t.Helper()
	server := &httptest.Server{Listener: listen(t), Config: &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}}
	server.Start()
	t.Cleanup(server.Close)
	return server
}

// Free returns an address of the loopback interface on which no process listens.
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
