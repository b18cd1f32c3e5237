package remote

import (
	"errors"
	"sync"
	"time"
)

// longestRetryAfter bounds the time for which a host gets no requests. After that, one request shows
// whether the host still rejects requests: a server continues soon after the host has recovered.
const longestRetryAfter = 10 * time.Minute

// A pause is the time for which a host asked for no requests.
type pause struct {
	mu sync.Mutex
	// asked is the end of the time for which the host asked, and until the time of the next request.
	asked, until time.Time
}

// start starts a pause.
func (p *pause) start(now time.Time, asked time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked, p.until = now.Add(asked), now.Add(min(asked, longestRetryAfter))
}

// err returns an error during the pause.
func (p *pause) err(now time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Before(p.until) {
		return &retryAfterError{at: p.until, asked: p.asked}
	}
	return nil
}

// retryAfterError is the cause of a failure that lasts until a known time. Its text is
// the text of the cause, if there is one, so that the message of a repeated failure stays
// the same.
type retryAfterError struct {
	// at is the time of the next request, and asked the one for which the host asked, which can be later.
	at, asked time.Time
	why       error
}

func (l *retryAfterError) Error() string {
	if l.why != nil {
		return l.why.Error()
	}
	return "it accepts no requests until " + l.asked.UTC().Format(time.RFC3339)
}

func (l *retryAfterError) Unwrap() error { return l.why }

// RetryAt returns the time before which the same request fails without being sent,
// because of a Retry-After or an open circuit breaker. It returns false for all other
// failures.
func RetryAt(err error) (time.Time, bool) {
	var l *retryAfterError
	if !errors.As(err, &l) {
		return time.Time{}, false
	}
	return l.at, true
}
