package deployment

import (
	"context"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// CheckAccepted fails with RuntimeRejected for a Deployment that the API server refuses, before anything of the package is written. It
// asks the API server only about a Deployment that differs from the existing one.
func (r *Runtime) CheckAccepted(ctx context.Context, o manifests.Objects) error {
	live := &appsv1.Deployment{}
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(o.Deployment), live)
	if client.IgnoreNotFound(err) != nil {
		return classify(err, "read", o.Deployment)
	}
	exists := err == nil
	if c := holderOf(live); exists && (c == nil || !o.Owner.Revision.Is(*c) || live.DeletionTimestamp != nil || !sameSelector(live, o.Deployment)) {
		return nil // It is created when the existing one is gone, or never.
	}
	want := o.Deployment.DeepCopy()
	if now, ok := live.Spec.Template.Annotations[manifests.CertificatesAnnotation]; ok && want.Spec.Template.Annotations[manifests.CertificatesAnnotation] == "" {
		// The certificates are issued later.
		metav1.SetMetaDataAnnotation(&want.Spec.Template.ObjectMeta, manifests.CertificatesAnnotation, now)
	}
	next, err := nextDeployment(live, want, r.generation(live))
	if err != nil || next == nil {
		return err
	}
	sum, key := next.Annotations[plan.ContentDigestAnnotation], client.ObjectKeyFromObject(next)
	if r.isAccepted(key, sum) {
		return nil
	}
	if exists {
		err = r.Client.Update(ctx, next, client.DryRunAll, client.FieldOwner(plan.FieldManager))
	} else {
		err = r.Client.Create(ctx, next, client.DryRunAll, client.FieldOwner(plan.FieldManager))
	}
	if err != nil && !withoutDryRun(err) {
		return classify(err, "write", next)
	}
	r.accept(key, sum)
	return nil
}

// withoutDryRun reports whether an admission webhook of the cluster prevents a dry run, so that only a write shows whether the API server
// accepts an object.
func withoutDryRun(err error) bool {
	return apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "does not support dry run")
}

// isAccepted reports whether the API server accepted a Deployment with a digest.
func (r *Runtime) isAccepted(key types.NamespacedName, sum string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.accepted[key] == sum
}

// accept records the digest of a Deployment that the API server accepts, until the Deployment is written.
func (r *Runtime) accept(key types.NamespacedName, sum string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.accepted == nil {
		r.accepted = map[types.NamespacedName]string{}
	}
	r.accepted[key] = sum
}
