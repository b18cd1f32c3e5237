package controller

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// ceilingMetadata is what is watched of the ceiling: that it changed.
func ceilingMetadata() *metav1.PartialObjectMetadata {
	return metadataOf(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
}

// watchCeiling makes a change of the ceiling a reason to look at every active
// revision that requests something.
func (w *world) watchCeiling(b *builder.Builder, kind string) *builder.Builder {
	if w.permissions.Ceiling.ConfigMap == "" {
		return b
	}
	return b.WatchesMetadata(ceilingMetadata(), handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request {
		var out []reconcile.Request
		for _, rev := range w.revisionsOf(ctx, kind) {
			if active(rev) && len(rev.RevisionStatus().PermissionRequests) > 0 {
				out = append(out, request(rev))
			}
		}
		return out
	}))
}

// watched narrows what is kept of kinds that others have many objects of.
func watched(o Options) map[client.Object]cache.ByObject {
	within := map[string]cache.Config{namespace(o): {}}
	out := map[client.Object]cache.ByObject{}
	for _, kind := range append(programObjects(), secretMetadata()) {
		out[kind] = cache.ByObject{Namespaces: within}
	}
	if o.Permissions == nil {
		return out
	}
	maps.Copy(out, cachedRoles(within))
	if o.Permissions.Ceiling.ConfigMap != "" {
		out[ceilingMetadata()] = cache.ByObject{Namespaces: within, Field: fields.OneTermEqualSelector("metadata.name", o.Permissions.Ceiling.ConfigMap)}
	}
	return out
}
