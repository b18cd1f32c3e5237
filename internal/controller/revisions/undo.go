package revisions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/controller/logging"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// isFirstInstall reports whether no version of the package of a revision was ever healthy. A later version that is
// rejected is rolled back instead.
func isFirstInstall(in *reconciliation) bool {
	return in.Package != nil && in.Package.PackageStatus().LastHealthyRevision == ""
}

// isRejection reports whether the API server rejected an object, so that a retry would fail too.
func isRejection(err error) bool {
	return errors.Is(err, apply.ErrRejected) || errors.Is(err, apply.ErrDenied)
}

// explainPartial returns the failure of an update whose objects were written, at least in part, with the code
// PartlyWritten if admission denied another object: the package is rolled back, because it would run a mixture of two
// versions.
func explainPartial(in *reconciliation, failure error) error {
	if !in.wrote || isFirstInstall(in) || !errors.Is(failure, apply.ErrDenied) {
		return failure
	}
	if a := in.Package.PackageStatus().Activation; a != nil && a.Revision == in.Revision.GetName() && a.Healthy {
		return failure // Every object was written before.
	}
	return apply.ErrPartial.New(failure, "other objects of %s were written", in.Revision.GetName())
}

// dryRunRejected makes a dry run of the changes of a first install that the API server rejected
// before, so that a retry does not write a part of the objects again.
func (r *Reconciler) dryRunRejected(ctx context.Context, in *reconciliation, p plan.Plan) error {
	reason := string(in.Revision.GetCondition(v1.TypeReady).Reason)
	if reason != apply.ErrRejected.Name && reason != apply.ErrDenied.Name || !isFirstInstall(in) || len(p.Refusals) > 0 {
		return nil
	}
	_, err := r.API.Cluster.DryRun().Run(ctx, p, in.objects.Content)
	if !isRejection(err) || apply.NoDryRun(err) {
		return nil
	}
	return err
}

// undo deletes the objects that a first install has created before the API server rejected one of
// its objects. It removes them from written, and returns the failure, which names the objects that
// remain.
func (r *Reconciler) undo(
	ctx context.Context, in *reconciliation, p plan.Plan, written map[plan.Ref]plan.Written, failure error,
) error {
	if !isRejection(failure) || !isFirstInstall(in) {
		return failure
	}
	remaining := r.API.Cluster.Undo(ctx, p, written)
	deleted := 0
	for _, ch := range p.Changes {
		if _, ok := written[ch.Ref]; ok && ch.Action == plan.Create && !slices.Contains(remaining, ch.Ref) {
			delete(written, ch.Ref)
			deleted++
		}
	}
	logging.FromContext(ctx).InfoContext(ctx, "first install rejected", "deleted", deleted, "remaining", len(remaining))
	if len(remaining) == 0 {
		return failure
	}
	var names []string
	for _, ref := range remaining {
		names = append(names, ref.Kind+" "+ref.Name)
	}
	const most = 3
	e := errcode.From(failure)
	return e.Also("%s; remove the rest with `xpkg uninstall %s %s`.",
		fmt.Sprintf("Created before and in use, or of a kind that xpkg does not delete: %s", wording.Few(names, most, ", ")),
		strings.ToLower(in.Package.PackageKind()), wording.ShellWord(in.Package.GetName()))
}
