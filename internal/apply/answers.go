package apply

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// heard is what the transport hears of the answer to one call. The errors of the
// client library do not always tell it: they leave the header Retry-After out when
// the body is an error of its own.
type heard struct {
	status     int
	retryAfter string
}

type heardKey struct{}

// hear makes calls with the returned context tell what they hear.
func hear(ctx context.Context) (context.Context, *heard) {
	h := &heard{}
	return context.WithValue(ctx, heardKey{}, h), h
}

// hearing is the transport that listens.
type hearing struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t hearing) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := t.next.RoundTrip(r)
	if h, ok := r.Context().Value(heardKey{}).(*heard); ok && err == nil {
		h.status, h.retryAfter = res.StatusCode, res.Header.Get("Retry-After")
	}
	return res, err
}

// verdict is what follows from the answer to a call, besides its error.
type verdict struct {
	// lost says that the call may have been carried out all the same.
	lost bool
	// throttled says that the server wants to be asked less, and after how long
	// again; zero if it does not say.
	throttled bool
	after     time.Duration
}

// judge tells how an answer came about. A server that throttles refuses a call
// before it does anything; one that says "later" in any other way may have done
// it.
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
