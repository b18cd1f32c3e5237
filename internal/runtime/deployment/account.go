package deployment

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// account is the ServiceAccount of a runtime.
type account struct {
	// live has no UID if the ServiceAccount does not exist. It is nil if it is not known.
	live *corev1.ServiceAccount
	use  manifests.AccountUse
	// created reports that this call has created the ServiceAccount.
	created bool
}

// uid returns the UID of the ServiceAccount, or "".
func (a account) uid() types.UID {
	if a.live == nil {
		return ""
	}
	return a.live.UID
}

// CheckServiceAccount fails with RuntimePrivileges if the configuration of a runtime names a ServiceAccount that is
// managed elsewhere or belongs to another owner, unless the privilege ServiceAccount is allowed. It fails with
// NameConflict if another package has the ServiceAccount with the name of the revision. It only reads.
func CheckServiceAccount(
	ctx context.Context, reader client.Reader, namespace string, o manifests.Objects, allowed []manifests.Privilege,
) error {
	_, err := readAccount(ctx, reader, namespace, o, allowed)
	return err
}

// CheckServiceAccount fails as the function [CheckServiceAccount] does.
func (r *Runtime) CheckServiceAccount(ctx context.Context, o manifests.Objects) error {
	return CheckServiceAccount(ctx, r.Client, r.Namespace, o, r.Privileges)
}

// readAccount reads the ServiceAccount of a runtime. It fails as [CheckServiceAccount] does.
func readAccount(
	ctx context.Context, reader client.Reader, namespace string, o manifests.Objects, allowed []manifests.Privilege,
) (account, error) {
	a := account{live: &corev1.ServiceAccount{}, use: manifests.AccountOwn}
	a.live.Namespace, a.live.Name = namespace, o.ServiceAccountName
	err := reader.Get(ctx, client.ObjectKeyFromObject(a.live), a.live)
	if apierrors.IsNotFound(err) {
		a.live = &corev1.ServiceAccount{}
		if o.ServiceAccount != nil {
			return a, nil
		}
		a.use = manifests.AccountForeign
		return a, o.CheckForeignAccount(nil, allowed)
	}
	if err != nil {
		return a, classify(err, "read", a.live)
	}
	use, holder := o.ClaimAccount(a.live)
	if a.use = use; use != manifests.AccountForeign {
		return a, nil
	}
	written := a.live.Annotations[plan.ContentDigestAnnotation] != ""
	ofPackage := holder != nil && (written || manifests.IsPackage(*holder)) || o.Owner.Package.Namespace != ""
	if o.AccountConfig == "" && ofPackage { // The manager chooses the name.
		return a, belongs(a.live, holder, o.Owner)
	}
	return a, o.CheckForeignAccount(holder, allowed)
}

// EnsureAccount creates or updates the ServiceAccount of a runtime that does not run as a Deployment, and reports
// whether it created the ServiceAccount. It fails as [CheckServiceAccount] does. A ServiceAccount of another owner is
// not changed.
func (r *Runtime) EnsureAccount(ctx context.Context, o manifests.Objects) (created bool, err error) {
	a, err := readAccount(ctx, r.Client, r.Namespace, o, r.Privileges)
	if err != nil {
		return false, err
	}
	err = r.ensureAccount(ctx, o, &a)
	return a.created, err
}

// ensureAccount creates or updates the ServiceAccount of the runtime, unless it belongs to another owner.
func (r *Runtime) ensureAccount(ctx context.Context, o manifests.Objects, a *account) error {
	if o.ServiceAccount == nil || a.use == manifests.AccountForeign {
		return nil
	}
	if a.use == manifests.AccountShared {
		return r.shareAccount(ctx, o, a.live)
	}
	owners := manifests.Hold(a.live.OwnerReferences, o.Owner, o.ServiceAccount.OwnerReferences)
	next, err := nextAccount(a.live, o.ServiceAccount, owners)
	if err != nil || next == nil {
		return err
	}
	a.created = a.uid() == ""
	a.live = next
	return r.write(ctx, next)
}

// shareAccount adds the package as an owner of a ServiceAccount of another package, so that the
// ServiceAccount outlives that package while this one uses it.
func (r *Runtime) shareAccount(ctx context.Context, o manifests.Objects, live *corev1.ServiceAccount) error {
	owners := manifests.Join(live.OwnerReferences, o.Owner)
	if manifests.EqualOwners(owners, live.OwnerReferences) {
		return nil
	}
	next := live.DeepCopy()
	next.TypeMeta, next.OwnerReferences, next.ManagedFields = o.ServiceAccount.TypeMeta, owners, nil
	return r.write(ctx, next)
}

// accountAnnotation on the pods of a Deployment is the UID of the ServiceAccount that replaced the one with which
// earlier pods started. The tokens of those pods are not valid any more.
const accountAnnotation = "xpkg.dev/service-account"

// renewPods sets the annotation of a ServiceAccount that was created again on the pods, and reports whether that
// replaces the pods of the existing Deployment. Pods of the first ServiceAccount have no annotation.
func (a account) renewPods(live *appsv1.Deployment, pods *corev1.PodTemplateSpec) bool {
	was := lastRecord(live.ObjectMeta).Account
	before := live.Spec.Template.Annotations[accountAnnotation]
	now := before
	if live.UID != "" && a.uid() != "" && (a.created || was != "" && was != a.uid()) {
		now = string(a.uid())
	}
	if now != "" {
		metav1.SetMetaDataAnnotation(&pods.ObjectMeta, accountAnnotation, now)
	}
	return now != before
}

// withAccount returns the state of a Deployment that is not available if its pods have no valid tokens: the
// ServiceAccount does not exist, or has been created again and the pods are being replaced.
func withAccount(s runtime.State, d *appsv1.Deployment, a account) runtime.State {
	name := d.Spec.Template.Spec.ServiceAccountName
	switch {
	case !s.Available:
	case a.uid() == "":
		s.Available, s.Reason = false, reasonNoAccount
		s.Message = fmt.Sprintf("the ServiceAccount %s does not exist", name)
	case s.RollingOut && d.Spec.Template.Annotations[accountAnnotation] == string(a.uid()):
		s.Available, s.Reason, s.Message = false, runtime.ReasonAccountRestored, runtime.AccountRestored(name)
	}
	return s
}
