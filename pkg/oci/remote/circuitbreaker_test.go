package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/testing/clock"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest"
)

// An unavailable host gets one trial request, and none during a pause that doubles; a
// response closes the breaker.
func TestDeadHostIsRemembered(t *testing.T) {
	f := ocitest.NewRegistry(t)
	ref := f.Publish(t, ocitest.Hello(t), "v1")
	c, dials, dead := clock.New(), atomic.Int64{}, atomic.Bool{}
	health := NewCircuitBreaker(c.Now)
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		dials.Add(1)
		if dead.Load() {
			return nil, errors.New("nobody is there")
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	remote := func() *Client {
		return testRemote(t, func(o *Options) { o.Now, o.Health, o.Dial = c.Now, health, dial })
	}
	dead.Store(true)
	for i, pause := range []time.Duration{5, 10, 20, 40, 60, 60} {
		dials.Store(0)
		err := read(t, remote(), ref)
		ocitest.WantCode(t, err, ErrRegistryUnavailable)
		want := int64(1)
		if i == 0 {
			want = failureThreshold
		}
		if n := dials.Load(); n != want {
			t.Errorf("attempt %d dialed %d times, want %d", i, n, want)
		}
		// All other callers fail at once, with the same message and the end of the pause.
		first := err.Error()
		err = read(t, remote(), ref)
		ocitest.WantCode(t, err, ErrRegistryUnavailable)
		if at, ok := RetryAt(err); !ok || at != c.Now().Add(pause*time.Second) {
			t.Errorf("attempt %d: to be tried at %v (%v), want in %ds", i, at, ok, pause)
		}
		if err.Error() != first || !strings.Contains(first, "nobody is there") {
			t.Errorf("attempt %d: %q and then %q", i, first, err)
		}
		if dials.Load() != want {
			t.Errorf("attempt %d: a dead host was dialed", i)
		}
		c.Add(pause * time.Second)
	}
	dead.Store(false)
	if err := read(t, remote(), ref); err != nil {
		t.Fatal(err)
	}
	dead.Store(true)
	dials.Store(0)
	ocitest.WantCode(t, read(t, remote(), ref), ErrRegistryUnavailable)
	if dials.Load() != failureThreshold {
		t.Errorf("after an answer, a silent host was dialed %d times", dials.Load())
	}
}

// After a pause one caller tries, and the others fail at once.
func TestOneCallerProbesAnUnresponsiveRegistry(t *testing.T) {
	c := clock.New()
	h := NewCircuitBreaker(c.Now)
	for range failureThreshold {
		h.silent("h", errors.New("x"))
	}
	c.Add(firstPause)
	leave := 0
	for range 50 {
		if h.ask("h") == nil {
			leave++
		}
	}
	if leave != 1 {
		t.Errorf("%d got leave", leave)
	}
	if h.ask("other") != nil {
		t.Error("another host is held for dead")
	}
	// Requests that were under way together make one pause.
	for range 50 {
		h.silent("h", errors.New("x"))
	}
	if at, _ := RetryAt(h.ask("h")); at != c.Now().Add(2*firstPause) {
		t.Errorf("the pause is %s", at.Sub(c.Now()))
	}
}

// The states of the transport: closed, open, one trial, and closed again.
func TestBreakerTransport(t *testing.T) {
	c := clock.New()
	h := NewCircuitBreaker(c.Now)
	var sent int
	var err error
	transport := h.transport(roundTripperFunc(func(*http.Request) (*http.Response, error) {
		sent++
		return &http.Response{StatusCode: http.StatusBadGateway, Body: http.NoBody}, err
	}))
	closed := 0
	send := func(ctx context.Context, host string) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPut, "https://"+host, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Body = closer{func() { closed++ }}
		resp, err := transport.RoundTrip(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		return err
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	silent := errors.New("no answer")
	for _, step := range []struct {
		name    string
		ctx     context.Context
		host    string
		err     error
		advance time.Duration
		times   int
		sent    int
		open    bool
	}{
		{"a response", t.Context(), "a", nil, 0, 5, 5, false},
		{"a canceled request", gone, "a", silent, 0, 5, 5, false},
		{"an untrusted certificate", t.Context(), "a", errors.New("tls: bad certificate"), 0, 5, 5, false},
		{"an error of the client", t.Context(), "a", ErrForbiddenAddress.New(nil, "x"), 0, 5, 5, false},
		{"silence, up to the threshold", t.Context(), "a", silent, 0, failureThreshold, failureThreshold, false},
		{"open", t.Context(), "a", silent, 0, 5, 0, true},
		{"another host", t.Context(), "b", nil, 0, 1, 1, false},
		{"the pause has not passed", t.Context(), "a", nil, firstPause - 1, 1, 0, true},
		{"one trial", t.Context(), "a", silent, 1, 1, 1, false},
		{"open again, for twice the pause", t.Context(), "a", nil, 2*firstPause - 1, 1, 0, true},
		{"a trial with a response", t.Context(), "a", nil, 1, 1, 1, false},
		{"closed", t.Context(), "a", nil, 0, 5, 5, false},
	} {
		c.Add(step.advance)
		sent, closed, err = 0, 0, step.err
		for range step.times {
			got := send(step.ctx, step.host)
			if _, open := RetryAt(got); open != step.open {
				t.Errorf("%s: got %v", step.name, got)
			}
		}
		if sent != step.sent || closed != step.times-step.sent {
			t.Errorf(
				"%s: sent %d requests and closed %d bodies that were not sent; want %d and %d", step.name, sent, closed, step.sent,
				step.times-step.sent,
			)
		}
	}
}

// closer is a body that reports Close.
type closer struct{ close func() }

func (closer) Read([]byte) (int, error) { return 0, io.EOF }

func (c closer) Close() error {
	c.close()
	return nil
}

func TestHealthIsBounded(t *testing.T) {
	c := clock.New()
	h := NewCircuitBreaker(c.Now)
	for i := range 3 * maxHosts {
		h.silent(fmt.Sprint(i), errors.New("x"))
	}
	if len(h.hosts) > maxHosts {
		t.Errorf("%d hosts are remembered", len(h.hosts))
	}
	var none *CircuitBreaker
	none.answered("h")
	none.silent("h", nil)
	if next := http.RoundTripper(http.DefaultTransport); none.transport(next) != next {
		t.Error("no breaker changes a transport")
	}
	if none.ask("h") != nil || !errors.Is(none.pausing("h", errNoChallenge), errNoChallenge) {
		t.Error("nothing is not nothing")
	}
}

// Answers that are no success are answers.
func TestRefusalsDoNotOpenTheCircuit(t *testing.T) {
	f := ocitest.NewRegistry(t)
	h := NewCircuitBreaker(nil)
	r := testRemote(t, func(o *Options) { o.Health = h })
	f.Fault = func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusBadGateway); return true }
	for range 3 {
		ocitest.WantCode(t, read(t, r, f.Ref("v1")), ErrRegistryUnavailable)
	}
	if len(h.hosts) != 0 {
		t.Errorf("remembered %v", h.hosts)
	}
}

func TestRetryAt(t *testing.T) {
	f := ocitest.NewRegistry(t)
	c := clock.New()
	status, header := http.StatusTooManyRequests, "600"
	f.Fault = func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Retry-After", header)
		w.WriteHeader(status)
		return true
	}
	for _, tc := range []struct {
		status int
		header string
		want   time.Duration
		code   errcode.Code
	}{
		{http.StatusTooManyRequests, "600", 10 * time.Minute, ErrThrottled},
		{http.StatusServiceUnavailable, "600", 10 * time.Minute, ErrThrottled},
		{http.StatusTooManyRequests, "31536000", longestRetryAfter, ErrThrottled},
		{http.StatusTooManyRequests, "", 0, ErrThrottled},
		{http.StatusServiceUnavailable, "", 0, ErrRegistryUnavailable},
	} {
		status, header = tc.status, tc.header
		r := testRemote(t, func(o *Options) { o.Now = c.Now })
		err := read(t, r, f.Ref("v1"))
		ocitest.WantCode(t, err, tc.code)
		at, ok := RetryAt(fmt.Errorf("wrapped: %w", err))
		if ok != (tc.want > 0) || ok && at != c.Now().Add(tc.want) {
			t.Errorf("%d %q: to be tried at %v (%v), want in %s", tc.status, tc.header, at, ok, tc.want)
		}
	}
}

// A token server that throttles is left alone as well.
func TestTokenServerThrottles(t *testing.T) {
	f := ocitest.NewRegistry(t)
	ref := f.Publish(t, ocitest.Hello(t), "v1")
	c, asked := clock.New(), atomic.Int64{}
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) > 1 {
			_, _ = fmt.Fprint(w, `{"token":"good"}`)
			return
		}
		w.Header().Set("Retry-After", "60")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	t.Cleanup(tokens.Close)
	f.Fault = wantBearer("good", tokens.URL)
	r := testRemote(t, func(o *Options) { o.Now = c.Now })
	for range 3 {
		err := read(t, r, ref)
		ocitest.WantCode(t, err, ErrThrottled)
		if at, ok := RetryAt(err); !ok || at != c.Now().Add(time.Minute) {
			t.Errorf("to be tried at %v (%v)", at, ok)
		}
	}
	if asked.Load() != 1 {
		t.Errorf("%d tokens were asked for", asked.Load())
	}
	c.Add(time.Minute)
	if err := read(t, r, ref); err != nil {
		t.Error(err)
	}
}
