package revisions

import (
	"context"
	"errors"
)

// reconcileTerminating runs the runtime of a revision while its package waits until its CRDs are deleted,
// also after a restart of the manager: only the runtime can remove its finalizers from custom resources.
// It writes no objects.
func (r *Reconciler) reconcileTerminating(ctx context.Context, in *install) error {
	err := in.run(ctx,
		r.readContent,
		r.prepareRuntime,
		r.ensureCertificates,
		r.ensureRuntime,
	)
	if cause := (unreadableError{}); errors.As(err, &cause) {
		return r.keepLastKnown(ctx, in, cause.error)
	}
	return err
}
