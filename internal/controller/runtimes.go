package controller

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller/runtimes"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/runtime/deployment"
)

// newRuntimes returns the runtimes that the options choose.
func newRuntimes(o Options, mgr ctrl.Manager) *runtimes.Set {
	out := &runtimes.Set{Choice: o.Runtimes, ByName: map[runtime.Name]runtime.Runtime{}}
	fresh := liveGets{mgr.GetClient(), mgr.GetAPIReader()}
	if o.Runtimes.Uses(runtime.External) {
		out.ByName[runtime.External] = runtime.ExternalRuntime{Client: mgr.GetClient()}
	}
	if o.Runtimes.Uses(runtime.Deployment) {
		out.ByName[runtime.Deployment] = deployment.PackageRuntime{Images: o.Images, Runtime: &deployment.Runtime{
			Client: fresh, Pods: mgr.GetAPIReader(), Namespace: o.namespace(), Privileges: o.RuntimePrivileges,
		}}
	}
	if o.Runtimes.Uses(runtime.Process) {
		out.ByName[runtime.Process] = o.Processes.NewRuntime(fresh, o.Config, o.namespace(), o.RuntimePrivileges)
		out.Changes = o.Processes.Changes()
		out.Events = map[string]chan event.GenericEvent{
			v1.ProviderKind: make(chan event.GenericEvent), v1.FunctionKind: make(chan event.GenericEvent),
		}
	}
	return out
}

// liveGets reads single objects from the API server, and lists from the cache. A stale read of an
// object that the manager has just written would look like a change by another client.
type liveGets struct {
	client.Client
	live client.Reader
}

// Get reads an object from the API server.
func (c liveGets) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	return c.live.Get(ctx, key, o, opts...)
}
