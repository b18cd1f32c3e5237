package leader

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// clock is one that tests move.
type clock struct{ at time.Time }

func (c *clock) now() time.Time          { return c.at }
func (c *clock) advance(d time.Duration) { c.at = c.at.Add(d) }

// calls counts the calls that a fence admits.
type calls struct{ n int }

func (c *calls) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		if _, err := io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	c.n++
	return httptest.NewRecorder().Result(), nil
}

func call(t *testing.T, method string, body io.Reader) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://127.0.0.1/x", body)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// hardening: J5
func TestFence(t *testing.T) {
	const limit = 7 * time.Second
	cases := map[string]struct {
		method string
		do     func(*fence, *clock)
		passes bool
	}{
		"NeverHeld":   {http.MethodPost, func(*fence, *clock) {}, false},
		"Held":        {http.MethodPost, func(f *fence, c *clock) { f.renew(c.now()) }, true},
		"HeldLongAgo": {http.MethodPut, func(f *fence, c *clock) { f.renew(c.now()); c.advance(limit + 1) }, false},
		"RenewedSince": {http.MethodPut, func(
			f *fence, c *clock,
		) {
			f.renew(c.now())
			c.advance(limit)
			f.renew(c.now())
		}, true},
		"Deposed":         {http.MethodPatch, func(f *fence, c *clock) { f.renew(c.now()); f.depose() }, false},
		"ReadsAlwaysPass": {http.MethodGet, func(*fence, *clock) {}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, sent := &clock{time.Now()}, &calls{}
			f := newFence(limit, c.now)
			defer f.depose()
			tc.do(f, c)
			res, err := f.wrap(sent).RoundTrip(call(t, tc.method, strings.NewReader("{}")))
			if tc.passes {
				if err != nil || sent.n != 1 {
					t.Errorf("got %v, %d calls; want one", err, sent.n)
				}
				return
			}
			if !errors.Is(err, ErrDeposed) || sent.n != 0 || res != nil {
				t.Errorf("got %v, %d calls; want Deposed and none", err, sent.n)
			}
		})
	}
}

// A process can be halted in the middle of a request.
//
// hardening: J5
func TestFenceStopsWithinABody(t *testing.T) {
	c, sent := &clock{time.Now()}, &calls{}
	f := newFence(time.Second, c.now)
	defer f.depose()
	f.renew(c.now())
	body := io.MultiReader(strings.NewReader("first half"), readFunc(func([]byte) (int, error) {
		c.advance(time.Minute)
		return 0, nil
	}), strings.NewReader("second half"))
	if _, err := f.wrap(sent).RoundTrip(call(t, http.MethodPut, body)); !errors.Is(err, ErrDeposed) || sent.n != 0 {
		t.Errorf("got %v, %d calls; want Deposed and none", err, sent.n)
	}
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// The end of a term ends calls in flight, even calls that a stopping manager would
// finish.
func TestEndOfTermCancelsCalls(t *testing.T) {
	f := newFence(time.Minute, time.Now)
	f.renew(time.Now())
	under := make(chan struct{})
	hangs := roundTripper(func(r *http.Request) (*http.Response, error) {
		close(under)
		<-r.Context().Done()
		return nil, r.Context().Err()
	})
	go func() {
		<-under
		f.depose()
	}()
	r := call(t, http.MethodPut, nil).WithContext(context.WithoutCancel(t.Context()))
	if _, err := f.wrap(hangs).RoundTrip(r); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that the call is canceled", err)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// lease is a Lease in memory.
type lease struct {
	resourcelock.Interface
	holder string
	fails  error
}

func (l *lease) Identity() string { return "us" }

func (l *lease) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &resourcelock.LeaderElectionRecord{HolderIdentity: l.holder}, nil, nil
}

func (l *lease) Update(_ context.Context, r resourcelock.LeaderElectionRecord) error {
	if l.fails == nil {
		l.holder = r.HolderIdentity
	}
	return l.fails
}

func TestTheLeaseMovesTheFence(t *testing.T) {
	c := &clock{time.Now()}
	f, l := newFence(time.Second, c.now), &lease{}
	lock := &fencedLock{Interface: l, fence: f, allowed: &atomic.Bool{}}
	record := resourcelock.LeaderElectionRecord{HolderIdentity: "us"}
	l.fails = errors.New("conflict")
	if lock.Update(t.Context(), record) == nil || f.led() {
		t.Fatal("a renewal that failed counts")
	}
	l.fails = nil
	if err := lock.Update(t.Context(), record); err != nil || f.check() != nil {
		t.Fatalf("a renewal that succeeded does not count: %v", err)
	}
	l.holder = "them"
	if _, _, err := lock.Get(t.Context()); err != nil || f.term.Err() == nil {
		t.Error("another manager holds the lease, but the term has not ended")
	}
}

// later returns a moment after from by two clocks that disagree. Time has no function for that;
// its wall clock is in the 33 bits above the nanoseconds of the first word, in seconds.
func later(t *testing.T, from time.Time, monotonic, wall time.Duration) time.Time {
	t.Helper()
	at := from.Add(monotonic)
	*(*uint64)(unsafe.Pointer(&at)) += uint64((wall-monotonic)/time.Second) << 30
	if at.Sub(from) != monotonic || at.Round(0).Sub(from.Round(0)) != wall {
		t.Fatalf(
			"the layout of time.Time has changed: %s and %s, want %s and %s", at.Sub(from), at.Round(0).Sub(from.Round(0)),
			monotonic, wall,
		)
	}
	return at
}

// Time advances while a machine is suspended, which stops the monotonic clock, and when the
// wall clock is set back. A write is refused once the Lease may be another manager's by either.
//
// hardening: J9
func TestFenceUsesTheFasterClock(t *testing.T) {
	const limit = 7 * time.Second
	for name, test := range map[string]struct {
		monotonic, wall time.Duration
		passes          bool
	}{
		"both within the limit":    {limit, limit, true},
		"suspended":                {time.Second, time.Hour, false},
		"wall clock set forward":   {time.Second, 24 * time.Hour, false},
		"wall clock set back":      {time.Second, -time.Hour, true},
		"set back, and no renewal": {limit + time.Second, -time.Hour, false},
		"both beyond the limit":    {limit + time.Second, limit + time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			c, sent := &clock{time.Now()}, &calls{}
			f := newFence(limit, c.now)
			f.renew(c.now())
			c.at = later(t, c.at, test.monotonic, test.wall)
			_, err := f.wrap(sent).RoundTrip(call(t, http.MethodPut, nil)) //nolint:bodyclose // The response has no body.
			if passed := err == nil && sent.n == 1; passed != test.passes || !passed && !errors.Is(err, ErrDeposed) {
				t.Errorf("%d calls passed (%v), want %t", sent.n, err, test.passes)
			}
			// A renewal after the jump counts from then on.
			f.renew(c.now())
			if err := f.check(); err != nil {
				t.Errorf("after a renewal: %v", err)
			}
		})
	}
}
