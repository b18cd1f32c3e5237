package oci

import (
	"errors"
	"time"
)

// later is the cause of a failure that cannot pass before a known time. Its text
// is that of the cause alone when there is one, so that the same failure reads
// the same each time.
type later struct {
	at  time.Time
	why error
}

func (l *later) Error() string {
	if l.why != nil {
		return l.why.Error()
	}
	return "it wants to be left alone until " + l.at.UTC().Format(time.RFC3339)
}

func (l *later) Unwrap() error { return l.why }

// RetryAt gives the time before which the same request fails again without being
// made: a registry asked to be left alone until then, or did not answer for some
// time. It is false for failures that say nothing of the kind.
func RetryAt(err error) (time.Time, bool) {
	var l *later
	if !errors.As(err, &l) {
		return time.Time{}, false
	}
	return l.at, true
}
