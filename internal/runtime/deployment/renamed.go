package deployment

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// deleteRenamed deletes the Deployments of a Provider's revision that have a former name, before
// the new Deployment is created, so that a Provider never runs twice. (A Function keeps serving
// until its new Deployment is available; see [Runtime.Ensure].)
//
// If the API server rejects the new Deployment, the running one stays.
func (r *Runtime) deleteRenamed(
	ctx context.Context, o manifests.Objects, live *appsv1.Deployment, former []appsv1.Deployment,
) (runtime.State, error) {
	if live.UID == "" {
		if err := r.Client.Create(
			ctx, o.Deployment.DeepCopy(), client.DryRunAll, client.FieldOwner(plan.FieldManager),
		); err != nil {
			return runtime.State{}, classify(err, "write", o.Deployment)
		}
	}
	return renamed(&former[0], o.Deployment), r.end(ctx, former)
}

// former returns the Deployments of a revision with other names than its desired Deployment.
func (r *Runtime) former(ctx context.Context, o manifests.Objects) ([]appsv1.Deployment, error) {
	all, err := r.deploymentsOf(ctx, o.Owner.Revision)
	return slices.DeleteFunc(all, func(d appsv1.Deployment) bool { return d.Name == o.Deployment.Name }), err
}

// end deletes Deployments that are not being deleted yet.
func (r *Runtime) end(ctx context.Context, deployments []appsv1.Deployment) error {
	for i := range deployments {
		d := &deployments[i]
		if d.DeletionTimestamp != nil {
			continue
		}
		if err := r.delete(ctx, d); err != nil {
			return classify(err, "delete", d)
		}
		r.forget(d)
	}
	return nil
}

func renamed(from, to *appsv1.Deployment) runtime.State {
	return runtime.State{
		Reason:  ReasonReplacing,
		Message: fmt.Sprintf("Deployment %s ends first: the configuration renames it to %s", from.Name, to.Name),
	}
}
