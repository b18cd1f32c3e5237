package call

import "github.com/xpkg-dev/xpkg/pkg/errcode"

// Codes of calls.
var (
	ErrFunctionTarget = errcode.Code{
		Name: "FunctionTarget", Class: errcode.Usage,
		Cause: "The address of a function is not valid.",
		Fix:   "Write HOST:PORT or dns:///HOST:PORT into the annotation render.crossplane.io/runtime-development-target.",
	}
	ErrFunctionUnreachable = errcode.Code{
		Name: "FunctionUnreachable", Class: errcode.Unavailable,
		Cause: "A function does not answer at its address.",
		Fix:   "Start the function with --insecure, and check the address.",
	}
	ErrFunctionCall = errcode.Code{
		Name: "FunctionCall", Class: errcode.Invalid,
		Cause: "A function answered a call with an error, or with a response that is not valid.",
		Fix:   "Correct the function, or its input in the composition; the message is that of the function.",
	}
)

// Codes returns the error codes that this package defines, in alphabetical order.
func Codes() []errcode.Code {
	return []errcode.Code{ErrFunctionCall, ErrFunctionTarget, ErrFunctionUnreachable}
}
