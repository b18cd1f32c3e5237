package fault

import (
	"fmt"
	"net/http"
	"time"
)

// Kind is a kind of fault.
type Kind int

// The kinds of fault.
const (
	// None counts calls and injects nothing.
	None Kind = iota
	// KilledBefore kills the process before the call arrives. No later call arrives.
	KilledBefore
	// KilledAfter kills the process after a write was made and before its response arrives. No
	// later call arrives.
	KilledAfter
	// Conflict rejects a write with 409: AlreadyExists for a POST, Conflict for others.
	Conflict
	// Throttled rejects a call with 429 and Retry-After: 1.
	Throttled
	// ServerError rejects a call with 500.
	ServerError
	// LostAnswer makes the call, and then fails with a timeout. Later calls succeed.
	LostAnswer
	// Stale repeats former responses to reads of the cluster for a while, and delays the
	// events of watches.
	Stale
	// Meanwhile runs a function of the test before the call arrives.
	Meanwhile
	// Reset breaks the connection before the call arrives.
	Reset
	// Truncated ends the body of a response in the middle.
	Truncated
	// WrongBytes changes a byte of the body of a response.
	WrongBytes
	// Stall sends half of the body of a response, and then nothing until the request is
	// canceled.
	Stall
	// Hang sends no response until the request is canceled.
	Hang
)

var names = map[Kind]string{
	None: "none", KilledBefore: "killed before the call", KilledAfter: "killed after the call", Conflict: "409",
	Throttled:   "429",
	ServerError: "500", LostAnswer: "answer lost", Stale: "stale reads", Meanwhile: "meanwhile", Reset: "reset",
	Truncated: "truncated body", WrongBytes: "wrong bytes", Stall: "half an answer", Hang: "no answer",
}

// String returns the name of the kind in reports.
func (k Kind) String() string {
	if s, ok := names[k]; ok {
		return s
	}
	return fmt.Sprintf("Kind(%d)", int(k))
}

// Kills reports whether no call of the subject arrives after the fault.
func (k Kind) Kills() bool { return k == KilledBefore || k == KilledAfter }

// applies reports whether a fault of this kind can be injected into a call. Fault.Call counts only
// such calls.
func (k Kind) applies(c Call) bool {
	switch k {
	case None:
		return false
	case Conflict:
		return c.Method != http.MethodGet && c.Method != http.MethodHead
	case KilledAfter:
		// After a read, it would be the same as KilledBefore at the next call.
		return !c.read()
	case Truncated, WrongBytes, Stall:
		return c.Method == http.MethodGet
	case Stale:
		return c.Side == Cluster
	}
	return true
}

// Fault is one fault at one call of a subject.
type Fault struct {
	Kind Kind
	// Side restricts the fault to calls to one side. Empty means both.
	Side Side
	// Filter restricts the fault to the calls for which it returns true. Nil means no restriction.
	Filter func(Call) bool
	// Call is the index, from 0, of the call that gets the fault, among the calls to which the
	// fault applies.
	Call int
	// Duration is the duration of Stale.
	Duration time.Duration
	// Do is called for Meanwhile.
	Do func()
}

// Applies reports whether the fault can be injected into a call.
func (f Fault) Applies(c Call) bool {
	return f.Kind.applies(c) && (f.Side == "" || f.Side == c.Side) && (f.Filter == nil || f.Filter(c))
}

// String returns the side and the kind of the fault.
func (f Fault) String() string {
	if f.Side == "" {
		return f.Kind.String()
	}
	return string(f.Side) + ": " + f.Kind.String()
}
