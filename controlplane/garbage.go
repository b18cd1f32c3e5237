package main

import (
	"context"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	svmv1 "k8s.io/api/storagemigration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	svmlisters "k8s.io/client-go/listers/storagemigration/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"

	"github.com/xpkg-dev/xpkg/controlplane/internal/inventory"
)

const (
	collectorWorkers = 10
	// collectorPause is the minimum time between two reads of the resources, and collectorPeriod the maximum, which
	// equals the period of kube-controller-manager.
	collectorPause  = 2 * time.Second
	collectorPeriod = 30 * time.Second
)

// A collector deletes objects whose owners are gone. It is the garbage collector of kube-controller-manager, but
// watches only resources that have objects, as soon as they have. This halves the memory for packages with many
// resources, and detects owners of a new kind at once instead of after half a minute. It also runs the controller of
// StorageVersionMigrations, which reads the objects of the collector.
type collector struct {
	kubeconfig string
	inventory  *inventory.Inventory
}

// run collects until the context ends.
func (c collector) run(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		return err
	}
	config.UserAgent = "garbage-collector"
	config.QPS, config.Burst = 200, 400
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	factory := metadataInformers{metadatainformer.NewSharedInformerFactoryWithOptions(
		objects, 12*time.Hour, metadatainformer.WithTransform(dropManagedFields),
	)}
	started := make(chan struct{})
	close(started)
	graph := garbagecollector.NewDependencyGraphBuilder(
		ctx, objects, mapper, garbagecollector.DefaultIgnoredResources(), factory, started,
	)
	gc, err := garbagecollector.NewComposedGarbageCollector(ctx, client, objects, mapper, graph)
	if err != nil {
		return err
	}
	m, err := newMigrator(ctx, config, mapper, graph)
	if err != nil {
		return err
	}
	go m.run(ctx)
	go gc.Sync(
		ctx, &populated{
			ServerResourcesInterface: client.Discovery(), ctx: ctx, inventory: c.inventory, migrations: m.migrations,
		}, collectorPause,
	)
	gc.Run(ctx, collectorWorkers, collectorPeriod)
	return nil
}

// follow updates the inventory from the database until the context is canceled. It watches before it reads, so that
// it misses nothing; duplicates are harmless.
func follow(ctx context.Context, db mvcc.WatchableKV, i *inventory.Inventory) error {
	stream := db.NewWatchStream()
	defer stream.Close()
	from, end := []byte(inventory.Prefix), []byte("/registry0") // "0" comes after "/"
	if _, err := stream.Watch(ctx, 0, from, end, 0); err != nil {
		return err
	}
	// CRDs sort among the groups, so a second pass finds the keys before them.
	for range 2 {
		all, err := db.Range(ctx, from, end, mvcc.RangeOptions{FastKeysOnly: true})
		if err != nil {
			return err
		}
		for _, kv := range all.KVs {
			i.Put(string(kv.Key))
		}
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case response := <-stream.Chan():
			for _, event := range response.Events {
				record(i, event)
			}
		}
	}
}

func record(i *inventory.Inventory, event *mvccpb.Event) {
	if event.Type == mvccpb.Event_DELETE {
		i.Delete(string(event.Kv.Key))
		return
	}
	i.Put(string(event.Kv.Key))
}

// populated is a discovery that knows only resources which have objects, and all
// that are not custom. It answers when there may be something new.
type populated struct {
	discovery.ServerResourcesInterface
	ctx       context.Context // of the collector; the interface has no place for one
	inventory *inventory.Inventory
	// migrations are the StorageVersionMigrations, whose controller also needs resources without objects.
	migrations svmlisters.StorageVersionMigrationLister
	asked      bool
	missing    bool
}

// ServerPreferredResources is called repeatedly by the garbage collector.
func (p *populated) ServerPreferredResources() ([]*metav1.APIResourceList, error) {
	p.wait()
	lists, err := p.ServerResourcesInterface.ServerPreferredResources()
	migrating := p.migrating()
	found := map[schema.GroupResource]bool{}
	for _, list := range lists {
		group, parseErr := schema.ParseGroupVersion(list.GroupVersion)
		if parseErr != nil {
			continue
		}
		var kept []metav1.APIResource
		for _, resource := range list.APIResources {
			name := schema.GroupResource{Group: group.Group, Resource: resource.Name}
			found[name] = true
			if migrating[name] || !p.inventory.Empty(name) {
				kept = append(kept, resource)
			}
		}
		list.APIResources = kept
	}
	// The list of resources can lag behind the objects: then look again soon.
	p.missing = false
	for _, name := range p.inventory.Populated() {
		p.missing = p.missing || !found[name]
	}
	return lists, err
}

// migrating returns the resources of StorageVersionMigrations that run.
func (p *populated) migrating() map[schema.GroupResource]bool {
	out := map[schema.GroupResource]bool{}
	all, err := p.migrations.List(labels.Everything())
	if err != nil {
		return out // Only a cache is read, so there is no error.
	}
	for _, m := range all {
		if !meta.IsStatusConditionTrue(m.Status.Conditions, string(svmv1.MigrationSucceeded)) &&
			!meta.IsStatusConditionTrue(m.Status.Conditions, string(svmv1.MigrationFailed)) {
			out[schema.GroupResource{Group: m.Spec.Resource.Group, Resource: m.Spec.Resource.Resource}] = true
		}
	}
	return out
}

// wait returns when there may be something new.
func (p *populated) wait() {
	if !p.asked || p.missing {
		p.asked = true
		return
	}
	timer := time.NewTimer(collectorPeriod)
	defer timer.Stop()
	select {
	case <-p.ctx.Done():
	case <-p.inventory.Changed():
	case <-timer.C:
	}
}

// metadataInformers lets the garbage collector keep the metadata of objects only.
type metadataInformers struct {
	metadatainformer.SharedInformerFactory
}

// ForResource never fails.
func (m metadataInformers) ForResource(r schema.GroupVersionResource) (informers.GenericInformer, error) {
	return m.SharedInformerFactory.ForResource(r), nil
}

// dropManagedFields removes managed fields, which are large and never read.
func dropManagedFields(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}
