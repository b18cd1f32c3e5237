package format

import "github.com/xpkg-dev/xpkg/internal/failure"

// A fault is something wrong inside one document, before it is known what the
// document is.
type fault struct {
	code failure.Code
	// line is relative to the document, from 1; 0 when it is not known.
	line int
	what string
	// excerpt shows the place within what was written, where that helps.
	excerpt string
}

func (f *fault) Error() string { return f.what }
