package controller

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller/kube"
	"github.com/xpkg-dev/xpkg/internal/crossplane"
	"github.com/xpkg-dev/xpkg/internal/frontend"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/runtime/deployment"
	"github.com/xpkg-dev/xpkg/internal/state"
)

// Extension is an API of objects that use packages, with its controllers. The zero value has none.
type Extension struct {
	// Enabled installs the CRDs of the API. The controllers also start in a cluster in which a manager has installed them.
	Enabled bool
	// API describes the objects.
	API *frontend.API
	// SetUp registers the controllers.
	SetUp func(Core) error
}

// Core holds the parts of a manager that the controllers of an extension use.
type Core struct {
	Manager    ctrl.Manager
	API        kube.API
	Packages   state.Packages
	Crossplane *crossplane.Checker
	Options    Options
	// NewRuntime returns the runtime of the objects of a namespace, or nil if the manager runs none. It allows no
	// privileges, which the administrator allows only for runtime configurations without a namespace.
	NewRuntime func(namespace string) runtime.Runtime
	// Changes has an event for each change of a process. It is nil without processes.
	Changes <-chan event.GenericEvent
}

// setupExtension registers the controllers of the extension if the manager owns its CRDs. It is called before the relay
// of changes of processes starts.
func (c *components) setupExtension() error {
	if !c.installed.FirstGeneration || c.options.FirstGeneration.SetUp == nil {
		return nil
	}
	core := Core{
		Manager: c.manager, API: c.api, Packages: c.packages, Crossplane: c.crossplane(), Options: c.options,
		NewRuntime: c.namespaceRuntime,
	}
	core.Options.Namespace = c.options.namespace()
	if c.runtimes.Changes != nil {
		changes := make(chan event.GenericEvent)
		c.runtimes.Events["extension"] = changes
		core.Changes = changes
	}
	return c.options.FirstGeneration.SetUp(core)
}

// namespaceRuntime implements Core.NewRuntime.
func (c *components) namespaceRuntime(namespace string) runtime.Runtime {
	o, live := c.options, liveReads{c.manager.GetClient(), c.manager.GetAPIReader()}
	switch o.Runtimes.Of(v1.ProviderKind, "") {
	case runtime.Deployment:
		return deployment.PackageRuntime{Images: o.Images, Runtime: &deployment.Runtime{
			Client: live, Pods: live.live, Namespace: namespace,
		}}
	case runtime.Process:
		return o.Processes.NewRuntime(live, o.Config, namespace, nil)
	case runtime.External:
		return runtime.ExternalRuntime{Client: c.manager.GetClient()}
	}
	return nil
}

// liveReads reads from the API server: the cache has only objects of the namespace of the manager.
type liveReads struct {
	client.Client
	live client.Reader
}

// Get reads an object from the API server.
func (c liveReads) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	return c.live.Get(ctx, key, o, opts...)
}

// List reads objects from the API server.
func (c liveReads) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.live.List(ctx, list, opts...)
}
