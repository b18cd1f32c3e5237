package manager

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/bootstrap"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/controller/packageapi"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// ErrManagerNotReady is the failure of a manager that does not come up.
var ErrManagerNotReady = errcode.Code{
	Name: "ManagerNotReady", Class: errcode.Timeout,
	Cause: "The manager was not available within the time of --wait.",
	Fix:   "Run `kubectl describe pods` and `kubectl logs` in the namespace of the manager.",
}

// bootstrapper is the field manager of the manifests.
const bootstrapper = "xpkg-bootstrap"

// apply applies the manifests in order. It is idempotent: existing objects are updated.
func (c *BootstrapCmd) apply(env *terminal.Env, objects []map[string]any) error {
	cfg, err := c.Config(env.Context)
	if err != nil {
		return err
	}
	// There are objects of many kinds, and the cluster learns of some only now.
	cluster, err := client.New(cfg, client.Options{})
	if err != nil {
		return connection.Classify(err, "reach the cluster")
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
			return connection.Classify(err, "apply %s", name)
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

// refuseForeign refuses a cluster whose package API belongs to another package manager, as the manager does.
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
			return connection.Classify(err, "read CustomResourceDefinition %s", u.GetName())
		case live.Annotations[plan.ContentDigestAnnotation] == "":
			return packageapi.ErrForeignControlPlane.New(nil, "CustomResourceDefinition %s was not installed by xpkg", u.GetName()).
				WithDo("Use another cluster, or stop the other package manager permanently and pass --take-over.")
		}
	}
	return nil
}

// waitAvailable waits until the Deployment of the manager is rolled out. It fails at once
// when the Deployment has exceeded its progress deadline.
func (c *BootstrapCmd) waitAvailable(env *terminal.Env, cluster client.Client) error {
	ctx, cancel := context.WithTimeout(env.Context, c.Wait)
	defer cancel()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		d := &appsv1.Deployment{}
		if err := cluster.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: bootstrap.Name}, d); err != nil && ctx.Err() == nil {
			return connection.Classify(err, "read the Deployment of the manager")
		}
		missing, err := rolloutMissing(d)
		if err != nil {
			return ErrManagerNotReady.New(err, "Deployment %s/%s is not rolled out", c.Namespace, bootstrap.Name)
		}
		if missing == "" {
			_, err := fmt.Fprintln(env.Stdout, "the manager is available")
			return err
		}
		select {
		case <-ctx.Done():
			if env.Context.Err() != nil {
				return env.Context.Err()
			}
			return ErrManagerNotReady.New(nil, "Deployment %s/%s is not rolled out after %s: %s", c.Namespace, bootstrap.Name, c.Wait, missing)
		case <-tick.C:
		}
	}
}

// rolloutMissing returns the reason why a Deployment is not rolled out, by the rule of `kubectl rollout status`, or "".
// It fails if the Deployment has exceeded its progress deadline.
func rolloutMissing(d *appsv1.Deployment) (string, error) {
	want := int32(1)
	if d.Spec.Replicas != nil {
		want = *d.Spec.Replicas
	}
	s := d.Status
	for _, c := range s.Conditions {
		if c.Type == appsv1.DeploymentProgressing && c.Reason == progressDeadlineExceeded && s.ObservedGeneration >= d.Generation {
			return "", errors.New(c.Message)
		}
	}
	switch {
	case d.Generation == 0 || s.ObservedGeneration < d.Generation:
		return "the cluster has not observed the change yet", nil
	case s.UpdatedReplicas < want:
		return fmt.Sprintf("%d of %d new pods have been created", s.UpdatedReplicas, want), nil
	case s.Replicas > s.UpdatedReplicas:
		return fmt.Sprintf("%d pods of the former manager still run", s.Replicas-s.UpdatedReplicas), nil
	case s.AvailableReplicas < s.UpdatedReplicas:
		return fmt.Sprintf("%d of %d new pods are available", s.AvailableReplicas, s.UpdatedReplicas), nil
	}
	return "", nil
}

// progressDeadlineExceeded is the reason of the condition Progressing of a Deployment that exceeded its progress
// deadline.
const progressDeadlineExceeded = "ProgressDeadlineExceeded"
