// Package failure holds the one kind of error that a user of xpkg sees.
//
// A failure says what failed, why, and what to do about it. It carries a code
// that never changes its meaning, so that scripts, conditions and documentation
// can refer to it, and it belongs to one of a few classes. The class decides the
// exit code of the command and the reason of a condition, so that the same
// mistake looks the same on a terminal and in a cluster.
package failure

import (
	"errors"
	"fmt"
	"strings"
)

// Class groups failures by what can be done about them. A class is the exit code
// of a command; see docs/reference/errors.md for the table.
type Class struct {
	// Name is the CamelCase word that conditions and JSON output use.
	Name string
	// Exit is the exit code of a command that ends with this class.
	Exit int
	// Retry says that the same attempt can succeed later without a change of
	// the input: the manager tries again with backoff.
	Retry bool
	// Meaning is one sentence for the reference documentation.
	Meaning string
}

// The classes. Exit code 0 is success, and 2 is reserved for "there are changes"
// of commands that compare.
var (
	Internal     = Class{"Internal", 1, true, "A fault of xpkg itself, or one that it could not classify."}
	Usage        = Class{"Usage", 3, false, "The command line or a setting is wrong."}
	Invalid      = Class{"Invalid", 4, false, "The package, file or object that was given is not valid."}
	NotFound     = Class{"NotFound", 5, true, "The file, tag, package or object that was named does not exist."}
	Unauthorized = Class{"Unauthorized", 6, true, "A registry or a cluster refused the credentials."}
	Unavailable  = Class{"Unavailable", 7, true, "A registry or a cluster cannot be reached or cannot answer now."}
	Untrusted    = Class{"Untrusted", 8, true, "Bytes are not what their digest, signature or certificate says."}
	Conflict     = Class{"Conflict", 9, true, "Something that is needed belongs to somebody else."}
	Limit        = Class{"Limit", 10, false, "The input is larger than a configured limit."}
	Timeout      = Class{"Timeout", 11, true, "The wait ended before the condition was met."}
	Unhealthy    = Class{"Unhealthy", 12, true, "The package is installed, but it is not healthy."}
	Unsupported  = Class{"Unsupported", 13, false, "The version or the platform is not supported."}
	Interrupted  = Class{"Interrupted", 130, true, "The user or the system stopped the operation."}
)

// Classes lists every class in the order of its exit code.
func Classes() []Class {
	return []Class{
		Internal, Usage, Invalid, NotFound, Unauthorized, Unavailable, Untrusted,
		Conflict, Limit, Timeout, Unhealthy, Unsupported, Interrupted,
	}
}

// A Code names one way to fail. It is stable: a code is never renamed and never
// given another meaning.
type Code struct {
	// Name is CamelCase, for example "DigestMismatch".
	Name string
	// Class decides the exit code.
	Class Class
	// Cause and Fix are one sentence each, for the reference documentation.
	Cause, Fix string
}

// New makes a failure of this code. What says what failed, with the name of the
// thing in it, in lower case and without a full stop. Why is the cause and may
// be nil.
func (c Code) New(why error, what string, args ...any) *Error {
	return &Error{Code: c, What: fmt.Sprintf(what, args...), Why: why, Do: c.Fix}
}

// Is reports whether err is, or wraps, a failure of this code.
func (c Code) Is(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Code.Name == c.Name
}

// Error is a failure: what failed, why, and what to do.
type Error struct {
	Code Code
	What string
	Why  error
	// Do says what to do next. It starts as the general fix of the code.
	Do string
}

// WithDo gives this failure its own advice instead of the general one.
func (e *Error) WithDo(do string, args ...any) *Error {
	e.Do = fmt.Sprintf(do, args...)
	return e
}

// Error is the sentence without the advice: "what: why".
func (e *Error) Error() string {
	if e.Why == nil {
		return e.What
	}
	return e.What + ": " + e.Why.Error()
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Why }

// Unknown is the code of an error that no part of xpkg has classified.
var Unknown = Register(Code{
	Name: "Unknown", Class: Internal,
	Cause: "An error reached the user that xpkg has no better name for.",
	Fix:   "Try again, and report the whole message if it stays.",
})

// From gives err as a failure: itself when it is one, and otherwise a failure of
// the code Unknown. The failure nearest to the surface wins, since it knows most
// about what the user asked for.
func From(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		if outer := err.Error(); outer != e.Error() {
			// Keep the words that were wrapped around the failure.
			return &Error{Code: e.Code, What: strings.TrimSuffix(outer, ": "+e.Error()), Why: e, Do: e.Do}
		}
		return e
	}
	return &Error{Code: Unknown, What: err.Error(), Do: Unknown.Fix}
}

// Message is the sentence for a condition: code, what failed and why, what to do.
func Message(err error) string {
	e := From(err)
	m := e.Code.Name + ": " + e.Error() + "."
	if e.Do != "" {
		m += " " + e.Do
	}
	return m
}
