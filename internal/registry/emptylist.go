package registry

import "time"

// emptyListTime is the time after which a registry that listed repositories before has none.
const emptyListTime = 5 * time.Minute

// emptyList finds out whether a registry has no repositories, or no versions, any more. Some registries respond with an empty list while their storage fails.
type emptyList struct {
	// listed means that the last complete list had entries, and since is the time of the first empty one after it.
	listed bool
	since  time.Time
	// accepted means that this process has used a list. Before, an empty one is compared with what an earlier process has listed.
	accepted bool
}

// accept uses a list.
func (e *emptyList) accept(number int) { *e = emptyList{listed: number > 0, accepted: true} }

// check fails for an empty list that follows one with entries, until the registry has responded with it for a while.
func (e *emptyList) check(host, entries string, number int, now time.Time) error {
	if number > 0 || !e.listed {
		e.accept(number)
		return nil
	}
	if e.since.IsZero() {
		e.since = now
	}
	if now.Sub(e.since) >= emptyListTime {
		e.accept(0)
		return nil
	}
	return ErrServer.New(nil, "%s lists no %s any more; the index keeps its packages until the list was empty for %s", host, entries, emptyListTime)
}
