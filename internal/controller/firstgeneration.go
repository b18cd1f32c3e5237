package controller

import (
	"cmp"
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller/firstgen"
	"github.com/xpkg-dev/xpkg/internal/keyedmutex"
	"github.com/xpkg-dev/xpkg/internal/permission"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/runtime/deployment"
)

// setupFirstGeneration registers the controllers of the first generation of packages if the manager owns their CRDs. It is
// called before the relay of changes of processes starts.
func (c *components) setupFirstGeneration() error {
	if !c.installed.FirstGeneration {
		return nil
	}
	o := c.options
	base := firstgen.Base{API: c.api, Kinds: c.api.Cluster, Packages: c.packages, Options: o.FirstGeneration, Namespace: o.namespace(), Sources: o.KindSources, Crossplane: c.crossplane(), Choosing: &keyedmutex.Mutex[string]{}}
	p := &firstgen.Packages{Base: base, NewRuntime: c.namespaceRuntime, SettleTime: o.Settle}
	if o.Permissions != nil {
		p.Held = &permission.ManagerRules{Client: c.api.Client, Log: o.Log}
	}
	if c.runtimes.Changes != nil {
		changes := make(chan event.GenericEvent)
		c.runtimes.Events[packagesv1alpha1.PackageKind] = changes
		p.Changes, p.ProcessName = changes, o.Processes.Name
	}
	return cmp.Or(
		(&firstgen.ClusterInstalls{Base: base}).SetupWithManager(c.manager, o.Log),
		(&firstgen.NamespaceInstalls{Base: base}).SetupWithManager(c.manager, o.Log),
		p.SetupWithManager(c.manager, o.Log),
	)
}

// namespaceRuntime returns the runtime of the packages of a namespace, or nil if the manager runs none. It allows no
// privileges, which the administrator allows only for runtime configurations without a namespace.
func (c *components) namespaceRuntime(namespace string) runtime.Runtime {
	o, live := c.options, liveReads{c.manager.GetClient(), c.manager.GetAPIReader()}
	switch o.Runtimes.Of(v1.ProviderKind, "") {
	case runtime.Deployment:
		return deployment.PackageRuntime{Images: o.Images, Runtime: &deployment.Runtime{Client: live, Pods: live.live, Namespace: namespace}}
	case runtime.Process:
		return o.Processes.NewRuntime(live, o.Config, namespace, nil)
	case runtime.External:
		return runtime.ExternalRuntime{Reader: c.manager.GetClient()}
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
