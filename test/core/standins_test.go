package core

import (
	"context"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// standIn makes the calls of a controller of Crossplane that disagrees with the manager.
type standIn struct {
	rounds atomic.Int64
	stop   func()
}

// pace is the pause between two rounds of a stand-in: it reacts as fast as a controller with a watch.
const pace = 2 * time.Millisecond

// run calls reconcile in rounds until the stand-in is stopped, or the test ends. A failed call is repeated by the next
// round.
func run(t *testing.T, reconcile func(ctx context.Context) error) *standIn {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s, done := &standIn{}, make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(pace)
		defer tick.Stop()
		for ctx.Err() == nil {
			_ = reconcile(ctx)
			s.rounds.Add(1)
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	}()
	s.stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	t.Cleanup(s.stop)
	return s
}

// writes counts the writes that leave a client, by method and resource. Leases, events, reviews and dry runs do not
// count.
type writes struct {
	mu    sync.Mutex
	calls map[string]int
}

// of returns a configuration whose writes are counted.
func (w *writes) of(cfg *rest.Config) *rest.Config {
	counted := rest.CopyConfig(cfg)
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			res, err := next.RoundTrip(r)
			if err == nil && isWrite(r) {
				w.add(r.Method+" "+path.Dir(r.URL.Path), res.StatusCode)
			}
			return res, err
		})
	})
	return counted
}

func isWrite(r *http.Request) bool {
	if r.Method == http.MethodGet || r.URL.Query().Has("dryRun") {
		return false
	}
	for _, group := range []string{
		"/coordination.k8s.io/", "/events.k8s.io/", "/authorization.k8s.io/", "/authentication.k8s.io/",
	} {
		if strings.Contains(r.URL.Path, group) {
			return false
		}
	}
	return true
}

func (w *writes) add(call string, code int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calls == nil {
		w.calls = map[string]int{}
	}
	if code >= http.StatusBadRequest {
		call += " (rejected)"
	}
	w.calls[call]++
}

// reset forgets all writes.
func (w *writes) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.calls)
}

// total returns the number of writes, rejected ones included.
func (w *writes) total() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, c := range w.calls {
		n += c
	}
	return n
}

// byCall returns the number of writes of each kind.
func (w *writes) byCall() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.calls)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// sortedKeys returns the keys of a map in order.
func sortedKeys(m map[string]int) []string { return slices.Sorted(maps.Keys(m)) }
