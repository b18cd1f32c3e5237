package revisions

import (
	"context"
	"errors"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/controller/requeue"
	"github.com/xpkg-dev/xpkg/internal/controller/watch"
	"github.com/xpkg-dev/xpkg/internal/install"
	"github.com/xpkg-dev/xpkg/internal/permission"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
)

// PermissionOptions configure the permissions that the manager grants to runtimes.
type PermissionOptions struct {
	// Policy is the source of the policy for requests. The zero value denies only the permissions
	// that every policy denies; see [rbac.Policy.Check].
	Policy permission.PolicySource
	// Increase is the policy for a version that requests more permissions than the version before
	// it. Empty means AllowIncrease.
	Increase IncreasePolicy
	// Namespaced confines runtimes to the namespace of the manager, for all namespaced resources.
	Namespaced bool
}

// IncreasePolicy is the policy for a version that requests more permissions.
type IncreasePolicy string

// The policies for more permissions.
const (
	// AllowIncrease grants the additional permissions, within the policy for requests.
	AllowIncrease IncreasePolicy = "Allow"
	// ApproveIncrease waits until a user approves the additional permissions.
	ApproveIncrease IncreasePolicy = permission.ApproveIncrease
)

// needsApproval reports whether a user must approve additional permissions of a package. An
// annotation of the package can require approval, but cannot waive it.
func (o PermissionOptions) needsApproval(p v1.Package) bool {
	return o.Increase == ApproveIncrease || permission.ApprovesIncrease(p)
}

// reconcilePermissions writes the roles and bindings of the active revision, before its kinds are served.
func (r *Reconciler) reconcilePermissions(ctx context.Context, in *reconciliation) error {
	if r.Checks.Permissions == nil || r.Kind == v1.ConfigurationKind {
		return nil
	}
	input, err := r.permissionInput(ctx, in)
	if err != nil {
		return err
	}
	if input.ServiceAccounts, err = in.workload.serviceAccounts(); err != nil {
		return asRuntimeError(err)
	}
	change, err := r.planRoles(ctx, in.Set, input)
	if err != nil {
		return err
	}
	return r.applyRoles(ctx, change)
}

// revokePermissions deletes the roles of an inactive revision.
func (r *Reconciler) revokePermissions(ctx context.Context, in *reconciliation) error {
	if r.Checks.Permissions == nil {
		return nil
	}
	change, err := r.planRoles(ctx, in.Set, rbac.Input{Kind: r.Kind, Revision: in.Revision.GetName()})
	if err != nil {
		return err
	}
	return r.applyRoles(ctx, change)
}

// revokeDenied revokes the permissions of a paused active revision that the policy does not allow any more, and deletes
// its webhook configurations if the consent to them was withdrawn. It returns the reason.
func (r *Reconciler) revokeDenied(ctx context.Context, set revision.Set) (err error) {
	rev := set.Revision
	if !revision.IsEstablished(rev) || revision.IsTerminating(set.Package) {
		return nil
	}
	in := &reconciliation{Set: set}
	if err := r.acceptConsents(ctx, in); err != nil {
		return err
	}
	if in.pkg, in.source, err = r.Packages.ReadRevision(ctx, rev); err != nil {
		return nil //nolint:nilerr // Content that cannot be read is not a reason to stop anything, and is reported after the pause.
	}
	if err := r.selectObjects(ctx, in); err != nil {
		return err
	}
	if err := r.check(ctx, in, install.Policy); err != nil && !errors.Is(err, rbac.ErrPolicyUnreadable) {
		return err
	}
	return in.unaccepted.explain(r.check(ctx, in, install.Webhooks))
}

// permissionInput returns the facts from which the permissions of a revision are derived. A revision without a runtime
// gets none, and loses those of a runtime that it had.
func (r *Reconciler) permissionInput(ctx context.Context, in *reconciliation) (rbac.Input, error) {
	loader := permission.Loader{
		Reader: r.API.Client, Namespace: r.Packages.Namespace,
		Namespaced: r.Checks.Permissions.Namespaced, ClusterScoped: r.API.Cluster.ClusterScoped,
	}
	input, err := loader.Input(ctx, in.Revision, in.pkg, in.objects)
	if err != nil {
		return rbac.Input{}, err
	}
	by, _, err := r.Runtimes.Choice.Select(in.Package, in.pkg.Meta)
	if err == nil && by == runtime.None {
		input = input.WithoutRuntime()
	}
	return input, nil
}

// revokeRequests deletes the roles that a revision has for its requests. It grants nothing.
func (r *Reconciler) revokeRequests(ctx context.Context, in *reconciliation) error {
	input, err := r.permissionInput(ctx, in)
	if err != nil {
		return err
	}
	input.Requests = nil
	change, err := r.planRoles(ctx, in.Set, input)
	if err != nil {
		return err
	}
	change.plan.Changes = slices.DeleteFunc(
		change.plan.Changes, func(c plan.Change) bool { return c.Action == plan.Create },
	)
	// The service account is unknown here, so bindings stay.
	change.unused = slices.DeleteFunc(
		change.unused, func(l plan.Live) bool { return l.Ref.Kind != "ClusterRole" && l.Ref.Kind != "Role" },
	)
	return r.applyRoles(ctx, change)
}

// grantedRules returns the rules in the roles of the revisions from which a revision inherits permissions.
func (r *Reconciler) grantedRules(
	ctx context.Context, set revision.Set,
) (clusterWide, namespaced []rbacv1.PolicyRule, err error) {
	for _, rev := range set.Siblings {
		if !permission.Inherits(set.Revision, rev) {
			continue
		}
		_, names := rbac.Names(r.Kind, rev.GetName())
		for _, name := range names {
			var cluster rbacv1.ClusterRole
			if err := r.API.Live.Get(ctx, client.ObjectKey{Name: name}, &cluster); client.IgnoreNotFound(err) != nil {
				return nil, nil, fmt.Errorf("read the permissions of %s: %w", rev.GetName(), err)
			}
			var local rbacv1.Role
			if err := r.API.Live.Get(
				ctx, client.ObjectKey{Namespace: r.Packages.Namespace, Name: name}, &local,
			); client.IgnoreNotFound(err) != nil {
				return nil, nil, fmt.Errorf("read the permissions of %s: %w", rev.GetName(), err)
			}
			clusterWide, namespaced = append(clusterWide, cluster.Rules...), append(namespaced, local.Rules...)
		}
	}
	return clusterWide, namespaced, nil
}

// roleChange takes the roles and bindings of a revision to their desired state.
type roleChange struct {
	set     rbac.Set
	plan    plan.Plan
	content apply.Content
	// unused are the roles and bindings that the revision does not need any more.
	unused []plan.Live
}

// grants reports whether the permissions of any account change.
func (c roleChange) grants() bool {
	return slices.ContainsFunc(c.plan.Changes, func(c plan.Change) bool { return !c.MetadataOnly })
}

// planRoles compares the desired roles and bindings of a revision with the existing ones. The revision is
// their only owner, so they are deleted with it.
func (r *Reconciler) planRoles(ctx context.Context, s revision.Set, input rbac.Input) (roleChange, error) {
	set := rbac.Derive(input)
	roles, err := desired.Roles(set)
	if err != nil {
		return roleChange{}, err
	}
	refs := desired.RoleRefs(input.Kind, input.Revision, r.Packages.Namespace)
	live, err := r.cachedRoles(ctx, refs)
	if err != nil {
		return roleChange{}, err
	}
	owner := s.Requester()
	owner.Package = plan.Owner{}
	out := roleChange{set: set, plan: plan.Establish(roles.Desired(), live, nil, owner), content: roles.Content}
	wanted := roles.Refs()
	for _, ref := range refs {
		if l, exists := live[ref]; exists && !slices.Contains(wanted, ref) && !l.Deleting && owner.Controls(l) {
			out.unused = append(out.unused, l)
		}
	}
	return out, nil
}

// cachedRoles returns the roles and bindings among refs that exist in the cache. Most
// reconciliations find them unchanged, and make no API call. A write that is based on a stale read
// fails and is repeated.
func (r *Reconciler) cachedRoles(ctx context.Context, refs []plan.Ref) (map[plan.Ref]plan.Live, error) {
	out := map[plan.Ref]plan.Live{}
	for _, ref := range refs {
		o := watch.Metadata(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
		err := r.API.Client.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, o)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read %s %s: %w", ref.Kind, ref.Name, err)
		}
		out[ref] = apply.Known(ref, o)
	}
	return out, nil
}

// applyRoles writes roles and bindings, and then deletes the unused ones.
func (r *Reconciler) applyRoles(ctx context.Context, c roleChange) error {
	if _, err := r.API.Cluster.Run(ctx, c.plan, c.content); err != nil {
		switch {
		case errors.Is(err, apply.ErrForbidden):
			return r.Checks.Held.Explain(ctx, c.set, r.Packages.Namespace, err)
		case errors.Is(err, apply.ErrMoved):
			// The plan was computed from the cache.
			return errors.Join(requeue.ErrStale, err)
		}
		return err
	}
	for _, l := range c.unused {
		if err := r.API.Cluster.Delete(ctx, l.Ref, l.UID, l.ResourceVersion); err != nil {
			return err
		}
	}
	return nil
}
