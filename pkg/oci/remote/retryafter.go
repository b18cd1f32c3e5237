package remote

import (
	"errors"
	"time"
)

// retryAfterError is the cause of a failure that lasts until a known time. Its text is
// the text of the cause, if there is one, so that the message of a repeated failure stays
// the same.
type retryAfterError struct {
	at  time.Time
	why error
}

func (l *retryAfterError) Error() string {
	if l.why != nil {
		return l.why.Error()
	}
	return "it accepts no requests until " + l.at.UTC().Format(time.RFC3339)
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
