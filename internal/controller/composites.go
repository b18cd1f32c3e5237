package controller

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
)

// grantComposites makes the roles of the composite resources that a Configuration
// defines. They belong to the definition, and go with it: so does Crossplane's RBAC
// manager, and both can work side by side.
//
// No program waits for these roles. Where the manager may not give them the package is
// healthy without, and the log says what is missing.
func (r *revisionReconciler) grantComposites(ctx context.Context, rev v1.PackageRevision, objects *desired.Objects) error {
	composites, err := objects.Composites()
	if err != nil || len(composites) == 0 {
		return err
	}
	var set rbac.Set
	owners := map[plan.Ref]plan.Owner{}
	for _, o := range rev.RevisionStatus().ObjectRefs {
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
	live, err := r.rolesThere(ctx, roles.Refs())
	if err != nil {
		return err
	}
	change := rightsChange{rights: set, content: roles.Content}
	for _, d := range roles.Desired() {
		one := plan.Establish([]plan.Desired{d}, live, nil, plan.Requester{Revision: owners[d.Ref]})
		change.plan.Changes = append(change.plan.Changes, one.Changes...)
	}
	if !change.gives() {
		return r.carryOutRights(ctx, change)
	}
	err = r.held.Check(ctx, set, r.namespace)
	if errors.Is(err, rbac.ErrPermissionMissing) {
		return nil
	}
	if err != nil {
		return err
	}
	return r.carryOutRights(ctx, change)
}
