package manager

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/desired"
	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/permission"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/rights"
)

// permitted fails, before anything of a revision is written, when its program may not
// have the rights that it needs: ReservedDefinition, PermissionDenied for requests
// over the ceiling, PermissionIncrease for more rights than the version before it has,
// as long as nobody has approved them, and PermissionMissing for those that the
// manager may not give.
func (r *revisionReconciler) permitted(ctx context.Context, f family, pkg *format.Package, objects *desired.Objects) error {
	f.rev.RevisionStatus().UnapprovedPermissions = nil
	if err := rights.CheckDefined(objects.Defined()); err != nil {
		return err
	}
	if r.permissions == nil {
		return nil
	}
	in, err := r.rightsOf(ctx, f.rev, pkg, objects)
	if err != nil {
		return err
	}
	if err := r.underCeiling(ctx, f, in); err != nil {
		return err
	}
	change, err := r.planRights(ctx, f, in)
	if err != nil || !change.gives() {
		return err
	}
	if err := r.approved(ctx, f, in); err != nil {
		return err
	}
	return r.held.check(ctx, change.rights, r.namespace)
}

// rightsOf gives what the rights of a revision follow from.
func (r *revisionReconciler) rightsOf(ctx context.Context, rev v1.PackageRevision, pkg *format.Package, objects *desired.Objects) (rights.Input, error) {
	mode := permission.Mode{Namespace: r.namespace, Namespaced: r.permissions.Namespaced}
	if mode.Namespaced {
		var err error
		if mode.ClusterScoped, err = r.cluster.ClusterScoped(ctx); err != nil {
			return rights.Input{}, err
		}
	}
	list := v1.NewPackage(r.kind).NewRevisionList()
	if pkg.Meta.Labels[v1.LabelProviderFamily] != "" {
		if err := r.client.List(ctx, list, client.MatchingLabels{v1.LabelProviderFamily: pkg.Meta.Labels[v1.LabelProviderFamily]}); err != nil {
			return rights.Input{}, fmt.Errorf("list the family: %w", err)
		}
	}
	return permission.Input(rev, pkg, objects, list.Revisions(), mode)
}

// underCeiling checks what a revision requests. When the ceiling was lowered, what
// the revision was given before for its requests is taken back.
func (r *revisionReconciler) underCeiling(ctx context.Context, f family, in rights.Input) error {
	if len(in.Requests) == 0 {
		return nil
	}
	ceiling, err := r.permissions.Ceiling.Read(ctx, r.live, r.namespace)
	if err != nil {
		return err
	}
	denied := ceiling.Check(in.Requests)
	if denied == nil {
		return nil
	}
	if err := r.withdraw(ctx, f, in); err != nil {
		return err
	}
	return denied
}

// approved checks that somebody has approved what a revision has more than the one
// before it, where the policy wants that.
func (r *revisionReconciler) approved(ctx context.Context, f family, in rights.Input) error {
	if !r.permissions.approves(f.pkg) {
		return nil
	}
	name := revision.Previous(f.rev.GetName(), revision.States(f.siblings, f.rev.GetName()))
	for _, before := range f.siblings {
		if before.GetName() != name {
			continue
		}
		was, err := r.rightsBefore(ctx, before.DeepCopyObject().(v1.PackageRevision))
		if err != nil {
			return err
		}
		added, _ := rights.Changes(was, in)
		err = permission.Unapproved(f.rev, added)
		if err != nil {
			f.rev.RevisionStatus().UnapprovedPermissions = added
		}
		return err
	}
	return nil
}

// rightsBefore gives what the rights of an earlier revision follow from, by its
// content.
func (r *revisionReconciler) rightsBefore(ctx context.Context, rev v1.PackageRevision) (rights.Input, error) {
	pkg, _, err := r.obtain(ctx, rev)
	if err != nil {
		return rights.Input{}, fmt.Errorf("compare with the revision %s: %w", rev.GetName(), err)
	}
	objects, err := desired.Of(pkg, revision.Additions(rev, r.namespace))
	if err != nil {
		return rights.Input{}, err
	}
	return r.rightsOf(ctx, rev, pkg, objects)
}

// waitsForRights reports whether a revision waits until a person gives or approves
// rights. Nothing of it was written then.
func waitsForRights(rev v1.PackageRevision) bool {
	reason := rev.GetCondition(v1.TypeReady).Reason
	return looked(rev) && active(rev) && (waitsForApproval(reason) || string(reason) == rights.ErrPermissionMissing.Name)
}

// waitsForApproval reports whether a reason is that a person decides when to go on.
func waitsForApproval(reason v1.ConditionReason) bool {
	return string(reason) == rights.ErrPermissionIncrease.Name
}
