package controller

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1alpha1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/runtime/deployment"
	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
)

// newPrograms makes those who run the programs of packages.
func newPrograms(o Options, mgr ctrl.Manager) *programs {
	out := &programs{choice: o.Runtimes, runtimes: map[runtime.Name]runtime.Runtime{}}
	if o.Runtimes.Uses(runtime.External) {
		out.runtimes[runtime.External] = runtime.ExternalRuntime{Reader: mgr.GetClient()}
	}
	if o.Runtimes.Uses(runtime.Deployment) {
		out.runtimes[runtime.Deployment] = deployment.Programs{Images: o.Images, Runtime: &deployment.Runtime{
			Client: freshGets{mgr.GetClient(), mgr.GetAPIReader()}, Pods: mgr.GetAPIReader(), Namespace: namespace(o), Privileges: o.RuntimePrivileges,
		}}
	}
	if o.Runtimes.Uses(runtime.Process) {
		out.runtimes[runtime.Process] = o.Processes.NewRuntime(freshGets{mgr.GetClient(), mgr.GetAPIReader()}, o.Config, namespace(o), o.RuntimePrivileges)
		out.changes = o.Processes.Changes()
	}
	return out
}

// Processes runs package runtimes as processes of this machine.
// [github.com/xpkg-dev/xpkg/internal/runtime/processruntime.Host] implements it.
type Processes interface {
	// NewRuntime returns the runtime of the packages of a control plane.
	NewRuntime(c client.Client, config *rest.Config, namespace string, privileges []manifests.Privilege) runtime.Runtime
	// Changes returns the names of runtimes whose state has changed.
	Changes() <-chan string
}

// makeHome makes the namespace of the programs, if it is to.
func makeHome(ctx context.Context, o Options, c client.Client) error {
	if !o.MakeNamespace {
		return nil
	}
	err := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace(o)}})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("make the namespace %s: %w", namespace(o), err)
	}
	return nil
}

// freshGets reads single objects from the API server itself, so that what was just
// written is not taken for what somebody else has changed, and lists from what was
// watched.
type freshGets struct {
	client.Client
	live client.Reader
}

// Get reads an object from the API server.
func (c freshGets) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	return c.live.Get(ctx, key, o, opts...)
}

// programObjects are what programs consist of in a cluster, as far as they are
// watched.
func programObjects() []client.Object {
	return []client.Object{
		&appsv1.Deployment{},
		metadataOf(corev1.SchemeGroupVersion.WithKind("ServiceAccount")),
		metadataOf(corev1.SchemeGroupVersion.WithKind("Service")),
	}
}

// runtimeConfigs are what configures programs.
func runtimeConfigs() []client.Object {
	return []client.Object{&v1beta1.DeploymentRuntimeConfig{}, &v1alpha1.ControllerConfig{}}
}
