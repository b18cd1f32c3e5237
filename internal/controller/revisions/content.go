package revisions

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller/requeue"
	"github.com/xpkg-dev/xpkg/internal/controller/status"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// unreadableError marks the failure to read the content of a revision.
type unreadableError struct{ error }

func (e unreadableError) Unwrap() error { return e.error }

// readContent reads the package of a revision, and selects the objects that it installs.
func (r *Reconciler) readContent(ctx context.Context, in *reconciliation) (err error) {
	if in.pkg, in.source, err = r.readPackage(ctx, in.Revision); err != nil {
		return unreadableError{err}
	}
	r.API.Status.SetLookupResult(in.Revision, nil)
	r.reportAccepted(in)
	return r.selectObjects(ctx, in)
}

// selectObjects sets the objects that the revision installs: those of its package, without the CRDs of inactive kinds.
func (r *Reconciler) selectObjects(ctx context.Context, in *reconciliation) (err error) {
	if in.kinds, err = r.Packages.Kinds.Select(ctx, in.Package, in.pkg, in.Revision); err != nil {
		return err
	}
	in.objects, err = r.Packages.Desired(in.pkg, in.Revision, in.kinds)
	return err
}

// reportAccepted records an event with the deviations that the lenient policy accepts in the
// content of a revision that is not established yet.
func (r *Reconciler) reportAccepted(in *reconciliation) {
	found := revision.AcceptedContent(in.pkg)
	if len(found) > 0 && !revision.IsEstablished(in.Revision) {
		r.API.Status.Events.Eventf(in.Revision, nil, corev1.EventTypeWarning, "LenientContent", "Install",
			"accepted with the lenient policy: %s", status.Clip(strings.Join(found, "; ")))
	}
}

// readPackage reads the package of a revision, and records in the status its image, the ImageConfigs that
// apply, and its capabilities and permission requests.
func (r *Reconciler) readPackage(ctx context.Context, rev v1.PackageRevision) (*xpkg.Package, state.Source, error) {
	pkg, source, err := r.Packages.ReadRevision(ctx, rev)
	status := rev.RevisionStatus()
	if !source.Digest.IsZero() {
		status.AppliedImageConfigRefs, status.ResolvedImage = source.Route.Applied,
			source.Origin.Ref.WithDigest(source.Digest).String()
	}
	if err == nil {
		status.Capabilities, status.PermissionRequests = pkg.Meta.Capabilities, pkg.Meta.PermissionRequests
	}
	return pkg, source, err
}

// keepLastKnown keeps the health of an established revision whose content cannot be read now, if
// the revision still controls all of its objects. Otherwise it returns cause.
func (r *Reconciler) keepLastKnown(ctx context.Context, in *reconciliation, cause error) error {
	if !requeue.IsTransient(cause) || !revision.IsEstablished(in.Revision) {
		return cause
	}
	refs := revision.Objects(in.Revision)
	live, err := r.API.Cluster.Metadata(ctx, refs)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(refs, func(ref plan.Ref) bool { return !in.Requester().Controls(live[ref]) }) {
		return cause
	}
	r.API.Status.SetLookupResult(in.Revision, cause)
	in.stop(revision.Ready, requeue.AfterLookup(cause, r.Checks.Poll, r.API.Now()))
	return nil
}
