package controller

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller/requeue"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// A Provider that is deleted takes its definitions with it, and those their custom
// resources. Its program has a part in that: it removes its finalizers, after what the
// resources stand for is gone, and converts those that are stored in an older version.
// So the package stays until its definitions are gone, and its program runs until then
// (crossplane/crossplane#4251).

// hasFarewell reports whether a package that is deleted stays until its definitions are
// gone: where there is a program that is run here.
func (w *world) hasFarewell(p v1.Package) bool {
	return p.PackageKind() == v1.ProviderKind && w.programs.of(v1.ProviderKind, p.GetName()) != nil
}

// leavingPackage reports whether a package was deleted and waits for its definitions.
func leavingPackage(p v1.Package) bool {
	return p.GetDeletionTimestamp() != nil && controllerutil.ContainsFinalizer(p, v1.FinalizerRuntimeProtection)
}

// keepProgram makes sure that the finalizer is there, or is not, before anything is
// written of a package.
func (r *packageReconciler) keepProgram(ctx context.Context, p v1.Package) error {
	wants := r.hasFarewell(p)
	if controllerutil.ContainsFinalizer(p, v1.FinalizerRuntimeProtection) == wants {
		return nil
	}
	changed := p.DeepCopyObject().(v1.Package)
	if wants {
		controllerutil.AddFinalizer(changed, v1.FinalizerRuntimeProtection)
	} else {
		controllerutil.RemoveFinalizer(changed, v1.FinalizerRuntimeProtection)
	}
	return r.refinalize(ctx, p, changed)
}

// refinalize writes the finalizers of a package, and nothing else of it.
func (r *packageReconciler) refinalize(ctx context.Context, p, changed v1.Package) error {
	if err := r.client.Update(ctx, changed); err != nil {
		return fmt.Errorf("write the finalizers of %s: %w", p.GetName(), err)
	}
	p.SetFinalizers(changed.GetFinalizers())
	p.SetResourceVersion(changed.GetResourceVersion())
	r.writes.Wrote(p)
	return nil
}

// farewell deletes the definitions of a package that was deleted, and lets it go when
// they are gone.
func (r *packageReconciler) farewell(ctx context.Context, p v1.Package) (ctrl.Result, verdict, error) {
	revisions, err := r.revisions(ctx, p)
	if err != nil {
		return ctrl.Result{}, verdict{}, err
	}
	if err := r.deleteWebhooks(ctx, family{p.NewRevision(), p, revisions}, nil); err != nil {
		return ctrl.Result{}, verdict{}, err
	}
	left, err := r.deleteDefinitions(ctx, p, revisions)
	if err != nil {
		return ctrl.Result{}, verdict{}, err
	}
	if len(left) > 0 {
		names := wording.Few(left, namedDefinitions, ", ")
		message := fmt.Sprintf("The package is being deleted. Its program runs until its definitions, and with them all custom resources, are gone: %s.", names)
		return ctrl.Result{RequeueAfter: r.farewellPause(p)}, verdict{reason: v1.ReasonProgressing, message: message}, nil
	}
	changed := p.DeepCopyObject().(v1.Package)
	controllerutil.RemoveFinalizer(changed, v1.FinalizerRuntimeProtection)
	return ctrl.Result{}, verdict{reason: v1.ReasonProgressing, message: "The package is being deleted."}, client.IgnoreNotFound(r.refinalize(ctx, p, changed))
}

// namedDefinitions is how many definitions a message names.
const namedDefinitions = 3

// farewellPause is how long one waits before looking again: the longer the longer it
// takes.
func (r *packageReconciler) farewellPause(p v1.Package) time.Duration {
	const shortest, longest = 250 * time.Millisecond, 10 * time.Second
	return min(longest, max(shortest, r.now().Sub(p.GetDeletionTimestamp().Time)/4))
}

// deleteDefinitions deletes the definitions that only a package owns, and names those
// that are still there. What others own, too, stays. There are none to wait for when
// no revision is active: no program runs then.
func (r *packageReconciler) deleteDefinitions(ctx context.Context, p v1.Package, revisions []v1.PackageRevision) (left []string, err error) {
	if !r.hasFarewell(p) || !slices.ContainsFunc(revisions, active) {
		return nil, nil
	}
	live, err := r.cluster.Metadata(ctx, definitionsOf(revisions))
	if err != nil {
		return nil, err
	}
	for _, c := range plan.Uninstall(live, revision.Requester(p, p.NewRevision(), revisions)).Changes {
		if c.Action != plan.Delete {
			continue
		}
		left = append(left, c.Ref.Name)
		if live[c.Ref].Deleting {
			continue
		}
		o := metadataOf(c.Ref.GroupVersionKind())
		o.SetName(c.Ref.Name)
		err := r.client.Delete(ctx, o, client.Preconditions{UID: &c.UID, ResourceVersion: &c.ResourceVersion})
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("delete %s %s: %w", c.Ref.Kind, c.Ref.Name, err)
		}
	}
	return left, nil
}

// definitionsOf are the definitions that revisions have established, each once.
func definitionsOf(revisions []v1.PackageRevision) []plan.Ref {
	var refs []plan.Ref
	for _, rev := range revisions {
		for _, ref := range revision.Objects(rev) {
			if ref.Kind == plan.DefinitionKind {
				refs = append(refs, ref)
			}
		}
	}
	slices.SortFunc(refs, plan.Ref.Compare)
	return slices.Compact(refs)
}

// accompany has the program of a revision run while its package waits for its
// definitions to go, and writes nothing else. A manager that was started anew, or a
// program that was ended, is no reason to leave custom resources behind.
func (r *revisionReconciler) accompany(ctx context.Context, log *slog.Logger, f family) (ctrl.Result, verdict, error) {
	pkg, source, err := r.obtain(ctx, f.rev)
	if err != nil {
		return r.without(ctx, f, err)
	}
	objects, err := desired.Of(pkg, revision.Additions(f.rev, r.namespace))
	if err != nil {
		return ctrl.Result{}, verdict{}, err
	}
	job, err := r.prepare(ctx, f, pkg.Meta, objects, source)
	if err != nil {
		return ctrl.Result{}, verdict{}, err
	}
	trust, err := r.certify(ctx, f, job)
	if err != nil {
		return ctrl.Result{}, verdict{}, err
	}
	result, v, err := r.operate(ctx, log, f, job)
	return requeue.By(result, trust.due, r.now()), v, err
}
