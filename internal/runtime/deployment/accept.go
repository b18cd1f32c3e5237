package deployment

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// CheckAccepted fails with NameConflict for a Deployment or a Service with the name of another owner's object, and with
// RuntimeRejected for a Deployment that the API server refuses, before anything of the package is written. It reads a
// Service with the name of the package only if the Deployment does not exist, and asks the API server only about a
// Deployment that differs from the existing one.
func (r *Runtime) CheckAccepted(ctx context.Context, o manifests.Objects) error {
	live, state, err := r.readDeployment(ctx, o)
	if err != nil || state.Reason != "" {
		return err // It is created when the existing one is gone.
	}
	exists := live.UID != ""
	if !exists || o.NamesService() {
		if err := CheckService(ctx, r.Client, o); err != nil {
			return err
		}
	}
	want := o.Deployment.DeepCopy()
	if now, ok := live.Spec.Template.Annotations[manifests.CertificatesAnnotation]; ok &&
		want.Spec.Template.Annotations[manifests.CertificatesAnnotation] == "" {
		// The certificates are issued later.
		metav1.SetMetaDataAnnotation(&want.Spec.Template.ObjectMeta, manifests.CertificatesAnnotation, now)
	}
	next, err := nextDeployment(live, want, account{}, r.generation(live))
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

// CheckService fails with NameConflict if the Service of a runtime belongs to another owner.
func CheckService(ctx context.Context, reader client.Reader, o manifests.Objects) error {
	_, err := readService(ctx, reader, o)
	return err
}

// withoutDryRun reports whether an admission webhook of the cluster prevents a dry run, so that only a write shows
// whether the API server accepts an object.
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
