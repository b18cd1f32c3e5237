package planner

import (
	"context"
	"errors"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/permission"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// Permissions are the changes to the permissions of a package's runtime.
type Permissions struct {
	// Added and Removed are compared by the permissions that they grant, in any notation.
	Added   []rbacv1.PolicyRule `json:"added,omitempty"`
	Removed []rbacv1.PolicyRule `json:"removed,omitempty"`
	// NeedsApproval are the permissions that amount to control of the cluster. The package
	// waits until they are approved.
	NeedsApproval []rbacv1.PolicyRule `json:"needsApproval,omitempty"`
	// Denied is why the runtime may not have the permissions that it requests. No object
	// is changed then.
	Denied string `json:"denied,omitempty"`
}

// permissions compares the permissions of the current revision's runtime with the permissions of the active
// revision, and the requested ones with the maximum.
func (pl *Planner) permissions(ctx context.Context, s *clusterState, pkg *xpkg.Package, t revision.Transition, out *Plan) error {
	loader := pl.permissionLoader(s)
	after, err := pl.permissionInput(ctx, loader, t.Current, pkg)
	if err != nil {
		return err
	}
	if err := rbac.CheckDefined(after.Defined); err != nil {
		return err
	}
	var p Permissions
	var policy rbac.Policy
	if len(after.Requests) > 0 {
		policy, err = pl.PermissionPolicy.Read(ctx, pl.Reader, pl.Namespace)
		if err == nil {
			err = policy.Check(after.Requests)
		}
		switch {
		case errors.Is(err, rbac.ErrPermissionDenied):
			p.Denied = errors.Unwrap(err).Error()
		case err != nil:
			return err
		}
	}
	before, err := pl.permissionsBefore(ctx, loader, t)
	if err != nil {
		out.warn(fmt.Sprintf("The current permissions of the runtime are not known: %v.", err))
	}
	p.Added, p.Removed = rbac.Changes(before, after)
	everywhere, within := rbac.RuntimeRules(before)
	if needed := rbac.Escalating(policy.Allow, everywhere, within, after); p.Denied == "" && !permission.Approved(t.Current, needed) {
		p.NeedsApproval = needed
	}
	if len(p.Added)+len(p.Removed)+len(p.NeedsApproval) > 0 || p.Denied != "" {
		out.Permissions = &p
	}
	return nil
}

// permissionLoader returns the reader of permission inputs, configured like the manager: the Lock announces whether
// runtimes are confined to their namespace.
func (pl *Planner) permissionLoader(s *clusterState) permission.Loader {
	return permission.Loader{
		Reader: pl.Reader, Namespace: pl.Namespace, ClusterScoped: pl.Cluster.ClusterScoped,
		Namespaced: s.lock.Annotations[permission.AnnotationScope] == permission.ScopeNamespaced,
	}
}

// permissionsBefore returns the permissions of the running runtime; none if none runs.
func (pl *Planner) permissionsBefore(ctx context.Context, loader permission.Loader, t revision.Transition) (rbac.Input, error) {
	rev := permittedRevision(t.Before)
	if rev == nil {
		return rbac.Input{Kind: rbac.Configuration}, nil
	}
	pkg, _, err := pl.packages().ReadRevision(ctx, rev)
	if err != nil {
		return rbac.Input{}, err
	}
	return pl.permissionInput(ctx, loader, rev, pkg)
}

func (pl *Planner) permissionInput(ctx context.Context, loader permission.Loader, rev v1.PackageRevision, pkg *xpkg.Package) (rbac.Input, error) {
	objects, err := pl.packages().Desired(pkg, rev)
	if err != nil {
		return rbac.Input{}, err
	}
	return loader.Input(ctx, rev, pkg, objects)
}

// permittedRevision returns the revision whose runtime has its permissions: the last activated one that does not wait
// for approval.
func permittedRevision(revisions []v1.PackageRevision) v1.PackageRevision {
	var last v1.PackageRevision
	for _, rev := range revisions {
		spec := rev.RevisionSpec()
		if spec.Revision > 0 && len(rev.RevisionStatus().UnapprovedPermissions) == 0 && (last == nil || spec.Revision > last.RevisionSpec().Revision) {
			last = rev
		}
	}
	return last
}
