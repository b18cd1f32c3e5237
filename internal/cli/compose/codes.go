package compose

import "github.com/xpkg-dev/xpkg/pkg/errcode"

// Codes returns the error codes that this package defines, in alphabetical order.
func Codes() []errcode.Code {
	return []errcode.Code{
		ErrFunctionRuntime,
		ErrNothingToValidate,
	}
}
