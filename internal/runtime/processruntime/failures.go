package processruntime

import "github.com/xpkg-dev/xpkg/pkg/errcode"

// ErrNotForProcesses is the failure of a configuration that only a node can carry out.
var ErrNotForProcesses = errcode.Code{
	Name: "NotForProcesses", Class: errcode.Unsupported,
	Cause: "The runtime configuration of a package requires something that a process of this machine cannot have, such as a second container or a volume of a cluster.",
	Fix:   "Remove the setting in the message, or use the runtime Deployment on a cluster.",
}

// Reasons of runtimes that are not available, in addition to the common ones.
const (
	// ReasonMissing is the reason of a runtime that needs an object of the cluster that does
	// not exist yet: its certificates, or an object that its configuration names.
	ReasonMissing = "ObjectMissing"
)

// missing is the error of a runtime that needs an object that does not exist yet. It is
// retried, as a node retries the start of a pod.
type missing string

// Error implements error.
func (m missing) Error() string { return string(m) }
