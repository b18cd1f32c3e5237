package revisions

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/xpkg-dev/xpkg/internal/activation"
	"github.com/xpkg-dev/xpkg/internal/controller/requeue"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// reconciliation is one reconciliation of a revision. Each step reads the results of the steps before it, and
// adds its own.
type reconciliation struct {
	revision.Set

	// acceptConsents; nil if all consents of the package count.
	unaccepted *unaccepted
	// readContent
	pkg     *xpkg.Package
	source  state.Source
	kinds   *activation.Selection
	objects *desired.Objects
	// dependencyGraph; the content of the packages in the graph.
	contents state.KnownContents
	// prepareRuntime; nil for a package whose runtime the manager does not run.
	workload *workload
	// planObjects: the changes that applyObjects writes, and the webhook configurations, which are
	// written once the runtime serves them.
	changes, webhooks plan.Plan
	// restored are the objects among the changes that another client has deleted.
	restored []plan.Ref
	// wrote reports whether objects of the revision were written, or are as it contains them.
	wrote bool

	outcome
}

// outcome is the result of a reconciliation that did not fail.
type outcome struct {
	summary revision.Summary
	result  ctrl.Result
	// stopped is set by a step after which no other step runs.
	stopped bool
}

// step is a step of a reconciliation. An error ends the reconciliation.
type step func(ctx context.Context, in *reconciliation) error

// run runs steps until one fails or stops the reconciliation.
func (in *reconciliation) run(ctx context.Context, steps ...step) error {
	in.summary = revision.Ready
	for _, step := range steps {
		if err := step(ctx, in); err != nil || in.stopped {
			return err
		}
	}
	return nil
}

// stop ends the reconciliation with a summary. The reconciliation is repeated after a delay, or at
// the next event if the delay is zero.
func (o *outcome) stop(summary revision.Summary, after time.Duration) {
	o.stopped, o.summary, o.result = true, summary, ctrl.Result{RequeueAfter: after}
}

// requeueAt moves the next reconciliation forward to a time. The zero time changes nothing.
func (o *outcome) requeueAt(at, now time.Time) { o.result = requeue.By(o.result, at, now) }

// requeueAfter limits the delay until the next reconciliation. Zero changes nothing.
func (o *outcome) requeueAfter(delay time.Duration) {
	if delay > 0 {
		o.result = requeue.Within(o.result, delay)
	}
}
