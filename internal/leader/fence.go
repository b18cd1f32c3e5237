package leader

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

// A fence allows calls only while the Lease is valid. It is part of the transport,
// because a process can be suspended between a decision and its call for longer than the
// duration of the Lease.
type fence struct {
	// term ends when the Lease is lost, and with it every call that is under way.
	term   context.Context
	depose context.CancelFunc
	limit  time.Duration
	now    func() time.Time

	mu sync.Mutex
	// renewed is when the last renewal that succeeded was sent. It is zero before the
	// first.
	renewed time.Time
}

func newFence(limit time.Duration, now func() time.Time) *fence {
	f := &fence{limit: limit, now: now}
	f.term, f.depose = context.WithCancel(context.Background())
	return f
}

// renew records a successful renewal that was sent at a time.
func (f *fence) renew(at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.renewed = at
}

// led reports whether the Lease was ever held in this term.
func (f *fence) led() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.renewed.IsZero()
}

// check returns an error if another manager may hold the Lease.
func (f *fence) check() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.term.Err() != nil || f.renewed.IsZero() || elapsed(f.renewed, f.now()) > f.limit {
		return ErrDeposed.New(nil, "the lease of the manager was not renewed in time")
	}
	return nil
}

// elapsed returns the time between two moments by the clock that advanced further: the
// monotonic clock stands still while a machine is suspended, and the wall clock can be
// set back.
func elapsed(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}

// wrap returns a transport with the fence.
func (f *fence) wrap(next http.RoundTripper) http.RoundTripper { return fenced{f, next} }

type fenced struct {
	fence *fence
	next  http.RoundTripper
}

// RoundTrip implements [http.RoundTripper]. Reads are always allowed, because they are
// harmless.
func (t fenced) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet {
		return t.next.RoundTrip(r)
	}
	if err := t.fence.check(); err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, err
	}
	// A call in flight ends with the term, even a call that the manager would finish when
	// it stops.
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(t.fence.term, cancel)
	end := func() { stop(); cancel() }
	r = t.guard(r.Clone(ctx))
	res, err := t.next.RoundTrip(r)
	if err != nil {
		end()
		return nil, err
	}
	res.Body = &ended{res.Body, end}
	return res, nil
}

// guard returns a request whose body is read only while the fence allows calls.
func (t fenced) guard(r *http.Request) *http.Request {
	if r.Body == nil || r.Body == http.NoBody {
		return r
	}
	r.Body = fencedBody{t.fence, r.Body}
	if again := r.GetBody; again != nil {
		r.GetBody = func() (io.ReadCloser, error) {
			body, err := again()
			return fencedBody{t.fence, body}, err
		}
	}
	return r
}

// fencedBody stops in the middle of the body: a server ignores a truncated request.
type fencedBody struct {
	fence *fence
	io.ReadCloser
}

func (b fencedBody) Read(p []byte) (int, error) {
	if err := b.fence.check(); err != nil {
		return 0, err
	}
	return b.ReadCloser.Read(p)
}

// ended is a body that reports when the response is no longer read.
type ended struct {
	io.ReadCloser
	end func()
}

func (e *ended) Close() error {
	defer e.end()
	return e.ReadCloser.Close()
}
