package remote

import (
	"net/http"
	"strconv"
	"time"
)

// retryTransport retries requests after failures that may be temporary: network errors, 429,
// 408 and 5xx. Between attempts it waits for the time that the host requests, and otherwise
// with exponential backoff. It returns the response of the last attempt with any status.
//
// A Retry-After beyond Options.MaxRetryAfter is not waited for: until it has passed, all
// requests fail with a *retryAfterError, without being sent.
type retryTransport struct {
	next http.RoundTripper
	opts *Options

	// pause is the host's Retry-After.
	pause pause
}

// RoundTrip implements [http.RoundTripper]. It opens the body with GetBody for each attempt.
func (t *retryTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	for attempt := 1; ; attempt++ {
		if err := t.pause.err(t.opts.Now()); err != nil {
			return nil, err
		}
		resp, err := t.attempt(req)
		wait, again := t.again(resp, err, attempt)
		if req.Context().Err() != nil || !again {
			return resp, err
		}
		if callOf(req).replaceable && (err != nil || resp.StatusCode != http.StatusTooManyRequests) {
			return resp, err
		}
		if resp != nil {
			drain(resp)
		}
		if err := t.opts.Sleep(req.Context(), wait); err != nil {
			return nil, err
		}
	}
}

func (t *retryTransport) attempt(req *http.Request) (*http.Response, error) {
	req, err := withBody(req)
	if err != nil {
		return nil, err
	}
	return t.next.RoundTrip(req)
}

// again returns the wait before the next attempt, and whether to retry. If Retry-After is
// longer than MaxRetryAfter, it blocks the host for that time.
func (t *retryTransport) again(resp *http.Response, err error, attempt int) (time.Duration, bool) {
	wait := t.opts.backoff(attempt)
	if err != nil {
		return wait, attempt < t.opts.Attempts && canPass(err)
	}
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		asked := retryAfter(resp, t.opts.Now())
		if asked > t.opts.MaxRetryAfter {
			t.pause.start(t.opts.Now(), asked)
			return 0, false
		}
		if asked > 0 {
			wait = asked
		}
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusGatewayTimeout, http.StatusRequestTimeout:
	default:
		return 0, false
	}
	return wait, attempt < t.opts.Attempts
}

// backoff returns an exponential backoff that starts at a quarter of a second, with a jitter
// of half its length.
func (o *Options) backoff(attempt int) time.Duration {
	base := 250 * time.Millisecond << min(attempt-1, 6)
	return base/2 + time.Duration(o.Jitter()*float64(base/2))
}

// retryAfter returns the wait in the header Retry-After, which contains seconds or a date.
func retryAfter(resp *http.Response, now time.Time) time.Duration {
	value := resp.Header.Get("Retry-After")
	if seconds, err := strconv.ParseInt(value, 10, 32); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return at.Sub(now)
	}
	return 0
}
