// Package port gives tests ports that nobody is given by chance.
//
// Who listens on port 0 is given one that is free, and so is who connects. A port that
// a test has let go can therefore belong to somebody else in the next moment, who
// answers where nobody should, or is in the way of a program that was told to listen
// there. The ports here are below those that systems give away (from 32768 on with
// Linux, from 49152 on elsewhere).
package port

import (
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"syscall"
	"testing"
	"time"
)

const (
	lowest  = 12000
	highest = 19999
	// tries is far more than are ever needed: thousands of ports would have to be taken.
	tries = 100
)

// Listen listens on the loopback interface. When the listener is closed, nobody answers
// at its address.
func Listen(t testing.TB) net.Listener {
	t.Helper()
	for range tries {
		//nolint:gosec // It need not be a secret.
		port := lowest + rand.IntN(highest-lowest)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return l
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			t.Fatal(err)
		}
	}
	t.Fatalf("none of %d ports is free", tries)
	return nil
}

// Serve answers at such a port until the server is closed, or the test ends.
func Serve(t testing.TB, handler http.Handler) *httptest.Server {
	t.Helper()
	server := &httptest.Server{Listener: Listen(t), Config: &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}}
	server.Start()
	t.Cleanup(server.Close)
	return server
}

// Free is an address of the loopback interface at which nobody listens.
func Free(t testing.TB) string {
	t.Helper()
	l := Listen(t)
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return address
}
