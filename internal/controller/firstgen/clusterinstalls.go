package firstgen

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller/contention"
	"github.com/xpkg-dev/xpkg/internal/controller/logging"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/firstgen"
)

// FinalizerProvider keeps a ClusterPackageInstall until its Provider is deleted, and a Package until its cluster roles
// are: the garbage collector deletes no objects without a namespace for an owner in a namespace.
const FinalizerProvider = "xpkg.dev/first-generation"

// deletionPoll is the pause between two checks of the deletion of a Provider, which is also watched.
const deletionPoll = 5 * time.Second

// ClusterInstalls reconciles ClusterPackageInstalls.
type ClusterInstalls struct{ Base }

// Reconcile reconciles one ClusterPackageInstall.
func (r *ClusterInstalls) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	in := packagesv1alpha1.NewInstall(packagesv1alpha1.ClusterPackageInstallKind).(*packagesv1alpha1.ClusterPackageInstall)
	if err := r.API.Client.Get(ctx, req.NamespacedName, in); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	reconcile := r.reconcile
	if in.DeletionTimestamp != nil {
		if !controllerutil.ContainsFinalizer(in, FinalizerProvider) {
			return ctrl.Result{}, nil
		}
		reconcile = r.reconcileDelete
	}
	ctx = contention.WithCause(ctx, causeOf(in))
	ctx = logging.With(ctx, "kind", in.Kind, "namespace", in.Namespace, "name", in.Name)
	return r.API.Status.Report(ctx, in, func(ctx context.Context) (ctrl.Result, revision.Summary, error) {
		result, summary, err := reconcile(ctx, in)
		if failed := r.settleRecord(ctx, in, summary, err); failed != nil {
			return ctrl.Result{}, revision.Summary{}, failed
		}
		return result, summary, err
	}, failedConditions)
}

func (r *ClusterInstalls) reconcile(
	ctx context.Context, in *packagesv1alpha1.ClusterPackageInstall,
) (ctrl.Result, revision.Summary, error) {
	if !r.Options.administers(in.Namespace, r.Namespace) {
		return ctrl.Result{}, revision.Summary{},
			ErrNamespace.New(nil, "ClusterPackageInstalls in the namespace %s are not accepted", in.Namespace).
				WithDo("Create the ClusterPackageInstall in the namespace %s, or restart the manager with %s: its users could then install any package.",
					r.Namespace, wording.RestartManager("--cluster-install-namespace="+in.Namespace))
	}
	if err := r.checkRecord(ctx, in); err != nil {
		return ctrl.Result{}, revision.Summary{}, err
	}
	unlock, err := r.lockKind(ctx, in)
	if err != nil {
		return ctrl.Result{}, revision.Summary{}, err
	}
	defer unlock()
	ref, other, err := r.chosen(ctx, in)
	if err != nil {
		return ctrl.Result{}, revision.Summary{}, err
	}
	if other != "" {
		// The CRD is installed already. A Provider that the object maintained before belongs to the user now.
		if err := r.releaseProvider(ctx, in); err != nil {
			return ctrl.Result{}, revision.Summary{}, err
		}
		return r.mirror(ctx, in, other, "")
	}
	if len(in.Spec.ImagePullSecrets) > 0 && in.Namespace != r.Namespace {
		return ctrl.Result{}, revision.Summary{},
			ErrPullSecret.New(nil, "spec.imagePullSecrets names Secrets of the namespace %s", in.Namespace)
	}
	if err := r.ensureFinalizer(ctx, in); err != nil {
		return ctrl.Result{}, revision.Summary{}, err
	}
	if own, err := r.ownProvider(ctx, in); err != nil || own != nil && own.DeletionTimestamp != nil {
		// A user deleted it. The object creates it again when it is gone.
		return ctrl.Result{RequeueAfter: deletionPoll}, deletingProvider(r.providerName(in), own), err
	}
	if err := r.ensureProvider(ctx, in, ref); err != nil {
		return ctrl.Result{}, revision.Summary{}, err
	}
	return r.mirror(ctx, in, r.providerName(in), ref.String())
}

// mirror maintains the record of an install object, and returns the state of its Provider. Written is the package that
// the object has written to the Provider, and "" for a Provider that it does not maintain.
func (r *ClusterInstalls) mirror(
	ctx context.Context, in *packagesv1alpha1.ClusterPackageInstall, provider, written string,
) (ctrl.Result, revision.Summary, error) {
	in.Status.Provider = provider
	p := &v1.Provider{}
	err := r.API.Client.Get(ctx, types.NamespacedName{Name: provider}, p)
	if apierrors.IsNotFound(err) {
		return ctrl.Result{}, creating("The Provider %s is created.", provider), nil
	}
	if err != nil {
		return ctrl.Result{}, revision.Summary{}, err
	}
	in.SetConditions(r.API.Time(), v1.Synced())
	if written != "" && p.Spec.Package != written {
		// The cache does not contain the write yet.
		return ctrl.Result{}, creating("The Provider %s is updated.", provider), nil
	}
	summary := summaryOf("The Provider "+provider, p, p.Status.ObservedGeneration)
	c, exists, err := r.activeContent(ctx, p)
	if err != nil && summary.Ready {
		return ctrl.Result{}, revision.Summary{}, err
	}
	if err != nil || !exists {
		return ctrl.Result{}, summary, nil
	}
	if err := checkProvides(in, p.Name, c); err != nil {
		return ctrl.Result{}, revision.Summary{}, err
	}
	record, err := r.ensureContent(ctx, in, c)
	if err != nil {
		return ctrl.Result{}, revision.Summary{}, err
	}
	in.Status.PackageRecord = referenceTo(record)
	if isTemplating(record) {
		if summary.Ready {
			summary = summaryOf("The Package "+record.Name, record, record.Status.ObservedGeneration)
		}
		return ctrl.Result{}, summary, nil
	}
	return ctrl.Result{}, summary, nil
}

// settleRecord makes the record of an install object agree with its Provider after a reconciliation, whatever its
// result is. The record of an object whose Provider does not exist is deleted.
func (r *ClusterInstalls) settleRecord(
	ctx context.Context, in *packagesv1alpha1.ClusterPackageInstall, summary revision.Summary, failure error,
) error {
	p, err := r.usedProvider(ctx, in)
	if err != nil {
		return err
	}
	if p == nil {
		return r.deleteUnprovided(ctx, in, failure)
	}
	if in.DeletionTimestamp == nil || failure != nil {
		summary = summaryOf("The Provider "+p.Name, p, p.Status.ObservedGeneration)
	}
	return r.reportRecord(ctx, in, &packagesv1alpha1.ObjectReference{
		APIVersion: v1.GroupVersion.String(), Kind: v1.ProviderKind, Name: p.Name, UID: string(p.UID),
	}, summary)
}

// ensureFinalizer adds the finalizer to an install object before its Provider is created.
func (r *ClusterInstalls) ensureFinalizer(ctx context.Context, in *packagesv1alpha1.ClusterPackageInstall) error {
	if controllerutil.ContainsFinalizer(in, FinalizerProvider) {
		return nil
	}
	changed := in.DeepCopy()
	controllerutil.AddFinalizer(changed, FinalizerProvider)
	if err := r.API.Client.Update(ctx, changed); err != nil {
		return fmt.Errorf("write the finalizer of %s: %w", in.Name, err)
	}
	in.Finalizers, in.ResourceVersion = changed.Finalizers, changed.ResourceVersion
	r.API.Status.Writes.Wrote(in)
	return nil
}

// releaseUnused releases the own Provider of an install object that names a CRD, unless the Provider was selected for
// this CRD: the object uses another Provider or none, or named the package of its Provider before.
func (r *ClusterInstalls) releaseUnused(ctx context.Context, in *packagesv1alpha1.ClusterPackageInstall) error {
	crd, ok := firstgen.ParseCRDReference(in.Spec.CRD)
	if !ok || in.Spec.Package != "" {
		return nil
	}
	own, err := r.ownProvider(ctx, in)
	if err != nil || own == nil {
		return err
	}
	recorded := recordedChoice(in, crd, own)
	other, err := r.installedOther(ctx, crd, own, recorded)
	if err != nil || other == "" && recorded != "" {
		return err
	}
	return r.releaseProvider(ctx, in)
}

// orphansDependents reports whether an install object is deleted without its dependents, as with kubectl delete
// --cascade=orphan. The garbage collector removes the finalizer of such a deletion soon, and leaves a record without
// the object as its owner.
func (r *ClusterInstalls) orphansDependents(
	ctx context.Context, in *packagesv1alpha1.ClusterPackageInstall,
) (bool, error) {
	if controllerutil.ContainsFinalizer(in, metav1.FinalizerOrphanDependents) {
		return true, nil
	}
	record := &packagesv1alpha1.Package{}
	err := r.API.Live.Get(ctx, client.ObjectKeyFromObject(in), record)
	return err == nil && isRecordOf(record, in) && isOwnerlessRecord(record), client.IgnoreNotFound(err)
}

// reconcileDelete deletes the Provider of an install object, and removes the finalizer when the Provider is gone. A
// Provider of another client, and one that the object does not use any more, stay, and so does the Provider of an
// object that is deleted without its dependents.
func (r *ClusterInstalls) reconcileDelete(
	ctx context.Context, in *packagesv1alpha1.ClusterPackageInstall,
) (ctrl.Result, revision.Summary, error) {
	orphans, err := r.orphansDependents(ctx, in)
	if err != nil {
		return ctrl.Result{}, revision.Summary{}, err
	}
	if orphans {
		err = r.releaseProvider(ctx, in)
		if err == nil {
			err = r.deleteRecord(ctx, in) // The Provider shows its content, and no object maintains the record.
		}
	} else {
		err = r.releaseUnused(ctx, in)
	}
	if err != nil {
		return ctrl.Result{}, revision.Summary{}, err
	}
	name := r.providerName(in)
	p := &v1.Provider{}
	err = r.API.Live.Get(ctx, types.NamespacedName{Name: name}, p)
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return ctrl.Result{}, revision.Summary{}, fmt.Errorf("read Provider %s: %w", name, err)
	case p.Annotations[state.AnnotationInstalledBy] != state.InstalledBy(in):
	case p.DeletionTimestamp != nil:
		return ctrl.Result{RequeueAfter: deletionPoll}, deletingProvider(name, p), nil
	default:
		return ctrl.Result{RequeueAfter: deletionPoll}, deletingProvider(name, nil), r.API.Delete(ctx, p)
	}
	if err := r.deleteConfig(ctx, in); err != nil {
		return ctrl.Result{}, revision.Summary{}, err
	}
	changed := in.DeepCopy()
	controllerutil.RemoveFinalizer(changed, FinalizerProvider)
	if err := client.IgnoreNotFound(r.API.Client.Update(ctx, changed)); err != nil {
		return ctrl.Result{}, revision.Summary{}, fmt.Errorf("remove the finalizer of %s: %w", in.Name, err)
	}
	in.Finalizers, in.ResourceVersion = changed.Finalizers, changed.ResourceVersion
	return ctrl.Result{}, deletingProvider(name, nil), nil
}

// deletingProvider returns the summary of an object whose Provider is being deleted. The Provider is nil if it is not
// known, or gone. One with custom resources waits for an answer of a user.
func deletingProvider(name string, p *v1.Provider) revision.Summary {
	if p != nil {
		if ready := p.GetCondition(v1.TypeReady); ready.Reason == v1.ReasonCustomResourcesExist {
			return deleting("The Provider %s: %s", name, ready.Message)
		}
	}
	return deleting("The Provider %s is being deleted.", name)
}
