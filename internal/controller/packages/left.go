package packages

import (
	"context"
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/controller/logging"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// The guard of removals denies the garbage collector the definitions of packages, so the manager deletes those that a
// deleted package has left: one whose write was on the way when the package was deleted, or whose finalizer a user has
// removed.

// leftBehind returns the packages of the kind that own a CRD and do not exist.
func (r *Reconciler) leftBehind(ctx context.Context, crd client.Object) []reconcile.Request {
	var out []reconcile.Request
	for _, o := range crd.GetOwnerReferences() {
		if o.Kind == r.Kind && strings.HasPrefix(o.APIVersion, v1.Group+"/") && crd.GetDeletionTimestamp() == nil {
			key := types.NamespacedName{Name: o.Name}
			if apierrors.IsNotFound(r.API.Client.Get(ctx, key, v1.NewPackage(r.Kind))) {
				out = append(out, reconcile.Request{NamespacedName: key})
			}
		}
	}
	return out
}

// deleteLeft deletes the definitions without custom resources that only a deleted package owns. It keeps those that
// another client has written: a backup is restored before the packages that own its definitions.
func (r *Reconciler) deleteLeft(ctx context.Context, name string) error {
	if r.Unprotected || r.Kind == v1.FunctionKind {
		return nil
	}
	isOwner := func(o metav1.OwnerReference) bool {
		return o.Kind == r.Kind && o.Name == name && strings.HasPrefix(o.APIVersion, v1.Group+"/")
	}
	refs, err := r.ownedDefinitions(ctx, isOwner)
	if err != nil {
		return err
	}
	for _, of := range definingKinds {
		if r.Kind != v1.ConfigurationKind {
			break
		}
		owned, err := r.API.Cluster.Owned(ctx, of)
		if err != nil && !errors.Is(err, apply.ErrKindNotServed) {
			return err
		}
		refs = append(refs, owned.By(isOwner)...)
	}
	live, err := r.API.Cluster.Metadata(ctx, refs)
	if err != nil && !errors.Is(err, apply.ErrKindNotServed) {
		return err
	}
	var left []plan.Change
	for ref, l := range live {
		stays := func(o metav1.OwnerReference) bool {
			return !strings.HasPrefix(o.APIVersion, v1.Group+"/") || r.stays(ctx, o)
		}
		if len(l.Owners) > 0 && !l.Deleting && !l.OthersWrote && !slices.ContainsFunc(l.Owners, stays) {
			left = append(left, plan.Change{Action: plan.Delete, Ref: ref, UID: l.UID, ResourceVersion: l.ResourceVersion})
		}
	}
	kinds, err := r.kindsOf(ctx, plan.Plan{Changes: left}, live)
	if err != nil || len(left) == 0 {
		return err
	}
	counts, err := r.Counter.CustomResources(ctx, kinds, false)
	if err != nil {
		return err
	}
	if len(counts) > 0 {
		logging.FromContext(ctx).WarnContext(ctx, "a deleted package has left definitions with custom resources, which are kept",
			"kind", r.Kind, "package", name, "customResources", describe(counts))
		return nil
	}
	return r.API.Cluster.DeleteAll(ctx, left)
}

// describe returns the numbers of custom resources.
func describe(counts []planner.CustomResources) string {
	var all []string
	for _, c := range counts {
		all = append(all, c.String())
	}
	return strings.Join(all, ", ")
}
