// Package rootca maintains and rotates the CA of the certificates of runtimes. All runtimes of a
// manager share one CA, so that a rotation reads all objects once, and not once for each package.
package rootca

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/certificates"
	"github.com/xpkg-dev/xpkg/internal/controller/logging"
	"github.com/xpkg-dev/xpkg/internal/controller/requeue"
	"github.com/xpkg-dev/xpkg/internal/controller/watch"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// Reconciler rotates the CA.
type Reconciler struct {
	Certificates *certificates.Store
	Namespace    string
	Now          func() time.Time
}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, log *slog.Logger) error {
	isRoot := predicate.NewPredicateFuncs(func(o client.Object) bool {
		return o.GetNamespace() == r.Namespace && o.GetName() == certificates.RootSecret
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("certificates").
		WatchesMetadata(watch.Secrets(), &handler.EnqueueRequestForObject{}, builder.WithPredicates(isRoot)).
		WithOptions(requeue.Options(log)).
		Complete(r)
}

// Reconcile advances the rotation of the CA, if it exists, as far as possible.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	next, err := r.Certificates.Keep(ctx)
	if err != nil {
		return requeue.OnError(ctx, err)
	}
	return requeue.By(ctrl.Result{}, next, r.Now()), nil
}

// Distribution checks that a CA bundle has reached the objects of packages.
type Distribution struct {
	Client    client.Client
	Cluster   *apply.Cluster
	Namespace string
}

// IsComplete reports whether the given CA bundle is in all objects with which the API server calls
// runtimes. It considers the objects of active revisions, since the runtimes of others are not
// called. An object with the bundle in the Secret of its own runtime also counts: another issuer
// may have signed that certificate.
func (d Distribution) IsComplete(ctx context.Context, bundle []byte) (bool, error) {
	list := v1.NewPackage(v1.ProviderKind).NewRevisionList()
	if err := d.Client.List(ctx, list); err != nil {
		return false, err
	}
	callers := slices.DeleteFunc(list.Revisions(), func(rev v1.PackageRevision) bool { return !revision.IsActive(rev) })
	var refs []plan.Ref
	for _, rev := range callers {
		refs = append(refs, revision.Objects(rev)...)
	}
	live, err := d.Cluster.Metadata(ctx, refs)
	if err != nil && !errors.Is(err, apply.ErrKindNotServed) {
		return false, err
	}
	for _, rev := range callers {
		for _, ref := range revision.Objects(rev) {
			hash, calls := live[ref].Annotations[plan.CABundleHashAnnotation]
			if !calls || desired.CABundleHashOf(hash) == desired.CABundleHash(bundle) {
				continue
			}
			own, err := d.bundleHashOf(ctx, rev)
			if err != nil {
				return false, err
			}
			if desired.CABundleHashOf(hash) != own {
				logging.FromContext(ctx).InfoContext(
					ctx, "the CA cannot be rotated yet: an object does not name the new CA bundle", "kind", ref.Kind, "name", ref.Name,
				)
				return false, nil
			}
		}
	}
	return true, nil
}

// bundleHashOf returns the hash of the CA bundle in the Secret of a revision's runtime.
func (d Distribution) bundleHashOf(ctx context.Context, rev v1.PackageRevision) (string, error) {
	key := types.NamespacedName{Namespace: d.Namespace}
	if name := rev.RuntimeStatus().TLSServerSecretName; name != nil {
		key.Name = *name
	}
	secret := &corev1.Secret{}
	if err := d.Client.Get(ctx, key, secret); err != nil {
		return "", fmt.Errorf("read Secret %s: %w", key, err)
	}
	return desired.CABundleHash(secret.Data[certificates.KeyBundle]), nil
}
