package controller

import (
	"context"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// endingCache stops waiting for what is watched when the manager ends. The controller
// library waits on, and turns in circles meanwhile, when something cannot be watched:
// for want of a right, or because the API server does not answer.
type endingCache struct {
	cache.Cache
	ends context.Context
}

// endWith makes caches that end with ctx.
func endWith(ctx context.Context) cache.NewCacheFunc {
	return func(cfg *rest.Config, o cache.Options) (cache.Cache, error) {
		c, err := cache.New(cfg, o)
		return endingCache{c, ctx}, err
	}
}

// WaitForCacheSync waits until everything that is watched was read, or the manager
// ends. Of the latter nobody is told here: the library asks for nothing else before
// it looks whether it is to end.
func (c endingCache) WaitForCacheSync(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.ends, cancel)()
	return c.Cache.WaitForCacheSync(ctx) || c.ends.Err() != nil
}
