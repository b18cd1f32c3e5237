package location

import (
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// ErrReadFile is the code for a file or standard input that cannot be read.
var ErrReadFile = errcode.Code{
	Name: "ReadFile", Class: errcode.NotFound,
	Cause: "A file or standard input cannot be read.",
	Fix:   "Check the path and its permissions.",
}
