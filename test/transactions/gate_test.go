package transactions_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/xpkg-dev/xpkg/internal/testing/env"
)

// A gate forwards the requests of one process to the API server. It can strike at one of them, and it can be closed, as
// by a network that has failed: requests get no response then.
type gate struct {
	kubeconfig string
	server     *httptest.Server

	mu     sync.Mutex
	calls  int
	strike strike
	closed chan struct{}
	// watches reports that a watch has passed.
	watches bool
}

// strike is a function that is called before or after the request with a number arrives. Its response does not arrive.
type strike struct {
	call    int
	isAfter bool
	do      func()
}

// newGate starts a gate, and writes a kubeconfig with its address.
func newGate(t *testing.T, cfg *rest.Config) *gate {
	t.Helper()
	target, err := url.Parse(cfg.Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(target) }, Transport: transport, FlushInterval: -1,
		ErrorLog: log.New(io.Discard, "", 0), // Processes that are killed leave requests behind.
	}
	g := &gate{strike: strike{call: -1}}
	g.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.serve(w, r, proxy) }))
	g.kubeconfig = env.WriteKubeconfig(t, g.server.URL)
	t.Cleanup(func() {
		g.open()
		g.server.CloseClientConnections()
		g.server.Close()
	})
	return g
}

func (g *gate) serve(w http.ResponseWriter, r *http.Request, proxy http.Handler) {
	g.mu.Lock()
	closed, s, call := g.closed, g.strike, g.calls
	if r.URL.Query().Get("watch") == "" {
		g.calls++
	} else {
		call = -2
		g.watches = g.watches || closed == nil
	}
	g.mu.Unlock()
	if closed != nil {
		select {
		case <-closed:
		case <-r.Context().Done():
		}
		panic(http.ErrAbortHandler)
	}
	if call != s.call {
		proxy.ServeHTTP(w, r)
		return
	}
	if s.isAfter {
		proxy.ServeHTTP(httptest.NewRecorder(), r)
	}
	s.do()
	panic(http.ErrAbortHandler)
}

// strikeAt strikes at a request from now on: the next one has the number 0.
func (g *gate) strikeAt(s strike) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls, g.strike = 0, s
}

// isWatched reports whether a watch has passed since the gate was opened: a manager watches once it has started.
func (g *gate) isWatched() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.watches
}

// close lets no request through until the gate is opened, and ends all connections.
func (g *gate) close() {
	g.mu.Lock()
	g.closed, g.watches = make(chan struct{}), false
	g.mu.Unlock()
	g.server.CloseClientConnections()
}

// open lets requests through again.
func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed != nil {
		close(g.closed)
		g.closed = nil
	}
}
