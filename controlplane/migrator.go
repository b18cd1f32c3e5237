package main

import (
	"context"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	svmlisters "k8s.io/client-go/listers/storagemigration/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/storageversionmigrator"
)

// A migrator rewrites the objects of a resource for a StorageVersionMigration, as kube-controller-manager does.
type migrator struct {
	informers  informers.SharedInformerFactory
	migrations svmlisters.StorageVersionMigrationLister
	runs       []func(context.Context)
}

func newMigrator(
	ctx context.Context, config *rest.Config, mapper meta.ResettableRESTMapper, graph *garbagecollector.GraphBuilder,
) (*migrator, error) {
	const name = "storage-version-migrator-controller"
	config = rest.AddUserAgent(rest.CopyConfig(config), name)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	partial, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactory(client, informerResync)
	informer := factory.Storagemigration().V1().StorageVersionMigrations()
	crds, err := clientset.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &migrator{factory, informer.Lister(), []func(context.Context){
		storageversionmigrator.NewSVMController(ctx, client, objects, informer, name, mapper, graph).Run,
		storageversionmigrator.NewResourceVersionController(ctx, client, client.Discovery(), partial, informer, mapper).Run,
		storageversionmigrator.NewCustomResourceController(
			ctx, client, informer, crds.ApiextensionsV1().CustomResourceDefinitions(),
		).Run,
	}}, nil
}

// run runs the controllers until the context ends.
func (m *migrator) run(ctx context.Context) {
	m.informers.Start(ctx.Done())
	var running sync.WaitGroup
	for _, run := range m.runs {
		running.Go(func() { run(ctx) })
	}
	running.Wait()
	m.informers.Shutdown()
}
