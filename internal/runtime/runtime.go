// Package runtime says what it is to run the program of a package, and who does it:
// Deployments of a cluster, processes of this machine, or somebody else.
//
// The program of a revision is described once, by [Program]. Each way to run programs
// is a [Runtime]; the manager is the same for all of them.
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

// Program is the program of one package revision.
type Program struct {
	// Owner is the revision, its package, and the names of all revisions of that.
	Owner plan.Requester
	// Namespace is where programs, their ServiceAccounts and their Services are.
	Namespace string
	// Origin is where its image is: that of the package, or the one that the metadata
	// names in spec.controller.image.
	Origin fetch.Origin
	// Digest is the image. It was resolved before; a tag never decides what runs.
	Digest oci.Digest
	// OfPackage says that the image is that of the package, whose content was fetched
	// from it and verified.
	OfPackage bool
	// PullPolicy is that of the package.
	PullPolicy corev1.PullPolicy
	// PullSecrets are names of secrets with credentials for the image.
	PullSecrets []string
	// ServerSecret and ClientSecret are names of secrets with certificates. What is
	// empty the program does not get.
	ServerSecret, ClientSecret string
	// Certificates stands for what is in the server's secret. Programs that read it
	// once are started anew when it changes; empty, they never are for that.
	Certificates string
	// Settle is how long the program has to run without a restart before it is available.
	// Zero means the default of the runtime. The configuration overrides it with
	// minReadySeconds.
	Settle time.Duration
	// Config is what the administrator wants to be different, or nil.
	Config *v1beta1.DeploymentRuntimeConfig
	// AwaitingActivation says that nothing needs the program yet: it is made ready,
	// and does not run.
	AwaitingActivation bool
}

// Image is the reference of the image with its digest.
func (p Program) Image() string { return p.Origin.Ref.WithDigest(p.Digest).String() }

// State is how a program does.
type State struct {
	// Available reports that the program answers, and has run for its settle time without
	// a restart.
	Available bool
	// Reason is a CamelCase word for why it is not available, and Message says it to a
	// person. Neither changes with every attempt.
	Reason, Message string
	// Endpoint is the gRPC target of a function that is available.
	Endpoint string
	// HeldBy is the revision whose program has the place that this one needs, and has
	// to be stopped first. It is empty when there is none.
	HeldBy string
	// Reported says that the condition RuntimeHealthy of the revision is somebody
	// else's, and says the same.
	Reported bool
	// Again is when to look again although nobody tells of a change; zero for never.
	Again time.Duration
}

// Reasons of programs that are not available, beside those of each runtime.
const (
	// ReasonNotReported is that of a program of which nobody has reported how it does.
	ReasonNotReported = "NotReported"
	// ReasonWaiting is that of a program that waits for another one to end.
	ReasonWaiting = "WaitingForPredecessor"
	// ReasonStarting is the reason of a program that has not run for its settle time.
	ReasonStarting = "Starting"
	// ReasonCrashed is the reason of a program that exited and is being restarted.
	ReasonCrashed = "Crashed"
	// ReasonCrashLoop is the reason of a program that was restarted at least
	// crashLoopRestarts times, and exited again or has not run for its settle time since.
	ReasonCrashLoop = "CrashLoop"
	// ReasonNotAnswering is the reason of a program that runs and is not ready.
	ReasonNotAnswering = "NotAnswering"
)

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

// IsProgramFailure reports whether a reason describes the behavior of the program itself,
// so that another version may do better. A program that is not available for any other
// reason, such as a lost node, would not be available in another version either.
func IsProgramFailure(reason string) bool {
	return reason == ReasonCrashed || reason == ReasonCrashLoop || reason == ReasonNotAnswering
}

// A Runtime runs programs. It can be used by many goroutines, for the revisions of
// one package by one at a time.
type Runtime interface {
	// Obtain gets the image, or proves that it can be had. Nothing runs because of
	// it, and nothing is written to the cluster.
	Obtain(ctx context.Context, p Program) error
	// ServiceAccount is the name of what the program runs as, in its namespace.
	ServiceAccount(p Program) (string, error)
	// Run makes the program what it should be, and tells how it does. It does not
	// wait for the program to become available.
	Run(ctx context.Context, p Program) (State, error)
	// Others are revisions of the package, but for this one, whose programs run or may
	// still run; also revisions that exist no more. A requester without a revision
	// asks for all.
	Others(ctx context.Context, who plan.Requester) ([]plan.Owner, error)
	// Stop ends the program of a revision, and reports whether nothing of it is left.
	Stop(ctx context.Context, revision plan.Owner) (gone bool, err error)
}
