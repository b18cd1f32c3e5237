// Package compositeroles maintains the ClusterRoles of composite resources, for every XRD of a cluster. Crossplane core
// can establish an XRD only with them, and its RBAC manager, which would create them, does not run beside the manager.
package compositeroles

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/controller/watch"
	"github.com/xpkg-dev/xpkg/internal/permission"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
)

// Reconciler writes the roles of the composite resource, and of the claim, that an XRD defines. The XRD owns them, as
// with Crossplane's RBAC manager, so that they are deleted with it and either program can take them over.
type Reconciler struct {
	// Cache reads the metadata of ClusterRoles.
	Cache   client.Reader
	Cluster *apply.Cluster
	// Held determines which permissions the manager can grant.
	Held   *permission.ManagerRules
	Events events.EventRecorder
	// Guard fails while Crossplane core would write the same objects.
	Guard func(context.Context) error
	// CountFailure counts the failures of reconciliations by code.
	CountFailure func(code string)

	mu sync.Mutex
	// failed are the messages of the last events, by XRD. The XRDs of them wait for an administrator.
	failed map[string]string
}

// definition is the kind of XRDs, in a version that every core serves. An XRD of another version has the same fields in
// it.
var definition = schema.GroupVersionKind{
	Group: "apiextensions.crossplane.io", Version: "v1", Kind: "CompositeResourceDefinition",
}

// refOf returns the reference of an XRD.
func refOf(name string) plan.Ref {
	return plan.Ref{APIVersion: definition.GroupVersion().String(), Kind: definition.Kind, Name: name}
}

// Reconcile writes the roles of one XRD that differ from the desired ones.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if err := r.Guard(ctx); err != nil {
		return r.blocked(ctx, err)
	}
	xrd, exists, err := r.Cluster.Object(ctx, refOf(req.Name))
	if err == nil && exists && !xrd.Deleting {
		err = r.reconcile(ctx, xrd)
	}
	return r.report(ctx, req.Name, xrd.UID, err)
}

func (r *Reconciler) reconcile(ctx context.Context, xrd apply.Object) error {
	c, err := desired.ReadComposite(xrd.Ref.Name, xrd.JSON)
	if err != nil {
		return err
	}
	if resource := (schema.GroupResource{Group: c.Group, Resource: c.Plural}); rbac.Reserved(resource) {
		return rbac.ErrReservedDefinition.New(
			nil, "the XRD %s defines %s, for which xpkg grants no permissions", c.Name, resource,
		).
			WithDo("Use a group of your own, such as example.org.")
	}
	set := rbac.Set{ClusterRoles: rbac.DeriveComposite(c)}
	roles, err := desired.Roles(set)
	if err != nil {
		return err
	}
	live, err := r.live(ctx, roles.Refs())
	if err != nil {
		return err
	}
	owner := plan.Owner{APIVersion: definition.GroupVersion().String(), Kind: definition.Kind, Name: c.Name, UID: xrd.UID}
	changes := plan.Establish(roles.Desired(), live, nil, plan.Requester{Revision: owner})
	if len(changes.Refusals) > 0 {
		return apply.Refused(changes.Refusals, "the roles of the XRD %s cannot be written", c.Name)
	}
	if err = r.write(ctx, changes, set, roles.Content); errors.Is(err, rbac.ErrPermissionMissing) {
		return r.explain(ctx, c, set, err)
	}
	return err
}

// write carries out the changes of roles. It fails with PermissionMissing if the manager cannot grant them.
func (r *Reconciler) write(ctx context.Context, changes plan.Plan, set rbac.Set, content apply.Content) error {
	if slices.ContainsFunc(changes.Changes, func(c plan.Change) bool { return !c.MetadataOnly }) {
		if err := r.Held.Check(ctx, set, ""); err != nil {
			return err
		}
	}
	_, err := r.Cluster.Run(ctx, changes, content)
	if errors.Is(err, apply.ErrForbidden) {
		return r.Held.Explain(ctx, set, "", err)
	}
	return err
}

// live returns the metadata of the roles that exist in the cache. A write that is based on a stale read fails and is
// repeated.
func (r *Reconciler) live(ctx context.Context, refs []plan.Ref) (map[plan.Ref]plan.Live, error) {
	out := map[plan.Ref]plan.Live{}
	for _, ref := range refs {
		o := watch.Metadata(ref.GroupVersionKind())
		err := r.Cache.Get(ctx, client.ObjectKey{Name: ref.Name}, o)
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

// explain returns PermissionMissing for an XRD. It returns nil if the existing roles grant the permissions:
// Crossplane's RBAC manager has written them, and the manager keeps them.
func (r *Reconciler) explain(ctx context.Context, c rbac.Composite, set rbac.Set, missing error) error {
	granted, err := r.granted(ctx, set.ClusterRoles)
	if granted || err != nil {
		return err
	}
	return rbac.ErrPermissionMissing.New(
		errcode.From(missing).Why,
		"xpkg cannot grant the roles of the XRD %s, without which Crossplane core cannot establish it", c.Name,
	).
		WithDo(
			"Have an administrator apply the manifest that `xpkg doctor` prints, or run `xpkg bootstrap --apply --package-group %s` with the flags of the installation.",
			c.Group,
		)
}

// granted reports whether roles exist and grant what they should.
func (r *Reconciler) granted(ctx context.Context, roles []rbacv1.ClusterRole) (bool, error) {
	for _, want := range roles {
		o, exists, err := r.Cluster.Object(ctx, desired.RoleRef("ClusterRole", "", want.Name))
		if err != nil || !exists {
			return false, err
		}
		var live rbacv1.ClusterRole
		if err := json.Unmarshal(o.JSON, &live); err != nil {
			return false, fmt.Errorf("read ClusterRole %s: %w", want.Name, err)
		}
		if !rbac.Fulfills(live, want) {
			return false, nil
		}
	}
	return true, nil
}
