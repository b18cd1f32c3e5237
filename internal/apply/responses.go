package apply

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// heard contains the parts of a response that the errors of the client library can omit: they lack the header
// Retry-After if the body is a Status object.
type heard struct {
	status     int
	retryAfter string
}

type heardKey struct{}

// hear returns a context that records the response of a call.
func hear(ctx context.Context) (context.Context, *heard) {
	h := &heard{}
	return context.WithValue(ctx, heardKey{}, h), h
}

// hearing is a transport that records responses.
type hearing struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t hearing) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := t.next.RoundTrip(r)
	if h, ok := r.Context().Value(heardKey{}).(*heard); ok && err == nil {
		h.status, h.retryAfter = res.StatusCode, res.Header.Get("Retry-After")
	}
	return res, err
}

// verdict is the classification of a response, in addition to its error.
type verdict struct {
	// lost reports whether the call may have been carried out despite its error.
	lost bool
	// throttled reports whether the server asked for fewer requests, and the delay before the next one; zero if it stated
	// none.
	throttled bool
	after     time.Duration
}

// judge classifies a response. A server that throttles refuses a call before it does anything; a server that asks for
// a retry in any other way may have carried it out.
func judge(err error, h heard, now time.Time) verdict {
	var status apierrors.APIStatus
	after, told := h.after(now)
	switch {
	case err == nil:
		return verdict{}
	case h.status == http.StatusTooManyRequests:
		return verdict{throttled: true, after: after}
	case h.status >= http.StatusInternalServerError && told:
		return verdict{throttled: true, after: after, lost: true}
	}
	return verdict{lost: !errors.As(err, &status)}
}

// after reads Retry-After, in seconds or as a date (RFC 9110, section 10.2.3).
func (h heard) after(now time.Time) (after time.Duration, told bool) {
	if h.retryAfter == "" {
		return 0, false
	}
	if s, err := strconv.Atoi(h.retryAfter); err == nil {
		return time.Duration(max(0, min(s, int(24*time.Hour/time.Second)))) * time.Second, true
	}
	if t, err := http.ParseTime(h.retryAfter); err == nil {
		return max(0, t.Sub(now)), true
	}
	return 0, false
}
