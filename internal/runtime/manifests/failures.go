package manifests

import (
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// privilegeFlag is the flag of the manager that allows a privilege, which follows it.
const privilegeFlag = "--allow-runtime-privilege="

// Failures of building the objects of a runtime.
var (
	// ErrUnpinnedImage is the code for an image without a digest, whose content could change after
	// it was verified.
	ErrUnpinnedImage = errcode.Code{
		Name: "UnpinnedImage", Class: errcode.Internal,
		Cause: "The image of a runtime has no digest, so it may differ from the verified image.",
		Fix:   "Report the whole message: the package manager resolves images to digests before it runs them.",
	}
	// ErrPrivileges is the code for a runtime configuration that requests privileges that the
	// manager does not allow.
	ErrPrivileges = errcode.Code{
		Name: "RuntimePrivileges", Class: errcode.Invalid,
		Cause: "The runtime configuration of a package requests privileges, such as hostNetwork, a hostPath volume or the ServiceAccount of another owner, that the manager does not allow.",
		Fix:   "Remove them from the DeploymentRuntimeConfig, the ControllerConfig, or the Package of the first generation, or restart the manager as the message describes. The former version keeps running.",
	}
	// ErrRejected is the code for a runtime whose objects the API server refuses.
	ErrRejected = errcode.Code{
		Name: "RuntimeRejected", Class: errcode.Invalid,
		Cause: "The API server refuses an object of a package runtime, as its configuration or the name of the package describes it. Nothing of the package is written.",
		Fix:   "Correct the DeploymentRuntimeConfig or ControllerConfig of the package, or the Package of the first generation.",
	}
	// ErrNoProgramKind is the code for a package of a kind that has no runtime.
	ErrNoProgramKind = errcode.Code{
		Name: "NoProgramKind", Class: errcode.Internal,
		Cause: "A runtime was requested for a package that is neither a Provider nor a Function.",
		Fix:   "Report the whole message: only Providers and Functions have runtimes.",
	}
)
