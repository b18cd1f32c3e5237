package composition

import "github.com/xpkg-dev/xpkg/pkg/errcode"

// Codes of compositions.
var (
	ErrCompositionInvalid = errcode.Code{
		Name: "CompositionInvalid", Class: errcode.Invalid,
		Cause: "A composition, its composite resource, or another input of a rendering is not valid.",
		Fix:   "Correct the named field.",
	}
	ErrDesiredResource = errcode.Code{
		Name: "DesiredResourceInvalid", Class: errcode.Invalid,
		Cause: "A function of a composition desires a resource that Crossplane cannot create.",
		Fix:   "Correct the input of the function in the composition, or the function.",
	}
	ErrFatalResult = errcode.Code{
		Name: "FatalResult", Class: errcode.Invalid,
		Cause: "A function of a composition returned a fatal result, which ends the pipeline: Crossplane would change no composed resource.",
		Fix:   "Correct the input that the message names, in the composite resource or in the composition.",
	}
	ErrRequirements = errcode.Code{
		Name: "RequirementsUnstable", Class: errcode.Invalid,
		Cause: "A function requires other resources after each of its calls, and Crossplane stops calling it.",
		Fix:   "Correct the function, so that it returns the same requirements when it is called with the resources that it requires.",
	}
)

// Codes returns the error codes that this package defines, in alphabetical order.
func Codes() []errcode.Code {
	return []errcode.Code{ErrCompositionInvalid, ErrDesiredResource, ErrFatalResult, ErrRequirements}
}
