package planner

import (
	"context"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/install"
	"github.com/xpkg-dev/xpkg/internal/permission"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// check makes the checks of the manager for the revision that the plan makes current, and adds to the plan what they
// find and the difference between the permissions of its runtime and those of the running one.
func (pl *planning) check(
	ctx context.Context, s *clusterState, p v1.Package, pkg *xpkg.Package, t revision.Transition, out *Plan,
) error {
	objects, _, err := pl.desired(ctx, p, pkg, t.Current, t.Before)
	if err != nil {
		return err
	}
	f := &facts{planning: pl, s: s, p: p}
	loader := pl.permissionLoader(s)
	if f.after, err = pl.permissionInput(ctx, loader, s, p, t.Current, pkg, objects); err != nil {
		return err
	}
	if f.before, err = pl.permissionsBefore(ctx, loader, s, p, t); err != nil {
		out.warn(fmt.Sprintf("The current permissions of the runtime are not known: %v.", err))
	}
	rev := permittedRevision(t.Before)
	f.inherits = rev == nil || permission.Inherits(t.Current, rev)
	review := install.Review{
		Candidate: install.Candidate{
			Set:     revision.Set{Revision: t.Current, Package: p, Siblings: t.After},
			Content: pkg, Objects: objects, ToAllow: out.commandToAllow(),
		},
		Facts: f,
	}
	for _, stage := range install.Stages() {
		err := review.Check(ctx, stage)
		switch {
		case err == nil || out.refuse(stage, err) || errcode.From(err).Code.Approval:
		case stage == install.Crossplane:
			// A manager that is configured with another version may decide otherwise.
			out.warn(fmt.Sprintf("Whether the package works with the Crossplane in the cluster is not known: %v.", err))
		default:
			return err
		}
	}
	changes := Permissions{NeedsApproval: review.Unapproved}
	changes.Added, changes.Removed = rbac.Changes(f.before, f.after)
	everywhere, within, _ := f.Granted(ctx, f.after)
	own := groupsIn(slices.Concat(f.after.Defined, f.after.Family))
	changes.requestedForeign = rbac.Foreign(rbac.Requested(everywhere, within, f.after), own)
	if changes.CompositeRoles, err = pl.compositeRoles(ctx, objects); err != nil {
		out.warn(fmt.Sprintf("The roles of its composite resources are not known: %v.", err))
	}
	if len(changes.Added)+len(changes.Removed)+len(changes.NeedsApproval)+len(changes.CompositeRoles) > 0 {
		out.Permissions = &changes
	}
	return nil
}

// facts are the facts about a planned revision that the user who plans may read.
type facts struct {
	*planning
	s *clusterState
	p v1.Package
	// before and after are those from which the permissions of the running and of the planned runtime are derived.
	before, after rbac.Input
	// inherits reports whether the planned revision keeps the permissions of the running one.
	inherits bool
}

// Permissions implements [install.Facts].
func (f *facts) Permissions(context.Context) (rbac.Input, error) { return f.after, nil }

// Policy implements [install.Facts].
func (f *facts) Policy(ctx context.Context) (rbac.Policy, error) {
	return f.PermissionPolicy.Read(ctx, f.Reader, f.Namespace)
}

// Granted implements [install.Facts].
func (f *facts) Granted(context.Context, rbac.Input) (everywhere, within []rbacv1.PolicyRule, err error) {
	if f.inherits {
		everywhere, within = rbac.RuntimeRules(f.before)
	}
	return everywhere, within, nil
}

// ApprovesIncrease implements [install.Facts].
func (f *facts) ApprovesIncrease() bool {
	return permission.ApprovesIncrease(f.p) || permission.ApprovesIncrease(&f.s.lock)
}

// CanGrant implements [install.Facts]. A user cannot find out what the manager may grant.
func (f *facts) CanGrant(context.Context, rbac.Input) error { return nil }

// Crossplane implements [install.Facts].
func (f *facts) Crossplane(ctx context.Context, meta xpkg.Meta) error {
	return f.crossplane().Check(ctx, meta)
}
