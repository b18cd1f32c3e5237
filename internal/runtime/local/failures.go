package local

import "github.com/xpkg-dev/xpkg/internal/failure"

// ErrNotForProcesses is the failure of a configuration that only a node can carry out.
var ErrNotForProcesses = failure.Register(failure.Code{
	Name: "NotForProcesses", Class: failure.Unsupported,
	Cause: "The configuration of a program asks for something that a process of this machine cannot have, such as a second container or a volume of a cluster.",
	Fix:   "Leave out what the message names, or use the runtime Deployment on a cluster.",
})

// Reasons of programs that are not available.
const (
	// ReasonStarting is that of a program that has not run for long enough.
	ReasonStarting = "Starting"
	// ReasonCrash is that of a program that ends.
	ReasonCrash = "CrashLoop"
	// ReasonNotAnswering is that of a program that runs and does not answer where it
	// should.
	ReasonNotAnswering = "NotAnswering"
	// ReasonCertificates is that of a program whose certificates are not there yet.
	ReasonCertificates = "CertificatesMissing"
)
