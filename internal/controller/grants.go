package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/controller/requeue"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// grant makes the roles and bindings of the active revision what they should be, with
// one write for each that differs. Job is its program, or nil where nobody runs one:
// then the roles are there, and bound to nobody.
func (r *revisionReconciler) grant(ctx context.Context, f family, pkg *xpkg.Package, objects *desired.Objects, job *job) error {
	if r.permissions == nil {
		return nil
	}
	if r.kind == v1.ConfigurationKind {
		return r.grantComposites(ctx, f.rev, objects)
	}
	in, err := r.rightsOf(ctx, f.rev, pkg, objects)
	if err != nil {
		return err
	}
	if in.ServiceAccounts, err = job.accounts(); err != nil {
		return failedProgram(err)
	}
	change, err := r.planRights(ctx, f, in)
	if err != nil {
		return err
	}
	return r.carryOutRights(ctx, change)
}

// accounts are whom a program runs as.
func (j *job) accounts() ([]rbacv1.Subject, error) {
	if j == nil {
		return nil, nil
	}
	name, err := j.runtime.ServiceAccount(j.program)
	if err != nil || name == "" {
		return nil, err
	}
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: j.program.Namespace, Name: name}}, nil
}

// withdraw takes back what a revision has for its requests. It gives nobody anything.
func (r *revisionReconciler) withdraw(ctx context.Context, f family, in rbac.Input) error {
	in.Requests = nil
	change, err := r.planRights(ctx, f, in)
	if err != nil {
		return err
	}
	change.plan.Changes = slices.DeleteFunc(change.plan.Changes, func(c plan.Change) bool { return c.Action == plan.Create })
	// Whom the program runs as is not known here: what binds the role stays.
	change.spare = slices.DeleteFunc(change.spare, func(l plan.Live) bool { return l.Ref.Kind != "ClusterRole" && l.Ref.Kind != "Role" })
	return r.carryOutRights(ctx, change)
}

// revoke takes the rights of an inactive revision away.
func (r *revisionReconciler) revoke(ctx context.Context, f family) error {
	if r.permissions == nil {
		return nil
	}
	change, err := r.planRights(ctx, f, rbac.Input{Kind: r.kind, Revision: f.rev.GetName()})
	if err != nil {
		return err
	}
	return r.carryOutRights(ctx, change)
}

// A rightsChange is what has to be done so that a revision has the rights that it
// should have.
type rightsChange struct {
	rights  rbac.Set
	plan    plan.Plan
	content apply.Content
	// spare are the roles and bindings that it has no more use for.
	spare []plan.Live
}

// gives reports whether anybody gets other rights than they have.
func (c rightsChange) gives() bool {
	return slices.ContainsFunc(c.plan.Changes, func(c plan.Change) bool { return !c.MetadataOnly })
}

// planRights compares the roles and bindings that a revision should have with those
// that there are. They belong to the revision alone, and go with it.
func (r *revisionReconciler) planRights(ctx context.Context, f family, in rbac.Input) (rightsChange, error) {
	set := rbac.Derive(in)
	roles, err := desired.Roles(set)
	if err != nil {
		return rightsChange{}, err
	}
	refs := desired.RoleRefs(in.Kind, in.Revision, r.namespace)
	live, err := r.rolesThere(ctx, refs)
	if err != nil {
		return rightsChange{}, err
	}
	who := f.requester()
	who.Package = plan.Owner{}
	out := rightsChange{rights: set, plan: plan.Establish(roles.Desired(), live, nil, who), content: roles.Content}
	wanted := roles.Refs()
	for _, ref := range refs {
		if l, exists := live[ref]; exists && !slices.Contains(wanted, ref) && !l.Deleting && who.Controls(l) {
			out.spare = append(out.spare, l)
		}
	}
	return out, nil
}

// carryOutRights gives what is to be given before it takes what is to be taken.
func (r *revisionReconciler) carryOutRights(ctx context.Context, c rightsChange) error {
	if _, err := r.cluster.Run(ctx, c.plan, c.content); err != nil {
		switch {
		case errors.Is(err, apply.ErrForbidden):
			return r.held.Explain(ctx, c.rights, r.namespace, err)
		case errors.Is(err, apply.ErrMoved):
			// The plan was made of what was watched, which lags behind.
			return errors.Join(requeue.ErrStale, err)
		}
		return err
	}
	for _, l := range c.spare {
		o := metadataOf(schema.FromAPIVersionAndKind(l.Ref.APIVersion, l.Ref.Kind))
		o.SetNamespace(l.Ref.Namespace)
		o.SetName(l.Ref.Name)
		if err := r.client.Delete(ctx, o, client.Preconditions{UID: &l.UID, ResourceVersion: &l.ResourceVersion}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete %s %s: %w", l.Ref.Kind, l.Ref.Name, err)
		}
	}
	return nil
}
