package controller

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller/requeue"
	"github.com/xpkg-dev/xpkg/internal/revision"
)

// applyTransition writes the steps of a transition. Revisions beyond the history limit are deleted
// once the active one controls its objects.
func (r *packageReconciler) applyTransition(ctx context.Context, p v1.Package, t revision.Transition) error {
	versions := map[string]string{}
	for _, s := range t.Steps {
		rev := s.Revision
		if version := versions[rev.GetName()]; version != "" {
			rev.SetResourceVersion(version)
		}
		switch s.Action {
		case revision.Collect:
			if !handedOverTo(t.Active(), t.Decision) {
				continue
			}
			if err := r.client.Delete(ctx, rev, gone(rev)); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("delete the old revision %s: %w", rev.GetName(), err)
			}
		case revision.Create:
			if err := r.createRevision(ctx, p, rev); err != nil {
				return err
			}
		default:
			if err := r.client.Update(ctx, rev); err != nil {
				return fmt.Errorf("%s revision %s: %w", s.Action, rev.GetName(), err)
			}
		}
		versions[rev.GetName()] = rev.GetResourceVersion()
	}
	return nil
}

// createRevision creates a revision. It fails with requeue.ErrStale if the cache has not seen yet that the
// revision exists.
func (r *packageReconciler) createRevision(ctx context.Context, p v1.Package, rev v1.PackageRevision) error {
	err := r.client.Create(ctx, rev)
	if apierrors.IsAlreadyExists(err) && r.unseen(ctx, p, rev.GetName()) {
		return requeue.ErrStale
	}
	if err != nil {
		return fmt.Errorf("create revision %s: %w", rev.GetName(), err)
	}
	return nil
}

// handedOverTo reports whether old revisions can be collected. While the active one
// still takes over its objects they stay: the garbage collector would remove them
// from the owners of the same objects at the same time. Until it is ready, one of them
// may be what still runs, and what is brought back.
func handedOverTo(rev v1.PackageRevision, d revision.Decision) bool {
	return d.Activate == "" || rev != nil && active(rev) && verdictOn(rev).ready
}

// gone makes sure that an object is deleted as it was when that was decided: a
// revision that somebody has activated meanwhile stays, and a package that somebody has
// made theirs.
func gone(o client.Object) client.Preconditions {
	return client.Preconditions{UID: new(o.GetUID()), ResourceVersion: new(o.GetResourceVersion())}
}

// unseen reports whether a revision that exists is one of the package, which was
// missed because the cache is behind.
func (r *packageReconciler) unseen(ctx context.Context, p v1.Package, name string) bool {
	rev := p.NewRevision()
	err := r.client.Get(ctx, types.NamespacedName{Name: name}, rev)
	return apierrors.IsNotFound(err) || err == nil && rev.GetLabels()[v1.LabelPackage] == p.GetName()
}
