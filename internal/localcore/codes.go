package localcore

import "github.com/xpkg-dev/xpkg/pkg/errcode"

// Codes for a core that cannot run.
var (
	ErrVersion = errcode.Code{
		Name: "CoreVersion", Class: errcode.Unsupported,
		Cause: "This version of Crossplane core cannot run without managing packages itself, or was not tested with xpkg.",
		Fix:   "Use Crossplane 2.0 or later.",
	}
	ErrInvalid = errcode.Code{
		Name: "InvalidCore", Class: errcode.Invalid,
		Cause: "The file is neither a Linux executable for this processor nor the archive of an image.",
		Fix:   "Pass the image of Crossplane by its reference, as an archive, or the executable crossplane of a build for this machine.",
	}
	ErrNotReady = errcode.Code{
		Name: "CoreNotReady", Class: errcode.Unhealthy,
		Cause: "Crossplane core was started as a process and is not ready.",
		Fix:   "Read its log with `xpkg logs crossplane`, and the log of its initialization with `xpkg logs crossplane-init`.",
	}
)

// Codes returns the error codes that this package defines, in alphabetical order.
func Codes() []errcode.Code {
	return []errcode.Code{
		ErrInvalid,
		ErrNotReady,
		ErrVersion,
	}
}
