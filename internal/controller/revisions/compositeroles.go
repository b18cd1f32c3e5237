package revisions

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
)

// reconcileCompositeRoles writes the aggregated ClusterRoles for the composite resources that a
// Configuration defines. Their owner is the XRD, as with Crossplane's RBAC manager, so that both can work
// side by side.
//
// No runtime needs these roles. If the manager lacks the permissions to grant them, the package is
// healthy without them.
func (r *Reconciler) reconcileCompositeRoles(ctx context.Context, in *install) error {
	composites, err := in.objects.Composites()
	if err != nil || len(composites) == 0 {
		return err
	}
	var set rbac.Set
	owners := map[plan.Ref]plan.Owner{}
	for _, o := range in.Revision.RevisionStatus().ObjectRefs {
		c, ok := composites[plan.Ref{APIVersion: o.APIVersion, Kind: o.Kind, Name: o.Name}]
		if !ok || o.UID == "" || rbac.Reserved(schema.GroupResource{Group: c.Group, Resource: c.Plural}) {
			continue
		}
		for _, role := range rbac.DeriveComposite(c) {
			set.ClusterRoles = append(set.ClusterRoles, role)
			owners[desired.RoleRef("ClusterRole", "", role.Name)] = plan.Owner{APIVersion: o.APIVersion, Kind: o.Kind, Name: o.Name, UID: o.UID}
		}
	}
	roles, err := desired.Roles(set)
	if err != nil {
		return err
	}
	live, err := r.cachedRoles(ctx, roles.Refs())
	if err != nil {
		return err
	}
	change := roleChange{set: set, content: roles.Content}
	for _, d := range roles.Desired() {
		one := plan.Establish([]plan.Desired{d}, live, nil, plan.Requester{Revision: owners[d.Ref]})
		change.plan.Changes = append(change.plan.Changes, one.Changes...)
	}
	if !change.grants() {
		return r.applyRoles(ctx, change)
	}
	err = r.Checks.Held.Check(ctx, set, r.Packages.Namespace)
	if errors.Is(err, rbac.ErrPermissionMissing) {
		return nil
	}
	if err != nil {
		return err
	}
	return r.applyRoles(ctx, change)
}
