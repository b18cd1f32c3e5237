package fetch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

var (
	q    = resolveKey{ref: "registry.acme.test/x:v1"}
	some = oci.DigestOf([]byte("x"))
)

// asker counts requests, which wait until the test lets them go.
type asker struct {
	mu       sync.Mutex
	requests int
	release  chan struct{}
	ended    chan error
}

func newAsker() *asker { return &asker{release: make(chan struct{}), ended: make(chan error, 10)} }

func (a *asker) ask(ctx context.Context) (oci.Digest, error) {
	a.mu.Lock()
	a.requests++
	a.mu.Unlock()
	select {
	case <-a.release:
		a.ended <- nil
		return some, nil
	case <-ctx.Done():
		a.ended <- ctx.Err()
		return oci.Digest{}, ctx.Err()
	}
}

// untilWaiting waits until so many wait for an answer.
func untilWaiting(t *testing.T, a *resolveCache, n int) {
	t.Helper()
	wait.Until(t, 10*time.Second, fmt.Sprintf("%d wait", n), func() (string, bool) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.all[q] == nil {
			return "nobody asks", n == 0
		}
		return fmt.Sprint(a.all[q].waiting), a.all[q].waiting == n
	})
}

// With a maxAge of zero, a hundred who wait for the same request share it.
func TestRequestUnderWayIsShared(t *testing.T) {
	a, asker := newAnswers(time.Now), newAsker()
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			if d, err := a.get(t.Context(), q, 0, asker.ask); err != nil || d != some {
				t.Errorf("got %s (%v)", d, err)
			}
		})
	}
	untilWaiting(t, a, 100)
	close(asker.release)
	all.Wait()
	if asker.requests != 1 {
		t.Errorf("%d requests", asker.requests)
	}
}

// If the first caller of a shared request cancels it, the others still get the
// result.
func TestFirstCallerCancels(t *testing.T) {
	a, asker := newAnswers(time.Now), newAsker()
	ctx, leave := context.WithCancel(t.Context())
	answered := make(chan error, 2)
	go func() { _, err := a.get(ctx, q, 0, asker.ask); answered <- err }()
	untilWaiting(t, a, 1)
	go func() { _, err := a.get(t.Context(), q, 0, asker.ask); answered <- err }()
	untilWaiting(t, a, 2)
	leave()
	if err := <-answered; !errors.Is(err, context.Canceled) {
		t.Errorf("whoever left got %v", err)
	}
	close(asker.release)
	if err := <-answered; err != nil {
		t.Errorf("whoever stayed got %v", err)
	}
	if asker.requests != 1 {
		t.Errorf("%d requests", asker.requests)
	}
}

// When all have left, the request ends, and the next one makes another.
func TestAllCallersCancel(t *testing.T) {
	a, asker := newAnswers(time.Now), newAsker()
	ctx, leave := context.WithCancel(t.Context())
	answered := make(chan error, 1)
	go func() { _, err := a.get(ctx, q, 0, asker.ask); answered <- err }()
	untilWaiting(t, a, 1)
	leave()
	if err := <-answered; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := <-asker.ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the request ended with %v", err)
	}
	close(asker.release)
	if d, err := a.get(t.Context(), q, time.Minute, asker.ask); err != nil || d != some {
		t.Errorf("the next one got %s (%v)", d, err)
	}
}

func TestAnswersAreBounded(t *testing.T) {
	a := newAnswers(time.Now)
	for i := range 2*maxResolved + 10 {
		ask := func(context.Context) (oci.Digest, error) { return some, nil }
		if _, err := a.get(t.Context(), resolveKey{ref: fmt.Sprint(i)}, time.Hour, ask); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(a.all); n > maxResolved {
		t.Errorf("%d answers are remembered", n)
	}
}

// The semaphore is never exceeded, and a larger request runs alone.
func TestRoom(t *testing.T) {
	s := NewSource(Options{ParseBytes: 100})
	t.Cleanup(s.Close)
	var mu sync.Mutex
	used, most := int64(0), int64(0)
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			bytes := int64(1 + i%7*40) // up to 241
			r := room{memory: s.memory, all: s.opts.ParseBytes}
			defer r.leave()
			if err := r.take(t.Context(), bytes); err != nil {
				t.Error(err)
				return
			}
			add := func(n int64) {
				mu.Lock()
				defer mu.Unlock()
				used += n
				most = max(most, used)
			}
			add(min(bytes, 100))
			defer add(-min(bytes, 100))
		})
	}
	all.Wait()
	if most > 100 || most == 0 {
		t.Errorf("%d of 100 were used", most)
	}
	full, next := room{memory: s.memory, all: 100}, room{memory: s.memory, all: 100}
	if err := full.take(t.Context(), 500); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := next.take(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("somebody else got in: %v", err)
	}
	next.leave()
	full.leave()
}
