package manager

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/closure"
	"github.com/xpkg-dev/xpkg/internal/preview"
)

// removalReconciler deletes packages that the manager has installed because others
// needed them, when nobody needs them any more. It deletes none while it is not known
// what some package needs, none whose definitions have custom resources, and none that
// a person has made, or has made theirs.
type removalReconciler struct {
	*world
	// planner tells what would go with a package.
	planner *preview.Planner
	// told is why packages were kept when somebody was told last.
	told map[types.UID]string
}

// removalPause is how long one waits to look again at what is in the way of a removal,
// of which no event tells.
const removalPause = time.Minute

// Reconcile deletes what is there in vain. Whoever needs others goes first, and is gone
// before they go.
func (r *removalReconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	heard, err := r.standing(ctx, r.client)
	if err != nil || len(r.orphans(ctx, heard)) == 0 {
		return ctrl.Result{}, err
	}
	// What is deleted follows from what there is, and not from what was heard of it.
	now, err := r.standing(ctx, r.live)
	if err != nil {
		return ctrl.Result{}, err
	}
	if now.unknown != "" {
		r.log.DebugContext(ctx, "nothing that nobody needs is removed, since it is not known what a package needs", "package", now.unknown)
		return ctrl.Result{RequeueAfter: spread(removalPause)}, nil
	}
	var result ctrl.Result
	for orphans := r.orphans(ctx, now); len(orphans) > 0; orphans = r.orphans(ctx, now) {
		kept, err := r.remove(ctx, orphans[0])
		if stale(err) {
			return ctrl.Result{RequeueAfter: spread(firstRetry)}, nil
		}
		if err != nil {
			return ctrl.Result{}, err
		}
		if kept {
			result.RequeueAfter = spread(removalPause)
		}
		// It is there until it is gone, and needs what it needs.
		now.stays(orphans[0])
	}
	return result, nil
}

func (r *removalReconciler) orphans(ctx context.Context, s standing) []closure.Node {
	return closure.NewGraph(s.nodes, r.places(ctx)).Orphans()
}

// stays makes a package one that is not there in vain.
func (s *standing) stays(n closure.Node) {
	for i := range s.nodes {
		if s.nodes[i].Compare(n) == 0 {
			s.nodes[i].Made = false
		}
	}
}

// remove deletes a package as it is now, unless there is something that would be lost.
func (r *removalReconciler) remove(ctx context.Context, n closure.Node) (kept bool, err error) {
	p := v1.NewPackage(n.Kind)
	if err := r.live.Get(ctx, client.ObjectKey{Name: n.Name}, p); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if now, there := closure.Of(p, nil); !there || !now.Made {
		return false, nil
	}
	revisions, err := r.revisionsNow(ctx, p)
	if err != nil {
		return false, err
	}
	goes, err := r.planner.Uninstall(ctx, p)
	if preview.ErrNotInstalled.Is(err) {
		return false, errStale
	}
	if err != nil {
		return false, fmt.Errorf("see what would go with %s: %w", n.Name, err)
	}
	why := r.unlisted(ctx, revisions)
	if why == "" {
		why = losses(goes)
	}
	if why != "" {
		r.keep(ctx, p, why)
		return true, nil
	}
	err = r.client.Delete(ctx, p, gone(p))
	if apierrors.IsForbidden(err) {
		r.keep(ctx, p, "the package manager may not delete packages")
		return true, nil
	}
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("remove %s, which nobody needs: %w", n.Name, err)
	}
	delete(r.told, p.GetUID())
	r.log.InfoContext(ctx, "removed what nobody needs any more", "kind", n.Kind, "package", n.Name, "reference", p.PackageSpec().Package)
	r.events.Eventf(p, nil, corev1.EventTypeNormal, "Orphaned", "Remove", "nobody needs %s any more, and it is removed", n.Name)
	return false, nil
}

// unlisted says of which revision nobody knows what it owns, or nothing.
func (r *removalReconciler) unlisted(ctx context.Context, revisions []v1.PackageRevision) string {
	for _, rev := range revisions {
		if _, known := r.needsOf(ctx, contentsOf([]v1.PackageRevision{rev})); !known && len(rev.RevisionStatus().ObjectRefs) == 0 {
			return fmt.Sprintf("what the revision %s owns is not known", rev.GetName())
		}
	}
	return ""
}

// losses says what somebody would lose, or nothing.
func losses(p *preview.Plan) string {
	if len(p.Resources) == 0 {
		return ""
	}
	first := p.Resources[0]
	if first.Unknown != "" {
		return fmt.Sprintf("whether there are custom resources of %s is not known: %s", first.Definition, first.Unknown)
	}
	return "there are custom resources of " + first.Definition
}

// keep tells once why a package stays.
func (r *removalReconciler) keep(ctx context.Context, p v1.Package, why string) {
	if r.told[p.GetUID()] == why {
		return
	}
	r.told[p.GetUID()] = why
	r.log.InfoContext(ctx, "kept what nobody needs any more", "kind", p.PackageKind(), "package", p.GetName(), "reason", why)
	r.events.Eventf(p, nil, corev1.EventTypeNormal, "OrphanKept", "Remove", "nobody needs %s any more, and it stays: %s", p.GetName(), clip(why))
}

// setupRemoval makes every change of a package or a revision a reason to look whether
// something is there in vain, where that is to be removed.
func setupRemoval(mgr ctrl.Manager, w *world) error {
	if w.settling == nil || w.settling.Removal != closure.RemoveOrphans {
		return nil
	}
	cluster, err := preview.NewCluster(mgr.GetConfig())
	if err != nil {
		return err
	}
	toAll := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: "orphans"}}}
	})
	b := ctrl.NewControllerManagedBy(mgr).Named("orphans")
	for _, kind := range v1.PackageKinds() {
		p := v1.NewPackage(kind)
		b = b.Watches(p, toAll).Watches(p.NewRevision(), toAll)
	}
	opts := options()
	opts.MaxConcurrentReconciles = 1
	err = b.WithOptions(opts).Complete(&removalReconciler{
		world: w, told: map[types.UID]string{},
		planner: &preview.Planner{Reader: w.client, Cluster: cluster, Source: w.content, Namespace: w.namespace},
	})
	if err != nil {
		return fmt.Errorf("controller of orphans: %w", err)
	}
	return nil
}
