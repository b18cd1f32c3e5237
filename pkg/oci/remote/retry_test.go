package remote

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/testing/clock"
)

// reply is one answer of a transport in a test: a status with a Retry-After, or an error.
type reply struct {
	status     int
	retryAfter string
	err        error
}

// replies answers each request with the next reply, and then with the last one. It records
// the bodies that it received.
func replies(bodies *[]string, list ...reply) http.RoundTripper {
	sent := 0
	return roundTripperFunc(func(req *http.Request) (*http.Response, error) {
		r := list[min(sent, len(list)-1)]
		sent++
		text := ""
		if req.Body != nil {
			data, err := io.ReadAll(req.Body)
			if err != nil {
				return nil, err
			}
			text = string(data)
			_ = req.Body.Close()
		}
		*bodies = append(*bodies, text)
		if r.err != nil {
			return nil, r.err
		}
		return &http.Response{
			StatusCode: r.status, Header: http.Header{"Retry-After": {r.retryAfter}}, Body: io.NopCloser(strings.NewReader("")),
		}, nil
	})
}

// retrying returns a transport with 4 attempts that records its waits.
func retrying(c *clock.Clock, waits *[]time.Duration, next http.RoundTripper) *retryTransport {
	return &retryTransport{next: next, opts: &Options{
		Attempts: 4, MaxRetryAfter: 20 * time.Second, Now: c.Now, Jitter: func() float64 { return 0 },
		Sleep: func(ctx context.Context, d time.Duration) error {
			*waits = append(*waits, d)
			return ctx.Err()
		},
	}}
}

func TestRetriesOnlyFailuresThatMayPass(t *testing.T) {
	const ms = time.Millisecond
	backoff := []time.Duration{125 * ms, 250 * ms, 500 * ms}
	for name, tc := range map[string]struct {
		replies []reply
		waits   []time.Duration
		status  int
	}{
		"success":           {[]reply{{status: 200}}, nil, 200},
		"401":               {[]reply{{status: 401}}, nil, 401},
		"403":               {[]reply{{status: 403}}, nil, 403},
		"404":               {[]reply{{status: 404}}, nil, 404},
		"501":               {[]reply{{status: 501}}, nil, 501},
		"408":               {[]reply{{status: 408}}, backoff, 408},
		"429":               {[]reply{{status: 429}}, backoff, 429},
		"500":               {[]reply{{status: 500}}, backoff, 500},
		"502":               {[]reply{{status: 502}}, backoff, 502},
		"503":               {[]reply{{status: 503}}, backoff, 503},
		"504":               {[]reply{{status: 504}}, backoff, 504},
		"503 that passes":   {[]reply{{status: 503}, {status: 200}}, backoff[:1], 200},
		"broken, then 200":  {[]reply{{err: io.ErrUnexpectedEOF}, {err: io.EOF}, {status: 200}}, backoff[:2], 200},
		"always broken":     {[]reply{{err: io.ErrUnexpectedEOF}}, backoff, 0},
		"canceled":          {[]reply{{err: context.Canceled}}, nil, 0},
		"too slow":          {[]reply{{err: context.DeadlineExceeded}}, nil, 0},
		"not trusted":       {[]reply{{err: errors.New("tls: bad certificate")}}, nil, 0},
		"breaker is open":   {[]reply{{err: &retryAfterError{}}}, nil, 0},
		"short Retry-After": {[]reply{{status: 429, retryAfter: "7"}, {status: 200}}, []time.Duration{7 * time.Second}, 200},
		"500 ignores it":    {[]reply{{status: 500, retryAfter: "7"}, {status: 200}}, backoff[:1], 200},
		"dated Retry-After": {[]reply{
			{status: 503, retryAfter: clock.New().Now().Add(9 * time.Second).UTC().Format(http.TimeFormat)}, {status: 200},
		}, []time.Duration{9 * time.Second}, 200},
		"Retry-After passed": {[]reply{{status: 429, retryAfter: "-5"}, {status: 200}}, backoff[:1], 200},
		"long Retry-After":   {[]reply{{status: 429, retryAfter: "600"}}, nil, 429},
	} {
		t.Run(name, func(t *testing.T) {
			var bodies []string
			var waits []time.Duration
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://registry.example.com/v2/", nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := retrying(clock.New(), &waits, replies(&bodies, tc.replies...)).RoundTrip(req)
			status := 0
			if err == nil {
				status = resp.StatusCode
				_ = resp.Body.Close()
			}
			if status != tc.status || !slices.Equal(waits, tc.waits) || len(bodies) != len(tc.waits)+1 {
				t.Errorf(
					"got %d (%v) after %d requests with the waits %v; want %d after %v", status, err, len(bodies), waits, tc.status,
					tc.waits,
				)
			}
		})
	}
}

func TestLongRetryAfterBlocksUntilItHasPassed(t *testing.T) {
	var bodies []string
	var waits []time.Duration
	c := clock.New()
	transport := retrying(c, &waits, replies(&bodies, reply{status: 429, retryAfter: "600"}, reply{status: 200}))
	send := func() (int, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://registry.example.com/v2/", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := transport.RoundTrip(req)
		if err != nil {
			return 0, err
		}
		return resp.StatusCode, resp.Body.Close()
	}
	if status, err := send(); status != 429 || err != nil {
		t.Fatalf("got %d, %v", status, err)
	}
	c.Add(10*time.Minute - time.Second)
	if _, err := send(); len(bodies) != 1 {
		t.Errorf("a request was sent during Retry-After: %v", err)
	} else if at, ok := RetryAt(err); !ok || at != c.Now().Add(time.Second) {
		t.Errorf("to be tried at %v, %v", at, ok)
	}
	c.Add(time.Second)
	if status, err := send(); status != 200 || err != nil {
		t.Errorf("got %d, %v", status, err)
	}
}

func TestEveryAttemptSendsTheWholeBody(t *testing.T) {
	var bodies []string
	var waits []time.Duration
	transport := retrying(clock.New(), &waits, replies(&bodies, reply{status: 500}, reply{err: io.EOF}, reply{
		status: 201,
	}))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "https://registry.example.com/v2/", nil)
	if err != nil {
		t.Fatal(err)
	}
	opened := 0
	req.GetBody = func() (io.ReadCloser, error) {
		if opened++; opened == 2 {
			return nil, io.ErrUnexpectedEOF // A failure to open the content counts as an attempt.
		}
		return io.NopCloser(strings.NewReader("content")), nil
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if want := []string{"content", "content", "content"}; resp.StatusCode != 201 || !slices.Equal(bodies, want) ||
		len(waits) != 3 {
		t.Errorf("got %d after the bodies %q and %d waits", resp.StatusCode, bodies, len(waits))
	}
}

func TestRetriesEndWithTheContext(t *testing.T) {
	var bodies []string
	var waits []time.Duration
	ctx, cancel := context.WithCancel(t.Context())
	transport := retrying(clock.New(), &waits, replies(&bodies, reply{status: 503}))
	transport.opts.Sleep = func(ctx context.Context, _ time.Duration) error {
		cancel()
		return ctx.Err()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://registry.example.com/v2/", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := transport.RoundTrip(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	if !errors.Is(err, context.Canceled) || len(bodies) != 1 {
		t.Errorf("got %v after %d requests", err, len(bodies))
	}
	resp, err = transport.RoundTrip(req)
	if err != nil || resp.StatusCode != 503 || len(bodies) != 2 {
		t.Fatalf("a request of a canceled context was repeated: %v, %d requests", err, len(bodies))
	}
	_ = resp.Body.Close()
}

// hardening: A12
func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "5": 5 * time.Second, "Fri, 02 Jan 2026 03:05:05 GMT": time.Minute, "soon": 0, "99999999999999999999": 0,
	} {
		if got := retryAfter(&http.Response{Header: http.Header{"Retry-After": {value}}}, now); got != want {
			t.Errorf("%q is %s, want %s", value, got, want)
		}
	}
}
