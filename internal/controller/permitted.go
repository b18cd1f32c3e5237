package controller

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/permission"
	"github.com/xpkg-dev/xpkg/internal/webhooks"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// permitted fails, before anything of a revision is written, when its program may not
// have the rights that it needs: ReservedDefinition, PermissionDenied for requests
// over the ceiling, PermissionIncrease for more rights than the version before it has,
// as long as nobody has approved them, and PermissionMissing for those that the
// manager may not give.
func (r *revisionReconciler) permitted(ctx context.Context, f family, pkg *xpkg.Package, objects *desired.Objects) error {
	f.rev.RevisionStatus().UnapprovedPermissions = nil
	if err := rbac.CheckDefined(objects.Defined()); err != nil {
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
	return r.held.Check(ctx, change.rights, r.namespace)
}

// rightsOf returns the facts that the permissions of a revision follow from.
func (r *revisionReconciler) rightsOf(ctx context.Context, rev v1.PackageRevision, pkg *xpkg.Package, objects *desired.Objects) (rbac.Input, error) {
	loader := permission.Loader{Reader: r.client, Namespace: r.namespace, Namespaced: r.permissions.Namespaced, ClusterScoped: r.cluster.ClusterScoped}
	return loader.Input(ctx, rev, pkg, objects)
}

// underCeiling checks what a revision requests. When the ceiling was lowered, what
// the revision was given before for its requests is taken back.
func (r *revisionReconciler) underCeiling(ctx context.Context, f family, in rbac.Input) error {
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

// approved checks that somebody has approved what a revision has more than the package
// was given so far, where the policy wants that. The first revision of a package has
// nothing that it could be compared with.
//
// What was given is read from the roles of the other revisions. A revision that waited
// in vain has none, so that the next one cannot take what nobody has approved.
func (r *revisionReconciler) approved(ctx context.Context, f family, in rbac.Input) error {
	if !r.permissions.approves(f.pkg) || len(f.siblings) <= 1 {
		return nil
	}
	everywhere, within, err := r.given(ctx, f)
	if err != nil {
		return err
	}
	added := rbac.Beyond(everywhere, within, in)
	if err := permission.Unapproved(f.rev, added); err != nil {
		f.rev.RevisionStatus().UnapprovedPermissions = added
		return err
	}
	return nil
}

// given are the rules of the programs of all revisions of a package, as they are in the
// cluster.
func (r *revisionReconciler) given(ctx context.Context, f family) (everywhere, within []rbacv1.PolicyRule, err error) {
	for _, rev := range f.siblings {
		_, names := rbac.Names(r.kind, rev.GetName())
		for _, name := range names {
			var cluster rbacv1.ClusterRole
			if err := r.live.Get(ctx, client.ObjectKey{Name: name}, &cluster); client.IgnoreNotFound(err) != nil {
				return nil, nil, fmt.Errorf("read what was given to %s: %w", rev.GetName(), err)
			}
			var local rbacv1.Role
			if err := r.live.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: name}, &local); client.IgnoreNotFound(err) != nil {
				return nil, nil, fmt.Errorf("read what was given to %s: %w", rev.GetName(), err)
			}
			everywhere, within = append(everywhere, cluster.Rules...), append(within, local.Rules...)
		}
	}
	return everywhere, within, nil
}

// waitsForRights reports whether a revision waits until a person gives or approves
// rights. Nothing of it was written then.
func waitsForRights(rev v1.PackageRevision) bool {
	reason := rev.GetCondition(v1.TypeReady).Reason
	return looked(rev) && active(rev) && (waitsForApproval(reason) || string(reason) == rbac.ErrPermissionMissing.Name)
}

// waitsForApproval reports whether a reason is that a person decides when to go on.
func waitsForApproval(reason v1.ConditionReason) bool {
	return string(reason) == rbac.ErrPermissionIncrease.Name || string(reason) == webhooks.ErrNotAllowed.Name
}
