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
	policy, err := r.underCeiling(ctx, f, in)
	if err != nil {
		return err
	}
	change, err := r.planRights(ctx, f, in)
	if err != nil || !change.gives() {
		return err
	}
	if err := r.approved(ctx, f, in, policy); err != nil {
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
func (r *revisionReconciler) underCeiling(ctx context.Context, f family, in rbac.Input) (rbac.Ceiling, error) {
	if len(in.Requests) == 0 {
		return rbac.Ceiling{}, nil
	}
	ceiling, err := r.permissions.Ceiling.Read(ctx, r.live, r.namespace)
	if err != nil {
		return rbac.Ceiling{}, err
	}
	denied := ceiling.Check(in.Requests)
	if denied == nil {
		return ceiling, nil
	}
	if err := r.withdraw(ctx, f, in); err != nil {
		return rbac.Ceiling{}, err
	}
	return rbac.Ceiling{}, denied
}

// approved fails unless a person has approved the permissions of a revision that need
// approval: those that amount to control of the cluster, unless the policy allows them by
// name, and, if the policy requires it, all that the package did not have so far. The
// first revision of a package cannot be compared with another one.
//
// The permissions so far are read from the roles of the revisions. A revision that was
// never approved has no roles, so that the next one does not inherit its permissions.
func (r *revisionReconciler) approved(ctx context.Context, f family, in rbac.Input, policy rbac.Ceiling) error {
	increase := r.permissions.approves(f.pkg) && len(f.siblings) > 1
	if !increase && len(rbac.Escalating(policy.Allow, nil, nil, in)) == 0 {
		return nil
	}
	everywhere, within, err := r.given(ctx, f)
	if err != nil {
		return err
	}
	unapproved, err := permission.CheckApproval(f.rev, in, everywhere, within, policy.Allow, increase)
	f.rev.RevisionStatus().UnapprovedPermissions = unapproved
	return err
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
	return permission.AwaitsApproval(string(reason)) || string(reason) == webhooks.ErrNotAllowed.Name
}
