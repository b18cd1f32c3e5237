package cli

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/bootstrap"
	"github.com/xpkg-dev/xpkg/internal/failure"
	"github.com/xpkg-dev/xpkg/internal/manager"
	"github.com/xpkg-dev/xpkg/internal/plan"
)

// ErrManagerNotReady is the failure of a manager that does not come up.
var ErrManagerNotReady = failure.Register(failure.Code{
	Name: "ManagerNotReady", Class: failure.Timeout,
	Cause: "The manager that was applied to a cluster was not available in the time given with --wait.",
	Fix:   "See why with kubectl describe pods and kubectl logs in the namespace of the manager.",
})

// bootstrapper is in whose name the manifests are applied.
const bootstrapper = "xpkg-bootstrap"

// apply applies the manifests in their order. It is safe to do so again: what is
// there already is brought to what it should be.
func (c *bootstrapCmd) apply(env *Env, objects []map[string]any) error {
	cfg, err := c.config()
	if err != nil {
		return err
	}
	// There are objects of many kinds, and the cluster learns of some only now.
	cluster, err := client.New(cfg, client.Options{})
	if err != nil {
		return classify(err, "reach the cluster")
	}
	if !c.TakeOver {
		if err := refuseForeign(env.Context, cluster, objects); err != nil {
			return err
		}
	}
	for _, o := range objects {
		u := &unstructured.Unstructured{Object: o}
		name := fmt.Sprintf("%s %s", u.GetKind(), u.GetName())
		err := cluster.Apply(env.Context, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(bootstrapper), client.ForceOwnership)
		if err != nil {
			return classify(err, "apply %s", name)
		}
		if _, err := fmt.Fprintf(env.Stdout, "%s applied\n", name); err != nil {
			return err
		}
	}
	if c.Wait <= 0 {
		return nil
	}
	return c.waitAvailable(env, cluster)
}

// refuseForeign leaves alone a cluster whose package API belongs to another package
// manager, as the manager itself does.
func refuseForeign(ctx context.Context, cluster client.Client, objects []map[string]any) error {
	for _, o := range objects {
		u := unstructured.Unstructured{Object: o}
		if u.GetKind() != "CustomResourceDefinition" {
			continue
		}
		live := &metav1.PartialObjectMetadata{}
		live.SetGroupVersionKind(schema.FromAPIVersionAndKind(u.GetAPIVersion(), u.GetKind()))
		err := cluster.Get(ctx, client.ObjectKey{Name: u.GetName()}, live)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return classify(err, "read CustomResourceDefinition %s", u.GetName())
		case live.Annotations[plan.ContentAnnotation] == "":
			return manager.ErrForeignControlPlane.New(nil, "CustomResourceDefinition %s was not installed by xpkg", u.GetName()).
				WithDo("Use a cluster without it, or give --take-over once the other package manager is stopped for good.")
		}
	}
	return nil
}

// waitAvailable waits until the Deployment of the manager is available.
func (c *bootstrapCmd) waitAvailable(env *Env, cluster client.Client) error {
	ctx, cancel := context.WithTimeout(env.Context, c.Wait)
	defer cancel()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		d := &appsv1.Deployment{}
		if err := cluster.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: bootstrap.Name}, d); err != nil && ctx.Err() == nil {
			return classify(err, "read the Deployment of the manager")
		}
		if isAvailable(d) {
			_, err := fmt.Fprintln(env.Stdout, "the manager is available")
			return err
		}
		select {
		case <-ctx.Done():
			if env.Context.Err() != nil {
				return env.Context.Err()
			}
			return ErrManagerNotReady.New(nil, "Deployment %s/%s is not available after %s", c.Namespace, bootstrap.Name, c.Wait)
		case <-tick.C:
		}
	}
}

func isAvailable(d *appsv1.Deployment) bool {
	if d.Status.ObservedGeneration < d.Generation || d.Generation == 0 {
		return false
	}
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentAvailable {
			return c.Status == corev1.ConditionTrue && d.Status.UpdatedReplicas == *d.Spec.Replicas
		}
	}
	return false
}
