// Package orphans deletes packages that the manager installed as dependencies and that no package requires
// any more.
package orphans

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller/logging"
	"github.com/xpkg-dev/xpkg/internal/controller/requeue"
	"github.com/xpkg-dev/xpkg/internal/controller/status"
	"github.com/xpkg-dev/xpkg/internal/frontend"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/state"
)

// retainedPause is the interval between checks of a retained orphan. No event reports that its custom
// resources are gone.
const retainedPause = time.Minute

// Config configures a Reconciler.
type Config struct {
	// Client reads from the cache, and deletes packages.
	Client client.Client
	// Live reads from the API server. No deletion is decided from the cache alone.
	Live         client.Reader
	Cluster      planner.Cluster
	Frontend     *frontend.API
	Packages     state.Packages
	Dependencies *state.Dependencies
	Events       events.EventRecorder
	Now          func() time.Time
	// Guard fails while the manager must not delete packages.
	Guard func(ctx context.Context) error
	// RollbackWindow returns the time for which the active revision of a package may still be
	// rolled back.
	RollbackWindow func(v1.Package, []v1.PackageRevision) time.Duration
}

// Reconciler deletes orphans. It deletes no orphan while the dependencies of a package are unknown,
// and no orphan whose CRDs have custom resources. A package that a user has installed, or that an install object uses,
// is no orphan.
type Reconciler struct {
	Config
	planner *planner.Planner
	// retained holds the reasons that were reported for retained orphans.
	retained map[types.UID]string
}

// New returns a Reconciler.
func New(c Config) *Reconciler {
	return &Reconciler{
		Config: c, retained: map[types.UID]string{},
		planner: &planner.Planner{
			Reader: c.Live, Cluster: c.Cluster, Frontend: c.Frontend, Source: c.Packages.Content,
			Namespace: c.Packages.Namespace,
		},
	}
}

// SetupWithManager registers the controller, which reconciles at each change of a package or a
// revision.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, log *slog.Logger) error {
	enqueue := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: "orphans"}}}
	})
	b := ctrl.NewControllerManagedBy(mgr).Named("orphans")
	for _, kind := range v1.PackageKinds() {
		p := v1.NewPackage(kind)
		b = b.Watches(p, enqueue).Watches(p.NewRevision(), enqueue)
	}
	if err := b.WithOptions(requeue.OneAtATime(log)).Complete(r); err != nil {
		return fmt.Errorf("controller of orphans: %w", err)
	}
	return nil
}

// Reconcile deletes orphans, dependents first: a dependency is deleted once its dependents are gone.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	// The packages report the failure.
	if r.Guard(ctx) != nil {
		return ctrl.Result{RequeueAfter: requeue.Jitter(retainedPause)}, nil
	}
	cached, err := r.dependencyGraph(ctx, r.Client)
	if err != nil || len(r.orphans(ctx, cached)) == 0 {
		return ctrl.Result{RequeueAfter: cached.rollbackWindow}, err
	}
	live, err := r.dependencyGraph(ctx, r.Live)
	if err != nil {
		return ctrl.Result{}, err
	}
	uses, err := r.Frontend.Uses(ctx, r.Cluster, r.Live)
	if err != nil {
		return ctrl.Result{}, err
	}
	uses.Mark(live.nodes)
	if live.unknown != "" {
		logging.FromContext(ctx).DebugContext(
			ctx, "deleting no orphans, because the dependencies of a package are not known", "package", live.unknown,
		)
		return ctrl.Result{RequeueAfter: requeue.Jitter(retainedPause)}, nil
	}
	result := ctrl.Result{RequeueAfter: live.rollbackWindow}
	for orphans := r.orphans(ctx, live); len(orphans) > 0; orphans = r.orphans(ctx, live) {
		retained, err := r.delete(ctx, orphans[0])
		if requeue.IsStale(err) {
			return requeue.Soon(), nil
		}
		if err != nil {
			return ctrl.Result{}, err
		}
		if retained {
			result = requeue.By(result, r.Now().Add(requeue.Jitter(retainedPause)), r.Now())
		}
		// A package that is being deleted still requires its dependencies.
		live.require(orphans[0])
	}
	return result, nil
}

func (r *Reconciler) orphans(ctx context.Context, g dependencyGraph) []graph.Node {
	return graph.New(g.nodes, state.Rewrites(ctx, r.Packages.Origins)).Orphans()
}

// delete deletes an orphan unless there is a reason to retain it, which it reports. It fails with
// requeue.ErrStale if the package is not installed any more.
func (r *Reconciler) delete(ctx context.Context, n graph.Node) (retained bool, err error) {
	p := v1.NewPackage(n.Kind)
	if err := r.Live.Get(ctx, client.ObjectKey{Name: n.Name}, p); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if now, exists := graph.NodeFromPackage(p, nil); !exists || !now.AutoInstalled {
		return false, nil
	}
	revisions, err := state.RevisionsOf(ctx, r.Live, p)
	if err != nil {
		return false, err
	}
	planned, err := r.planner.Uninstall(ctx, p, planner.Options{})
	if errors.Is(err, planner.ErrNotInstalled) {
		return false, requeue.ErrStale
	}
	if err != nil {
		return false, fmt.Errorf("plan to uninstall %s: %w", n.Name, err)
	}
	reason := r.unknownObjects(ctx, revisions)
	if reason == "" {
		reason = wouldDeleteCustomResources(planned)
	}
	if reason != "" {
		r.recordRetained(ctx, p, reason)
		return true, nil
	}
	err = r.Client.Delete(ctx, p, client.Preconditions{UID: new(p.GetUID()), ResourceVersion: new(p.GetResourceVersion())})
	if apierrors.IsForbidden(err) {
		r.recordRetained(ctx, p, "the manager has no permission to delete packages")
		return true, nil
	}
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("delete the orphan %s: %w", n.Name, err)
	}
	delete(r.retained, p.GetUID())
	logging.FromContext(ctx).
		InfoContext(ctx, "orphan deleted", "kind", n.Kind, "package", n.Name, "reference", p.PackageSpec().Package)
	r.Events.Eventf(
		p, nil, corev1.EventTypeNormal, "Orphaned", "Remove", "no package requires %s any more; deleting it", n.Name,
	)
	return false, nil
}

// unknownObjects returns a reason to retain a package if the objects of one of its revisions are not
// known, and "" otherwise.
func (r *Reconciler) unknownObjects(ctx context.Context, revisions []v1.PackageRevision) string {
	for _, rev := range revisions {
		if _, known := r.dependenciesOf(ctx, contentsOf([]v1.PackageRevision{rev})); !known &&
			len(rev.RevisionStatus().ObjectRefs) == 0 {
			return fmt.Sprintf("the objects of the revision %s are not known", rev.GetName())
		}
	}
	return ""
}

// wouldDeleteCustomResources returns a reason to retain a package if its custom resources would be deleted
// with it, and "" otherwise.
func wouldDeleteCustomResources(p *planner.Plan) string {
	if len(p.CustomResources) == 0 {
		return ""
	}
	first := p.CustomResources[0]
	if first.Unknown != "" {
		return fmt.Sprintf("whether there are custom resources of %s is not known: %s", first.CRD, first.Unknown)
	}
	return "there are custom resources of " + first.CRD
}

// recordRetained reports why an orphan is retained, once for each reason.
func (r *Reconciler) recordRetained(ctx context.Context, p v1.Package, reason string) {
	if r.retained[p.GetUID()] == reason {
		return
	}
	r.retained[p.GetUID()] = reason
	logging.FromContext(ctx).
		InfoContext(ctx, "orphan retained", "kind", p.PackageKind(), "package", p.GetName(), "reason", reason)
	r.Events.Eventf(
		p, nil, corev1.EventTypeNormal, "OrphanRetained", "Remove", "no package requires %s any more; retaining it: %s",
		p.GetName(), status.Clip(reason),
	)
}
