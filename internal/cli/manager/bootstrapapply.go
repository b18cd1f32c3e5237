package manager

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/apiserver"
	"github.com/xpkg-dev/xpkg/internal/bootstrap"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/controller/packageapi"
	"github.com/xpkg-dev/xpkg/internal/leader"
	"github.com/xpkg-dev/xpkg/internal/rollout"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// ErrManagerNotReady is the code for a manager that is not available in time.
var ErrManagerNotReady = errcode.Code{
	Name: "ManagerNotReady", Class: errcode.Timeout,
	Cause: "The manager was not available within the time of --wait.",
	Fix:   "Run `kubectl describe pods` and `kubectl logs` in the namespace of the manager.",
}

// apply applies the manifests in order. It is idempotent: existing objects are updated.
func (c *BootstrapCmd) apply(env *terminal.Env, objects []bootstrap.Object) error {
	cfg, err := c.Config(env.Context)
	if err != nil {
		return err
	}
	// The manifests contain CRDs, so the kinds must be discovered afterwards.
	cluster, err := client.New(cfg, client.Options{})
	if err != nil {
		return apiserver.Classify(err, "reach the cluster")
	}
	if err := refuseSecond(env.Context, cluster, c.Namespace); err != nil {
		return err
	}
	if !c.TakeOver {
		if err := refuseForeign(env.Context, cluster, objects); err != nil {
			return err
		}
	}
	err = rollout.Apply(env.Context, cluster, objects, func(name string) error {
		return env.Say("%s applied\n", name)
	})
	if err != nil {
		return apiserver.Classify(err, "install the manager")
	}
	if c.Wait <= 0 {
		return nil
	}
	return c.waitAvailable(env, cluster)
}

// refuseSecond returns an error if the manager of the cluster is deployed in another namespace. A cluster has one
// manager, so its ClusterRoleBinding and its policies have fixed names: with those of another namespace, that manager
// would lose its permissions.
func refuseSecond(ctx context.Context, cluster client.Client, namespace string) error {
	binding := &rbacv1.ClusterRoleBinding{}
	if err := cluster.Get(ctx, client.ObjectKey{Name: bootstrap.Name}, binding); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return apiserver.Classify(err, "read ClusterRoleBinding %s", bootstrap.Name)
	}
	for _, s := range binding.Subjects {
		if s.Kind != rbacv1.ServiceAccountKind || s.Namespace == namespace {
			continue
		}
		deployed := &appsv1.Deployment{}
		err := cluster.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: bootstrap.Name}, deployed)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return apiserver.Classify(err, "read Deployment %s/%s", s.Namespace, bootstrap.Name)
		default:
			return leader.ErrAnotherManager.New(
				nil, "the manager of the cluster is in the namespace %s, not in %s", s.Namespace, namespace,
			).
				WithDo("Run the command with `--namespace %[1]s`. To move the manager, first run `kubectl delete deployment --namespace %[1]s %[2]s`.",
					wording.ShellWord(s.Namespace), bootstrap.Name)
		}
	}
	return nil
}

// refuseForeign returns an error if the package API of the cluster belongs to another package manager, like
// the manager.
func refuseForeign(ctx context.Context, cluster client.Client, objects []bootstrap.Object) error {
	for _, o := range objects {
		gvk := o.GetObjectKind().GroupVersionKind()
		if gvk.Kind != "CustomResourceDefinition" {
			continue
		}
		live := &metav1.PartialObjectMetadata{}
		live.SetGroupVersionKind(gvk)
		err := cluster.Get(ctx, client.ObjectKey{Name: o.GetName()}, live)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return apiserver.Classify(err, "read CustomResourceDefinition %s", o.GetName())
		case live.Annotations[plan.ContentDigestAnnotation] == "":
			return packageapi.ErrForeignControlPlane.New(
				nil, "CustomResourceDefinition %s was not installed by xpkg", o.GetName(),
			).
				WithDo("Use another cluster, or stop the other package manager permanently and pass --take-over.")
		}
	}
	return nil
}

// waitAvailable waits until the Deployment of the manager is rolled out. It fails at once if the Deployment
// has exceeded its progress deadline.
func (c *BootstrapCmd) waitAvailable(env *terminal.Env, cluster client.Client) error {
	ctx, cancel := context.WithTimeout(env.Context, c.Wait)
	defer cancel()
	err := rollout.Wait(ctx, cluster, client.ObjectKey{Namespace: c.Namespace, Name: bootstrap.Name})
	var incomplete *rollout.Incomplete
	switch {
	case errors.As(err, &incomplete):
		return ErrManagerNotReady.New(errors.New(incomplete.Reason), "Deployment %s is not rolled out", incomplete.Deployment)
	case err != nil:
		return apiserver.Classify(err, "wait for the manager")
	}
	_, err = fmt.Fprintln(env.Stdout, "the manager is available")
	return err
}
