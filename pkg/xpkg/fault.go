package xpkg

import "github.com/xpkg-dev/xpkg/pkg/errcode"

// A fault is a problem inside one document, before the identity of the document is known.
type fault struct {
	code errcode.Code
	// line is relative to the document, from 1; 0 when it is not known.
	line int
	what string
	// excerpt shows the position within the source text; it may be empty.
	excerpt string
}

func (f *fault) Error() string { return f.what }
