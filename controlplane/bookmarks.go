package main

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"
)

// bookmarkPeriod is the time after which a watch that nothing happens in gets a bookmark.
const bookmarkPeriod = 30 * time.Second

// bookmarking lets watches that read from the database send the bookmarks which clients ask for, as those of the cache
// of the API server do. Without them, a client never learns that it is up to date: a StorageVersionMigration waits for
// that, and a watch that begins again lists everything once its last event is compacted.
type bookmarking struct{ generic.RESTOptionsGetter }

// GetRESTOptions implements generic.RESTOptionsGetter.
func (b bookmarking) GetRESTOptions(r schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	o, err := b.RESTOptionsGetter.GetRESTOptions(r, example)
	if err != nil || o.Decorator == nil {
		return o, err
	}
	decorate := o.Decorator
	o.Decorator = func(
		config *storagebackend.ConfigForResource, prefix string, key func(runtime.Object) (string, error),
		create func() runtime.Object, createList func() runtime.Object, attributes storage.AttrFunc,
		triggers storage.IndexerFuncs, indexers *cache.Indexers,
	) (storage.Interface, factory.DestroyFunc, error) {
		s, destroy, err := decorate(config, prefix, key, create, createList, attributes, triggers, indexers)
		if err != nil {
			return s, destroy, err
		}
		return bookmarkedStorage{s}, destroy, nil
	}
	return o, nil
}

// bookmarkedStorage is a storage whose watches send the bookmarks that clients ask for.
type bookmarkedStorage struct{ storage.Interface }

// Watch implements storage.Interface.
func (s bookmarkedStorage) Watch(ctx context.Context, key string, o storage.ListOptions) (apiwatch.Interface, error) {
	o.ProgressNotify = o.ProgressNotify || o.Predicate.AllowWatchBookmarks
	return s.Interface.Watch(ctx, key, o)
}
