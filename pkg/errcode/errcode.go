// Package errcode defines the errors that users of xpkg see.
//
// An [Error] states what failed, why, and what to do about it. It carries a
// [Code], a stable identifier that scripts, conditions and documentation can
// refer to: a code is never renamed and never changes its meaning. Every code
// belongs to a [Class]. The class determines the exit code of a command and
// whether the manager retries, so that the same failure looks the same on a
// terminal and in a cluster.
//
// A package declares its codes as variables and lists them in a function named
// Codes:
//
//	var ErrTagNotFound = errcode.Code{
//		Name: "TagNotFound", Class: errcode.NotFound,
//		Cause: "The repository does not contain the tag.",
//		Fix:   "List the tags with `xpkg versions REPOSITORY`.",
//	}
//
//	return ErrTagNotFound.New(err, "resolve %s", ref)
//
// Callers test for a code with the standard library:
//
//	if errors.Is(err, remote.ErrTagNotFound) { … }
//
//	var e *errcode.Error
//	if errors.As(err, &e) { fmt.Println(e.Code.Name, e.Do) }
package errcode

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Class groups codes by the caller's possible reactions to the error.
type Class struct {
	// Name is the CamelCase name used in conditions and in JSON output.
	Name string
	// Exit is the exit code of a command that fails with this class.
	Exit int
	// Retry reports whether the same attempt can succeed later without a change of
	// its input. The manager retries such errors with backoff.
	Retry bool
	// Meaning is one sentence for the reference documentation.
	Meaning string
}

// Classes of codes. Exit code 0 is success, and 2 is reserved for commands that compare and find
// changes.
var (
	Internal     = Class{"Internal", 1, true, "A fault of xpkg itself, or an error that it could not classify."}
	Usage        = Class{"Usage", 3, false, "The command line or a setting is wrong."}
	Invalid      = Class{"Invalid", 4, false, "The given package, file or object is not valid."}
	NotFound     = Class{"NotFound", 5, true, "The named file, tag, package or object does not exist."}
	Unauthorized = Class{"Unauthorized", 6, true, "A registry or a cluster rejected the credentials."}
	Unavailable  = Class{"Unavailable", 7, true, "A registry or a cluster cannot be reached or cannot answer now."}
	Untrusted    = Class{"Untrusted", 8, true, "Content does not match its digest, signature or certificate."}
	Conflict     = Class{"Conflict", 9, true, "A required object or name belongs to another owner."}
	Limit        = Class{"Limit", 10, false, "The input is larger than a configured limit."}
	Timeout      = Class{"Timeout", 11, true, "The wait ended before the condition was met."}
	Unhealthy    = Class{"Unhealthy", 12, true, "The package is installed, but it is not healthy."}
	Unsupported  = Class{"Unsupported", 13, false, "The version or the platform is not supported."}
	Interrupted  = Class{"Interrupted", 130, true, "The user or the system stopped the operation."}
)

// Classes returns every class, ordered by exit code.
func Classes() []Class {
	return []Class{
		Internal, Usage, Invalid, NotFound, Unauthorized, Unavailable, Untrusted,
		Conflict, Limit, Timeout, Unhealthy, Unsupported, Interrupted,
	}
}

// ClassNamed returns the class with the given name, and Internal if there is none.
func ClassNamed(name string) Class {
	for _, c := range Classes() {
		if c.Name == name {
			return c
		}
	}
	return Internal
}

// Code identifies one kind of failure.
//
// Code implements error only so that it can be the target of errors.Is. Functions
// return an *Error, which New creates.
type Code struct {
	// Name is CamelCase, for example "DigestMismatch".
	Name string
	// Class determines the exit code.
	Class Class
	// Cause and Fix are one sentence each, for the reference documentation. Fix is
	// also the default of Error.Do.
	Cause, Fix string
	// Final reports whether the failure depends only on the content, so that a retry with the same content
	// fails again. A package revision that has not been healthy is rolled back at once.
	Final bool
	// Refusal reports whether the state of the cluster does not admit the content, and nothing was written. The
	// attempt is repeated, also after a package was rolled back because of it.
	Refusal bool
	// Approval reports whether the package waits for the approval of a user, which is neither
	// progress nor a failure.
	Approval bool
}

// ErrInterrupted is the code for a command that was stopped by a signal.
var ErrInterrupted = Code{
	Name: "Interrupted", Class: Interrupted,
	Cause: "The command was stopped by Ctrl-C or a signal.",
	Fix:   "Run the same command again; it continues where it stopped.",
}

// Error returns the name of the code.
func (c Code) Error() string { return c.Name }

// New returns an error with this code. The format states what failed and names
// the object concerned, in lower case and without a full stop. The cause may be
// nil.
func (c Code) New(cause error, format string, args ...any) *Error {
	return &Error{Code: c, What: fmt.Sprintf(format, args...), Why: cause, Do: c.Fix}
}

// Error is a failure with a stable code: what failed, why, and what to do.
type Error struct {
	// Code identifies the kind of failure.
	Code Code
	// What states what failed, in lower case and without a full stop.
	What string
	// Why is the cause; it may be nil.
	Why error
	// Do states what to do next. New sets it to the fix of the code.
	Do string
}

// WithDo returns a copy of e with more specific advice than the one of the code. It leaves e as it is: concurrent
// callers can share an error.
func (e *Error) WithDo(format string, args ...any) *Error {
	out := *e
	out.Do = HideCredentials(fmt.Sprintf(format, args...))
	return &out
}

// Also returns a copy of e with further advice, a sentence that follows the advice of e.
func (e *Error) Also(format string, args ...any) *Error {
	return e.WithDo("%s", strings.TrimPrefix(e.Do+" "+fmt.Sprintf(format, args...), " "))
}

// Error returns "what: why", without the advice and without credentials.
func (e *Error) Error() string {
	if e.Why == nil {
		return HideCredentials(e.What)
	}
	return HideCredentials(e.What + ": " + e.Why.Error())
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Why }

// Is reports whether target is the code of e. It lets errors.Is compare an error
// with a Code.
func (e *Error) Is(target error) bool {
	c, ok := target.(Code)
	return ok && c.Name == e.Code.Name
}

// Unknown is the code of an error that has no code of its own.
var Unknown = Code{
	Name: "Unknown", Class: Internal,
	Cause: "An error without a code of its own reached the user.",
	Fix:   "Retry. If the error persists, report the whole message.",
}

// From converts err to an *Error. It returns err itself if err is an *Error. If
// err wraps one, the result has the code and the advice of the outermost *Error
// and keeps the text that was wrapped around it. Any other error gets the code
// Unknown.
func From(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		if outer := err.Error(); outer != e.Error() {
			return &Error{Code: e.Code, What: strings.TrimSuffix(outer, ": "+e.Error()), Why: e, Do: e.Do}
		}
		return e
	}
	return &Error{Code: Unknown, What: err.Error(), Do: Unknown.Fix}
}

// IsOfContent reports whether err depends only on the content that was read: it is not valid, exceeds a limit or is not
// supported, so that another attempt fails too. It returns false for nil.
func IsOfContent(err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	return slices.Contains([]Class{Invalid, Limit, Unsupported}, e.Code.Class)
}

// Known reports whether err is an *Error or wraps one.
func Known(err error) bool {
	var e *Error
	return errors.As(err, &e)
}

// Message returns the message of a condition for err: the name of the code, what
// failed and why, and what to do.
func Message(err error) string {
	e := From(err)
	m := e.Code.Name + ": " + e.Error() + "."
	if e.Do != "" {
		m += " " + e.Do
	}
	return m
}
