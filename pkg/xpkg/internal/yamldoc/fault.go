package yamldoc

import "github.com/xpkg-dev/xpkg/pkg/errcode"

// A Fault is a problem inside one document, before the identity of the document is known.
type Fault struct {
	// Code identifies the problem.
	Code errcode.Code
	// Line is relative to the document, from 1; 0 when it is not known.
	Line int
	// What describes the problem, in lower case and without a full stop.
	What string
	// OtherFile and OtherLine are the place of another document that What refers to at its end; empty if there is none.
	OtherFile string
	OtherLine int
	// Excerpt shows the position within the source text; it may be empty.
	Excerpt string
}

// Error returns the description of the problem.
func (f *Fault) Error() string { return f.What }
