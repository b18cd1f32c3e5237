// Package lock writes the Lock, from which other tools and the plans of commands read the installed
// packages, their dependencies and their objects.
//
// The packages in the Lock are derived from the active revisions. An entry keeps its dependencies only
// while the content of its revision cannot be read. No other controller reads the packages, so a
// damaged Lock harms no package and is repaired with the next change. At its start, the manager
// only reads the annotation that names the namespace of the manager in charge.
package lock

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	goruntime "runtime"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/activation"
	"github.com/xpkg-dev/xpkg/internal/controller/contention"
	"github.com/xpkg-dev/xpkg/internal/controller/expectations"
	"github.com/xpkg-dev/xpkg/internal/controller/logging"
	"github.com/xpkg-dev/xpkg/internal/controller/requeue"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/permission"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
	"github.com/xpkg-dev/xpkg/internal/serverside"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/internal/version"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// sizeLimit is the maximum size in bytes of the packages of the Lock. The limit of etcd for one
// object is 1.5 times as large.
const sizeLimit = 1 << 20

// Reconciler writes the Lock.
type Reconciler struct {
	Client       client.Client
	Dependencies *state.Dependencies
	Writes       *expectations.Versions
	// Announcements are the annotations from which plans read the configuration of the manager. See
	// [Announcements].
	Announcements map[string]string
	// Now returns the time of a transition of a condition.
	Now func() metav1.Time
	// Guard fails while the manager must not write the Lock.
	Guard func(ctx context.Context) error
	// InUse is called with the digests of the contents of all revisions.
	InUse func(contents []oci.Digest) error
	// Reconciled is called after every reconciliation, including failed ones.
	Reconciled func()

	// pace limits the writes of the packages.
	pace pace
}

// SetupWithManager registers the controller. The controller reconciles at each change of a revision
// or of the Lock, and when it starts: the first plan on a cluster needs the announcements.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, log *slog.Logger) error {
	enqueue := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: v1beta1.LockName}}}
	})
	atStart := source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: v1beta1.LockName}})
		return nil
	})
	b := ctrl.NewControllerManagedBy(mgr).Named("lock").Watches(&v1beta1.Lock{}, enqueue).WatchesRawSource(atStart)
	for _, kind := range v1.PackageKinds() {
		b = b.Watches(v1.NewPackage(kind).NewRevision(), enqueue)
	}
	if err := b.WithOptions(requeue.OneAtATime(log)).Complete(r); err != nil {
		return fmt.Errorf("controller of the Lock: %w", err)
	}
	return nil
}

// Reconcile writes the Lock if it differs from the active revisions.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	defer r.Reconciled()
	// The packages report the failure.
	if r.Guard(ctx) != nil {
		return ctrl.Result{RequeueAfter: requeue.Jitter(requeue.LastRetry)}, nil
	}
	revisions, err := state.ListRevisions(ctx, r.Client)
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := r.InUse(contents(revisions)); err != nil {
		logging.FromContext(ctx).
			WarnContext(ctx, "cannot mark package contents as in use in the package cache", "error", err.Error())
	}
	lock := &v1beta1.Lock{}
	err = r.Client.Get(ctx, types.NamespacedName{Name: v1beta1.LockName}, lock)
	packages := r.entries(ctx, revisions, lock.Packages)
	switch {
	case apierrors.IsNotFound(err):
		lock.Packages = packages
		r.announce(lock)
		return r.written(lock, Create(ctx, r.Client, lock, plan.FieldManager))
	case err != nil:
		return ctrl.Result{}, err
	case r.Writes.IsBehind(lock):
		return ctrl.Result{RequeueAfter: expectations.Pause}, nil
	}
	announced, released := r.announce(lock), controllerutil.RemoveFinalizer(lock, v1beta1.FinalizerLock)
	if announced || released || !equality.Semantic.DeepEqual(lock.Packages, packages) {
		began := time.Now()
		if wait := r.pace.next.Sub(began); wait > 0 {
			return ctrl.Result{RequeueAfter: wait}, nil
		}
		lock.Packages = packages
		err := r.Client.Update(ctx, lock)
		r.pace.wrote(began, time.Now())
		return r.written(lock, err)
	}
	if r.setResolved(lock, revisions) {
		return r.written(lock, r.Client.Status().Update(ctx, lock))
	}
	return ctrl.Result{}, nil
}

// Create creates the Lock by server-side apply. For two seconds after a CRD is established, the API
// server delays create requests for its objects, but no apply requests, and the start of a manager
// waits for the Lock.
func Create(ctx context.Context, c client.Client, lock *v1beta1.Lock, fieldManager string) error {
	lock.Name = v1beta1.LockName
	lock.SetGroupVersionKind(v1beta1.GroupVersion.WithKind(v1beta1.LockKind))
	return serverside.Apply(ctx, c, lock, fieldManager)
}

// setResolved sets the Resolved condition of the Lock, and reports whether the status changed. The
// packages are written first, which enqueues the Lock again for its condition. The condition has no
// observedGeneration: it is derived from the revisions, and each change of the Lock would otherwise
// need a second write.
func (r *Reconciler) setResolved(lock *v1beta1.Lock, revisions []v1.PackageRevision) (changed bool) {
	before := lock.Status.DeepCopy()
	if resolved, ok := Resolved(revisions); ok {
		lock.Status.SetConditions(0, r.Now(), resolved)
	} else {
		lock.Status.RemoveCondition(v1beta1.TypeResolved)
	}
	return !equality.Semantic.DeepEqual(*before, lock.Status)
}

// written returns when to reconcile again after a write, and records a successful one. A conflict
// is retried at once, because users read the Lock as soon as a package is healthy.
func (r *Reconciler) written(lock *v1beta1.Lock, err error) (ctrl.Result, error) {
	switch {
	case err == nil:
		r.Writes.Wrote(lock)
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return ctrl.Result{RequeueAfter: expectations.Pause}, nil
	}
	if at, stopped := contention.RetryAt(err); stopped {
		return ctrl.Result{RequeueAfter: requeue.Jitter(max(requeue.FirstRetry, time.Until(at)))}, nil
	}
	return ctrl.Result{}, err
}

// Announcements returns the annotations of the Lock for a configuration of the manager. The upgrade policy
// is empty where the manager installs no dependencies.
func Announcements(
	upgrades graph.Policy, removal graph.RemovalPolicy, namespaced, approvesIncrease bool, runtimes runtime.Choice,
	privileges []manifests.Privilege,
) map[string]string {
	out := map[string]string{runtime.AnnotationChoice: runtimes.String(), runtime.AnnotationPlatform: goruntime.GOOS +
		"/" + goruntime.GOARCH, version.AnnotationManager: version.Version}
	if len(privileges) > 0 {
		out[runtime.AnnotationPrivileges] = manifests.JoinPrivileges(privileges)
	}
	if upgrades != "" {
		out[graph.AnnotationUpgrades] = string(upgrades)
	}
	if removal == graph.RemoveOrphans {
		out[graph.AnnotationRemovalPolicy] = string(removal)
	}
	if namespaced {
		out[permission.AnnotationScope] = permission.ScopeNamespaced
	}
	if approvesIncrease {
		out[permission.AnnotationIncrease] = permission.ApproveIncrease
	}
	return out
}

// announce sets the announcements on the Lock, and reports whether the annotations changed.
func (r *Reconciler) announce(lock *v1beta1.Lock) (changed bool) {
	annotations := maps.Clone(lock.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	for _, key := range []string{
		graph.AnnotationUpgrades, graph.AnnotationRemovalPolicy, permission.AnnotationScope, permission.AnnotationIncrease,
		runtime.AnnotationChoice, runtime.AnnotationPrivileges, runtime.AnnotationPlatform, version.AnnotationManager,
		activation.AnnotationKinds,
	} {
		delete(annotations, key)
	}
	maps.Copy(annotations, r.Announcements)
	changed = !maps.Equal(annotations, lock.Annotations)
	lock.Annotations = annotations
	return changed
}

// contents returns the digests of revisions in order, each once.
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

// entries returns an entry for each active revision, by repository and name. Before are the previous entries.
func (r *Reconciler) entries(
	ctx context.Context, revisions []v1.PackageRevision, before []v1beta1.LockPackage,
) []v1beta1.LockPackage {
	var out []v1beta1.LockPackage
	for _, rev := range revisions {
		if !revision.IsActive(rev) || rev.GetDeletionTimestamp() != nil {
			continue
		}
		if entry, ok := r.entry(ctx, rev, before); ok {
			out = append(out, entry)
		}
	}
	slices.SortFunc(out, func(a, b v1beta1.LockPackage) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Name, b.Name))
	})
	graph.TrimOwned(out, sizeLimit)
	return out
}

// entry returns the entry of a revision. While its content cannot be read, it keeps the dependencies of its previous
// entry: without them, its dependencies would be orphans.
func (r *Reconciler) entry(
	ctx context.Context, rev v1.PackageRevision, before []v1beta1.LockPackage,
) (v1beta1.LockPackage, bool) {
	spec := rev.RevisionSpec()
	ref, err := oci.ParseReference(spec.Image, oci.ParseOptions{})
	if err != nil {
		return v1beta1.LockPackage{}, false
	}
	all, known := r.Dependencies.Lookup(ctx, spec.Image, spec.Digest)
	out := v1beta1.LockPackage{
		Name: rev.GetName(), APIVersion: new(v1.GroupVersion.String()), Kind: new(rev.PackageKind()),
		Source: ref.Name(), Version: cmp.Or(ref.Tag, ref.Digest.String()),
		// The API server requires a list of dependencies, also an empty one.
		Dependencies:         append([]v1beta1.Dependency{}, graph.LockDependencies(dependency.Required(all))...),
		OptionalDependencies: graph.LockDependencies(dependency.Optional(all)), Owns: graph.OwnedObjects(rev),
	}
	same := func(e v1beta1.LockPackage) bool {
		return e.Name == out.Name && e.Source == out.Source && e.Version == out.Version
	}
	if at := slices.IndexFunc(before, same); at >= 0 && !known {
		out.Dependencies = append(out.Dependencies, before[at].Dependencies...)
		out.OptionalDependencies = before[at].OptionalDependencies
	}
	return out, true
}
