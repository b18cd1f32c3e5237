package revisions

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// reconcileTerminating keeps the runtime of a revision running while its package waits for the
// deletion of its CRDs: only the runtime can remove its finalizers from custom resources. It starts
// the runtime again after a restart of the manager, and writes no objects of the package.
func (r *Reconciler) reconcileTerminating(ctx context.Context, in *reconciliation) error {
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

// releaseDeleted removes the finalizer of Crossplane core from a revision that is being deleted.
func (r *Reconciler) releaseDeleted(ctx context.Context, rev v1.PackageRevision) error {
	if rev.GetDeletionTimestamp() == nil || !controllerutil.ContainsFinalizer(rev, v1.FinalizerRevision) {
		return nil
	}
	released := rev.DeepCopyObject().(v1.PackageRevision)
	controllerutil.RemoveFinalizer(released, v1.FinalizerRevision)
	return client.IgnoreNotFound(r.API.Client.Update(ctx, released))
}
