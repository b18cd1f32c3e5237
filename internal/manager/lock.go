package manager

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/closure"
	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/lockfile"
	"github.com/xpkg-dev/xpkg/internal/oci"
)

// lockReconciler writes down which packages are installed, what they depend on and
// which objects they hold, in the object that the tools of the field read. The Lock is derived from
// the active revisions every time: nothing is ever decided from what it says, so
// that a damaged Lock harms nobody and is repaired with the next change.
type lockReconciler struct{ *world }

// lockLimit is how many bytes the packages of the Lock may have: etcd takes one and a
// half times that in one object.
const lockLimit = 1 << 20

// Reconcile brings the Lock up to date.
func (r *lockReconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	revisions, err := r.all(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := r.inUse(contents(revisions)); err != nil {
		r.log.WarnContext(ctx, "the package cache cannot be told what is in use", "error", err.Error())
	}
	packages := r.packages(ctx, revisions)
	lock := &v1beta1.Lock{}
	err = r.client.Get(ctx, types.NamespacedName{Name: v1beta1.LockName}, lock)
	switch {
	case apierrors.IsNotFound(err):
		lock.Name, lock.Packages = v1beta1.LockName, packages
		r.settling.announce(lock)
		return r.wrote(lock, r.client.Create(ctx, lock))
	case err != nil:
		return ctrl.Result{}, err
	case r.writes.behind(lock):
		return ctrl.Result{RequeueAfter: behindPause}, nil
	}
	if announced := r.settling.announce(lock); !announced && equality.Semantic.DeepEqual(lock.Packages, packages) {
		return ctrl.Result{}, nil
	}
	lock.Packages = packages
	return r.wrote(lock, r.client.Update(ctx, lock))
}

// wrote takes what became of a write. One that came too late for what was watched is
// made again at once: people look at the Lock as soon as a package is healthy.
func (r *lockReconciler) wrote(lock *v1beta1.Lock, err error) (ctrl.Result, error) {
	switch {
	case err == nil:
		r.writes.wrote(lock)
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return ctrl.Result{RequeueAfter: behindPause}, nil
	}
	return ctrl.Result{}, err
}

// all lists the revisions of all kinds. They are those that everybody sees, and not to
// be changed.
func (w *world) all(ctx context.Context) ([]v1.PackageRevision, error) {
	var out []v1.PackageRevision
	for _, kind := range v1.PackageKinds() {
		list := v1.NewPackage(kind).NewRevisionList()
		if err := w.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list revisions: %w", err)
		}
		out = append(out, list.Revisions()...)
	}
	return out, nil
}

// contents are the digests of revisions, each once, in their order.
func contents(revisions []v1.PackageRevision) []oci.Digest {
	var out []oci.Digest
	for _, rev := range revisions {
		if d, err := oci.ParseDigest(rev.RevisionSpec().Digest); err == nil {
			out = append(out, d)
		}
	}
	slices.SortFunc(out, func(a, b oci.Digest) int { return cmp.Compare(a.String(), b.String()) })
	return slices.Compact(out)
}

// packages gives an entry for each active revision, in the order of their names.
func (r *lockReconciler) packages(ctx context.Context, revisions []v1.PackageRevision) []v1beta1.LockPackage {
	var out []v1beta1.LockPackage
	for _, rev := range revisions {
		if !active(rev) || rev.GetDeletionTimestamp() != nil {
			continue
		}
		if entry, ok := r.entry(ctx, rev); ok {
			out = append(out, entry)
		}
	}
	slices.SortFunc(out, func(a, b v1beta1.LockPackage) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Name, b.Name))
	})
	closure.Fit(out, lockLimit)
	return out
}

func (r *lockReconciler) entry(ctx context.Context, rev v1.PackageRevision) (v1beta1.LockPackage, bool) {
	ref, err := oci.ParseReference(rev.RevisionSpec().Image, oci.ParseOptions{})
	if err != nil {
		return v1beta1.LockPackage{}, false
	}
	version := ref.Tag
	if version == "" {
		version = ref.Digest.String()
	}
	needs := r.needs.of(ctx, ref, rev.RevisionSpec().Digest)
	return v1beta1.LockPackage{
		Name: rev.GetName(), APIVersion: new(v1.GroupVersion.String()), Kind: new(rev.PackageKind()),
		// The API server wants a list of dependencies, also of none.
		Source: ref.Name(), Version: version, Dependencies: append([]v1beta1.Dependency{}, lockDependencies(needs, false)...),
		OptionalDependencies: lockDependencies(needs, true), Owns: closure.Owned(rev),
	}, true
}

func lockDependencies(needs []format.Dependency, optional bool) []v1beta1.Dependency {
	var out []v1beta1.Dependency
	for _, d := range needs {
		if d.Optional != optional {
			continue
		}
		dep := v1beta1.Dependency{Package: lockfile.Repository(d.Package), Constraints: d.Constraint}
		if d.Kind != "" {
			dep.APIVersion, dep.Kind = new(cmp.Or(d.APIVersion, v1.GroupVersion.String())), new(string(d.Kind))
		}
		out = append(out, dep)
	}
	return out
}

// setupLock makes every change of a revision, and of the Lock, a reason to look
// at the Lock again.
func setupLock(mgr ctrl.Manager, w *world) error {
	toLock := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: v1beta1.LockName}}}
	})
	b := ctrl.NewControllerManagedBy(mgr).Named("lock").Watches(&v1beta1.Lock{}, toLock)
	for _, kind := range v1.PackageKinds() {
		b = b.Watches(v1.NewPackage(kind).NewRevision(), toLock)
	}
	opts := options()
	opts.MaxConcurrentReconciles = 1
	err := b.WithOptions(opts).Complete(&lockReconciler{w})
	if err != nil {
		return fmt.Errorf("controller of the Lock: %w", err)
	}
	return nil
}
