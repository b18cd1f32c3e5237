package controller

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/controller/revisions"
	"github.com/xpkg-dev/xpkg/internal/controller/runtimes"
	"github.com/xpkg-dev/xpkg/internal/controller/watch"
	"github.com/xpkg-dev/xpkg/internal/state"
)

// stoppableCache stops waiting for informers when the manager stops. controller-runtime waits forever, in a
// busy loop, if a kind cannot be watched because of a missing permission or an unavailable API server.
type stoppableCache struct {
	cache.Cache
	stop context.Context
}

// newCacheUntil returns a constructor of caches that stop waiting when ctx ends.
func newCacheUntil(ctx context.Context) cache.NewCacheFunc {
	return func(cfg *rest.Config, o cache.Options) (cache.Cache, error) {
		c, err := cache.New(cfg, o)
		return stoppableCache{c, ctx}, err
	}
}

// WaitForCacheSync waits until all informers are synced, or the manager stops. It returns true in
// both cases: controller-runtime checks next whether the manager stops.
func (c stoppableCache) WaitForCacheSync(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.stop, cancel)()
	return c.Cache.WaitForCacheSync(ctx) || c.stop.Err() != nil
}

// cachedObjects returns the limits of the cache for the kinds of which other programs create many
// objects.
func cachedObjects(o Options) map[client.Object]cache.ByObject {
	namespaces := map[string]cache.Config{o.namespace(): {}}
	out := map[client.Object]cache.ByObject{}
	for _, kind := range append(revisions.RuntimeObjects(), watch.Secrets()) {
		out[kind] = cache.ByObject{Namespaces: namespaces}
	}
	for _, kind := range revisions.ActivatingKinds() {
		out[kind] = cache.ByObject{Transform: state.OnlyKinds}
	}
	out[&corev1.Event{}] = cache.ByObject{Field: state.FailedCompositions(), Transform: state.OnlyMissedKinds}
	if o.Permissions == nil {
		return out
	}
	maps.Copy(out, revisions.CachedRoles(namespaces))
	if name := o.Permissions.Policy.ConfigMap; name != "" {
		out[revisions.PolicyMetadata()] = cache.ByObject{
			Namespaces: namespaces, Field: fields.OneTermEqualSelector("metadata.name", name),
		}
	}
	return out
}

// startInformers creates the informers of all kinds that reconciliations read, so that the first
// reconciliation begins when all of them are synced.
func startInformers(ctx context.Context, mgr ctrl.Manager, set *runtimes.Set) error {
	kinds := append(revisions.ActivatingKinds(), &corev1.Event{}, &v1beta1.Lock{}, &v1beta1.ImageConfig{})
	if len(set.Used()) > 0 {
		kinds = append(kinds, revisions.RuntimeConfigs()...)
	}
	kinds = append(kinds, revisions.WatchedRuntimeObjects(set)...)
	for _, kind := range v1.PackageKinds() {
		p := v1.NewPackage(kind)
		kinds = append(kinds, p, p.NewRevision())
	}
	for _, o := range kinds {
		if _, err := mgr.GetCache().GetInformer(ctx, o, cache.BlockUntilSynced(false)); err != nil {
			return fmt.Errorf("watch %T: %w", o, err)
		}
	}
	return nil
}
