package processruntime

import (
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
	"github.com/xpkg-dev/xpkg/internal/runtime/sandbox"
)

// Host runs package runtimes as processes of this machine. The manager uses it through an
// interface, so that a manager in a cluster does not depend on the sandbox.
type Host struct {
	Supervisor *sandbox.Supervisor
	Images     sandbox.Images
	// Address is an address of this machine that the API server can reach; see
	// [MachineAddress].
	Address string
}

// NewRuntime returns the runtime of the packages of a control plane.
func (h *Host) NewRuntime(
	c client.Client, config *rest.Config, namespace string, privileges []manifests.Privilege,
) runtime.Runtime {
	return New(Options{
		Supervisor: h.Supervisor, Images: h.Images, Address: h.Address,
		Client: c, Config: config, Namespace: namespace, Privileges: privileges, Now: time.Now,
	})
}

// Changes returns the names of runtimes whose state has changed.
func (h *Host) Changes() <-chan string { return h.Supervisor.Changes() }
