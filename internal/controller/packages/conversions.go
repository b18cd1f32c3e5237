package packages

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller/logging"
	"github.com/xpkg-dev/xpkg/internal/controller/requeue"
	"github.com/xpkg-dev/xpkg/internal/controller/watch"
)

// Conversions turns off the conversion of CRDs of packages that are being deleted and whose webhook fails. The API
// server cannot read their custom resources then, so it would never delete them, nor the namespaces that contain them.
type Conversions struct {
	Client client.Client
	Live   client.Reader
	Now    func() time.Time
	// Patience is the time for which the webhook may fail: its runtime can start again, and the custom resources should be
	// finalized in the form that their author has determined.
	Patience time.Duration
}

// conversionPoll is the pause between two checks of a deletion.
const conversionPoll = 10 * time.Second

// SetupWithManager registers the controller.
func (r *Conversions) SetupWithManager(mgr ctrl.Manager, log *slog.Logger) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("conversions").
		WatchesMetadata(
			watch.Metadata(definitionKind), &handler.EnqueueRequestForObject{},
			builder.WithPredicates(predicate.NewPredicateFuncs(isDeletedOfPackage)),
		).
		WithOptions(requeue.Options(log)).
		Complete(r)
}

// isDeletedOfPackage reports whether an object of a package is being deleted.
func isDeletedOfPackage(o client.Object) bool {
	return o.GetDeletionTimestamp() != nil &&
		slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool {
			return strings.HasPrefix(r.APIVersion, v1.Group+"/")
		})
}

// Reconcile turns off the conversion of a CRD if its deletion has failed for too long because of it.
func (r *Conversions) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	o := watch.Metadata(definitionKind)
	if err := r.Client.Get(ctx, request.NamespacedName, o); err != nil || !isDeletedOfPackage(o) {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if left := o.GetDeletionTimestamp().Add(r.Patience).Sub(r.Now()); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	d := &unstructured.Unstructured{}
	d.SetGroupVersionKind(definitionKind)
	if err := r.Live.Get(ctx, request.NamespacedName, d); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(d.Object, &crd); err != nil {
		return ctrl.Result{}, fmt.Errorf("read the CRD %s: %w", request.Name, err)
	}
	why, fails := conversionFailure(crd)
	if !fails {
		return ctrl.Result{RequeueAfter: conversionPoll}, nil
	}
	patch := client.MergeFromWithOptions(d.DeepCopy(), client.MergeFromWithOptimisticLock{})
	if err := unstructured.SetNestedField(
		d.Object, map[string]any{"strategy": string(apiextensionsv1.NoneConverter)}, "spec", "conversion",
	); err != nil {
		return ctrl.Result{}, fmt.Errorf("turn off the conversion of the CRD %s: %w", request.Name, err)
	}
	if err := r.Client.Patch(ctx, d, patch); err != nil {
		return requeue.OnError(ctx, client.IgnoreNotFound(err))
	}
	logging.FromContext(ctx).InfoContext(
		ctx, "conversion of a CRD turned off, so that the API server can delete its custom resources", "crd", request.Name,
		"error", why,
	)
	return ctrl.Result{}, nil
}

// conversionFailure returns why the API server cannot delete the custom resources of a CRD, if the conversion webhook
// is the reason.
func conversionFailure(crd apiextensionsv1.CustomResourceDefinition) (why string, fails bool) {
	if crd.DeletionTimestamp == nil || crd.Spec.Conversion == nil ||
		crd.Spec.Conversion.Strategy != apiextensionsv1.WebhookConverter {
		return "", false
	}
	for _, c := range crd.Status.Conditions {
		if c.Type == apiextensionsv1.Terminating && strings.Contains(c.Message, "conversion webhook") {
			return c.Message, true
		}
	}
	return "", false
}
