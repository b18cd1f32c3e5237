package registry

import "time"

// emptyListTime is the time after which a registry that listed repositories before has none.
const emptyListTime = 5 * time.Minute

// emptyList finds out whether a registry has no repositories any more. Some registries respond with an empty list while their storage fails.
type emptyList struct {
	// listed means that the last complete list had repositories, and since is the time of the first empty one after it.
	listed bool
	since  time.Time
}

// check fails for an empty list that follows one with repositories, until the registry has responded with it for a while.
func (e *emptyList) check(host string, repositories int, now time.Time) error {
	if repositories > 0 || !e.listed {
		*e = emptyList{listed: repositories > 0}
		return nil
	}
	if e.since.IsZero() {
		e.since = now
	}
	if now.Sub(e.since) >= emptyListTime {
		*e = emptyList{}
		return nil
	}
	return ErrServer.New(nil, "%s lists no repositories any more; the index keeps its packages until the list was empty for %s", host, emptyListTime)
}
