package controller

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// roleKinds are the kinds of roles and bindings.
func roleKinds() []string {
	return []string{"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}
}

func roleMetadata(kind string) *metav1.PartialObjectMetadata {
	return metadataOf(rbacv1.SchemeGroupVersion.WithKind(kind))
}

// cachedRoles says what is kept of roles and bindings: those of a namespace and of the
// cluster, and of ours who has written them. That somebody else did is how it is seen
// that they were changed.
func cachedRoles(within map[string]cache.Config) map[client.Object]cache.ByObject {
	out := map[client.Object]cache.ByObject{}
	strip := cache.TransformStripManagedFields()
	ours := func(o any) (any, error) {
		if m, ok := o.(metav1.Object); ok && metav1.GetControllerOf(m) != nil {
			return o, nil
		}
		return strip(o)
	}
	for _, kind := range roleKinds() {
		by := cache.ByObject{Transform: ours}
		if kind == "Role" || kind == "RoleBinding" {
			by.Namespaces = within
		}
		out[roleMetadata(kind)] = by
	}
	return out
}

// rolesThere gives those of some roles and bindings that exist, as far as was watched.
// They are looked at with every look at a revision, and mostly are as they should be:
// that costs no call. Who writes what was seen there is refused where it has changed.
func (w *world) rolesThere(ctx context.Context, refs []plan.Ref) (map[plan.Ref]plan.Live, error) {
	out := map[plan.Ref]plan.Live{}
	for _, ref := range refs {
		o := metadataOf(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
		err := w.client.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, o)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look up %s %s: %w", ref.Kind, ref.Name, err)
		}
		out[ref] = apply.Known(ref, o)
	}
	return out, nil
}
