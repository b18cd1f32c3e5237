package packages

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/controller/requeue"
	"github.com/xpkg-dev/xpkg/internal/revision"
)

// applyTransition writes the steps of a transition. Revisions beyond the history limit are deleted
// once the active one is ready.
func (r *Reconciler) applyTransition(ctx context.Context, p v1.Package, t revision.Transition) error {
	versions := map[string]string{}
	for _, s := range t.Steps {
		rev := s.Revision
		if version := versions[rev.GetName()]; version != "" {
			rev.SetResourceVersion(version)
		}
		switch s.Action {
		case revision.Collect:
			if !mayCollect(t) {
				continue
			}
			if err := r.collect(ctx, revision.Set{Revision: rev, Package: p, Siblings: t.After}); err != nil {
				return fmt.Errorf("delete the old revision %s: %w", rev.GetName(), err)
			}
		case revision.Create:
			if err := r.createRevision(ctx, p, rev); err != nil {
				return err
			}
		default:
			if err := r.API.Client.Update(ctx, rev); err != nil {
				return fmt.Errorf("%s revision %s: %w", s.Action, rev.GetName(), apply.ClassifyGenerated(err))
			}
		}
		versions[rev.GetName()] = rev.GetResourceVersion()
	}
	return nil
}

// collect deletes an old revision. No other revision lists the objects that later versions do not
// contain, so collect releases them first, in case the revision was not reconciled since it became
// inactive.
func (r *Reconciler) collect(ctx context.Context, old revision.Set) error {
	if _, _, err := r.API.Release(ctx, old, revision.Objects(old.Revision)); err != nil {
		return err
	}
	return r.API.Delete(ctx, old.Revision)
}

// createRevision creates a revision. It fails with requeue.ErrStale if the revision exists and the
// cache does not show it yet.
func (r *Reconciler) createRevision(ctx context.Context, p v1.Package, rev v1.PackageRevision) error {
	r.API.Revisions.Created(p)
	err := r.API.Client.Create(ctx, rev)
	r.API.Revisions.Created(p)
	if apierrors.IsAlreadyExists(err) && r.missedRevision(ctx, p, rev.GetName()) {
		return requeue.ErrStale
	}
	if err != nil {
		return fmt.Errorf("create revision %s: %w", rev.GetName(), apply.ClassifyGenerated(err))
	}
	return nil
}

// missedRevision reports whether an existing revision is missing from the cache, or belongs to the
// package, so that the reconciliation missed it.
func (r *Reconciler) missedRevision(ctx context.Context, p v1.Package, name string) bool {
	rev := p.NewRevision()
	err := r.API.Client.Get(ctx, types.NamespacedName{Name: name}, rev)
	return apierrors.IsNotFound(err) || err == nil && rev.GetLabels()[v1.LabelPackage] == p.GetName()
}

// mayCollect reports whether old revisions can be deleted. Until the active revision is ready, the runtime of one of
// them may still run, and the package may be rolled back to it.
func mayCollect(t revision.Transition) bool {
	active := t.Active()
	return t.Activate == "" || active != nil && revision.IsActive(active) && revision.Summarize(active).Ready
}
