package deployment

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// Scale sets the number of pods of the runtime of a revision, until the next Ensure. It
// reports whether that number is reached. Zero is reached when no pod of the revision is
// left, not even a terminating one.
//
// Scale changes only Deployments that the revision controls. If it controls none, Scale
// writes nothing, and zero is reached when no pods are left.
func (r *Runtime) Scale(ctx context.Context, revision plan.Owner, replicas int32) (reached bool, err error) {
	deployments, err := r.deploymentsOf(ctx, revision)
	if err != nil {
		return false, err
	}
	reached = true
	for i := range deployments {
		d := &deployments[i]
		if d.DeletionTimestamp == nil && ptr.Deref(d.Spec.Replicas, 1) != replicas {
			d.Spec.Replicas = new(replicas)
			if err := r.write(ctx, d); err != nil {
				return false, err
			}
		}
		reached = reached && d.Status.ObservedGeneration >= d.Generation && d.Status.AvailableReplicas == replicas
	}
	if replicas != 0 || !reached {
		return reached, nil
	}
	return r.stopped(ctx, revision)
}

// Remove deletes the Deployment of a revision, and reports whether it and all its pods are gone. It
// deletes neither shared objects nor the ServiceAccount, which the garbage collector deletes with
// the revision. A Deployment of another revision is never changed.
func (r *Runtime) Remove(ctx context.Context, revision plan.Owner) (gone bool, err error) {
	deployments, err := r.deploymentsOf(ctx, revision)
	if err != nil {
		return false, err
	}
	if len(deployments) > 0 {
		return false, r.end(ctx, deployments)
	}
	return r.stopped(ctx, revision)
}

// stopped reports whether a revision has no pods.
func (r *Runtime) stopped(ctx context.Context, revision plan.Owner) (bool, error) {
	pods, err := r.podsOf(ctx, revision.Name)
	return len(pods) == 0, err
}

// deploymentsOf lists the Deployments that a revision controls. An earlier configuration
// may have set another name.
func (r *Runtime) deploymentsOf(ctx context.Context, revision plan.Owner) ([]appsv1.Deployment, error) {
	var all appsv1.DeploymentList
	if err := r.Client.List(ctx, &all, client.InNamespace(r.Namespace)); err != nil {
		return nil, apply.ErrServer.New(err, "list the Deployments of %s", r.Namespace)
	}
	var out []appsv1.Deployment
	for _, d := range all.Items {
		if c := holderOf(&d); c != nil && revision.Is(*c) {
			out = append(out, d)
		}
	}
	return out, nil
}

// servesOther reports whether the Service selects the pods of another revision of the package, and
// one of them is ready.
func (r *Runtime) servesOther(ctx context.Context, s *corev1.Service, who plan.Requester) (bool, error) {
	other := s.Spec.Selector[v1.LabelRevision]
	if s.UID == "" || other == "" || other == who.Revision.Name {
		return false, nil
	}
	deployments, err := r.deploymentsOf(ctx, plan.Owner{
		APIVersion: who.Revision.APIVersion, Kind: who.Revision.Kind, Name: other,
	})
	if err != nil {
		return false, err
	}
	for _, d := range deployments {
		if d.Status.ReadyReplicas > 0 {
			return true, nil
		}
	}
	return false, nil
}
