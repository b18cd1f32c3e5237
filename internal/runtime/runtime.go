// Package runtime runs package runtimes: as Deployments of a cluster, as processes of this
// machine, or in another system.
//
// [Workload] describes the runtime of a revision, and [Runtime] is a way to run it. The
// manager treats all of them the same way.
package runtime

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// Workload describes the runtime of one package revision.
type Workload struct {
	// Owner is the revision, its package, and the names of all revisions of the package.
	Owner plan.Requester
	// Namespace is the namespace of runtimes, their ServiceAccounts and their Services.
	Namespace string
	// Origin is the origin of the image: the image of the package, or the image in
	// spec.controller.image of its metadata.
	Origin fetch.Origin
	// Digest is the resolved digest of the image. A tag never selects the image that runs.
	Digest oci.Digest
	// External reports that another system fetches and runs the image. It has no digest if the manager cannot read it.
	External bool
	// OfPackage reports that the image is the image of the package, which was fetched and verified.
	OfPackage bool
	// PullPolicy is the pull policy of the package.
	PullPolicy corev1.PullPolicy
	// PullSecrets are names of secrets with credentials for the image.
	PullSecrets []string
	// ServerSecret and ClientSecret are the names of secrets with certificates. A secret
	// without a name is not mounted.
	ServerSecret, ClientSecret string
	// Certificates identifies the content of the server secret. A runtime that reads the secret
	// only once is restarted when it changes. It is empty for runtimes that reload certificates.
	Certificates string
	// Restart identifies an event after which the runtime must start again; empty if there was none.
	Restart string
	// ExplainsExit makes the state of a program that exited contain what it wrote last.
	ExplainsExit bool
	// Settle is the time for which the program must run without a restart before it is available.
	// Zero means the default of the runtime. The configuration overrides it with minReadySeconds.
	Settle time.Duration
	// Config is the administrator's configuration, or nil.
	Config *v1beta1.DeploymentRuntimeConfig
	// AwaitingActivation reports that no resource needs the runtime yet: it is prepared and
	// does not run.
	AwaitingActivation bool
}

// Image returns the reference of the image with its digest.
func (p Workload) Image() string { return p.Origin.Ref.WithDigest(p.Digest).String() }

// State is the state of a runtime.
type State struct {
	// Available reports that the program serves, and has run for its settle time without a restart.
	Available bool
	// Reason is a CamelCase word for the reason why the runtime is not available, and Message
	// describes it for users. Neither changes with every restart.
	Reason, Message string
	// Log is what a program that exited wrote last, if [Workload.ExplainsExit] is set.
	Log string
	// Endpoint is the gRPC target of a function that is available.
	Endpoint string
	// RollingOut reports that pods of an earlier specification still run. Such a Deployment
	// can be available while none of its new pods is.
	RollingOut bool
	// HeldBy is the revision whose runtime has the name that this one needs and must be
	// stopped first, or empty.
	HeldBy string
	// Reported reports that another system writes the condition RuntimeHealthy of the
	// revision.
	Reported bool
	// Again is the time until the state must be read again without an event; zero for never.
	Again time.Duration
}

// Reasons of runtimes that are not available, in addition to the reasons of each kind.
const (
	// ReasonNotReported is the reason of a runtime whose health was not reported.
	ReasonNotReported = "NotReported"
	// ReasonWaiting is the reason of a runtime that waits for another one to stop.
	ReasonWaiting = "WaitingForPredecessor"
	// ReasonStarting is the reason of a program that has not run for its settle time.
	ReasonStarting = "Starting"
	// ReasonCrashed is the reason of a program that exited and is being restarted.
	ReasonCrashed = "Crashed"
	// ReasonCrashLoop is the reason of a program that was restarted at least
	// crashLoopRestarts times, and exited again or has not run for its settle time since.
	ReasonCrashLoop = "CrashLoop"
	// ReasonNotServing is the reason of a program that runs and is not ready.
	ReasonNotServing = "NotServing"
	// ReasonAccountRestored is the reason of a program whose ServiceAccount was deleted and created again, and whose token
	// is not valid any more.
	ReasonAccountRestored = "ServiceAccountRestored"
)

// AccountRestored returns the message for [ReasonAccountRestored].
func AccountRestored(account string) string {
	return "the ServiceAccount " + account + " was deleted and created again, and the runtime gets a new token"
}

// crashLoopRestarts is the number of restarts that makes a crash loop. A program that
// exits once, for example when a connection breaks, is not in one.
const crashLoopRestarts = 3

// CrashReason returns the reason of a program that exited after a number of restarts.
func CrashReason(restarts int) string {
	if restarts >= crashLoopRestarts {
		return ReasonCrashLoop
	}
	return ReasonCrashed
}

// IsRuntimeFailure reports whether a reason describes the behavior of the program itself, so that
// another version may work. A program that is not available for any other reason, such as a lost
// node, would not be available in another version either.
func IsRuntimeFailure(reason string) bool {
	return reason == ReasonCrashed || reason == ReasonCrashLoop || reason == ReasonNotServing
}

// Runtime runs the runtimes of packages. It is safe for concurrent use, except that the runtimes of
// one package may be used by only one goroutine at a time.
type Runtime interface {
	// Obtain fetches the image, or checks that it can be pulled. It starts nothing, and writes
	// nothing to the cluster.
	Obtain(ctx context.Context, p Workload) error
	// ServiceAccount returns the name of the ServiceAccount of the runtime, in its namespace.
	ServiceAccount(p Workload) (string, error)
	// Run creates or updates the runtime, and returns its state. It does not wait until the
	// runtime is available.
	Run(ctx context.Context, p Workload) (State, error)
	// Others returns the other revisions of the package whose runtimes run or may still run,
	// including deleted revisions. For a requester without a revision, it returns all of them.
	Others(ctx context.Context, who plan.Requester) ([]plan.Owner, error)
	// Stop stops the runtime of a revision, and reports whether it has stopped completely.
	Stop(ctx context.Context, revision plan.Owner) (gone bool, err error)
}
