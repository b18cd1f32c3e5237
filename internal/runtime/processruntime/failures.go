package processruntime

import "github.com/xpkg-dev/xpkg/pkg/errcode"

// ErrNotForProcesses is the failure of a configuration that only a node can carry out.
var ErrNotForProcesses = errcode.Code{
	Name: "NotForProcesses", Class: errcode.Unsupported,
	Cause: "The configuration of a program asks for something that a process of this machine cannot have, such as a second container or a volume of a cluster.",
	Fix:   "Leave out what the message names, or use the runtime Deployment on a cluster.",
}

// Reasons of programs that are not available, beside those that all runtimes share.
const (
	// ReasonMissing is that of a program that needs an object of the cluster which is not
	// there yet: its certificates, or what its configuration names.
	ReasonMissing = "ObjectMissing"
)

// missing says what a program needs and is not there yet. It may come, as it may for a
// pod that a node cannot start for want of it.
type missing string

// Error implements error.
func (m missing) Error() string { return string(m) }
