package manager

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/oci"
	"github.com/xpkg-dev/xpkg/internal/revision"
)

// carryOut makes the revisions what was decided. The old one is deactivated
// before the new one is made active, so that two are never active at once; those
// that are collected go when the active one has its objects.
func (r *packageReconciler) carryOut(ctx context.Context, p v1.Package, meta format.Meta, digest oci.Digest, name string, revisions []v1.PackageRevision, d revision.Decision) error {
	byName := map[string]v1.PackageRevision{}
	for _, rev := range revisions {
		byName[rev.GetName()] = rev
	}
	if err := r.own(ctx, p, name, revisions, d); err != nil {
		return err
	}
	for _, n := range d.Deactivate {
		rev := byName[n]
		rev.RevisionSpec().DesiredState = v1.RevisionInactive
		if err := r.client.Update(ctx, rev); err != nil {
			return fmt.Errorf("deactivate %s: %w", n, err)
		}
	}
	current := revision.Current(p, meta, digest.String(), name, byName[name], d)
	if err := r.ensure(ctx, p, byName[name], current); err != nil {
		return err
	}
	byName[name] = current
	if d.Activate != "" && d.Activate != name {
		if err := r.activate(ctx, byName[d.Activate], d.Number); err != nil {
			return err
		}
	}
	if !handedOverTo(byName[d.Activate], d) {
		return nil
	}
	for _, n := range d.Collect {
		if err := r.client.Delete(ctx, byName[n], gone(byName[n])); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("collect old revision %s: %w", n, err)
		}
	}
	return nil
}

// own takes over the revisions that stay, but for the current one, which is written
// as a whole. Others keep the owner that they were made with, unless they come from a
// backup.
func (r *packageReconciler) own(ctx context.Context, p v1.Package, current string, revisions []v1.PackageRevision, d revision.Decision) error {
	for _, rev := range revisions {
		if rev.GetName() == current || slices.Contains(d.Collect, rev.GetName()) || !revision.Own(p, rev) {
			continue
		}
		if err := r.client.Update(ctx, rev); err != nil {
			return fmt.Errorf("own %s: %w", rev.GetName(), err)
		}
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

// activate makes a revision other than the current one active, as after a
// rollback, or gives one that a person activated its place in the order.
func (r *packageReconciler) activate(ctx context.Context, rev v1.PackageRevision, number int64) error {
	spec := rev.RevisionSpec()
	if active(rev) && spec.Revision == number {
		return nil
	}
	spec.DesiredState, spec.Revision = v1.RevisionActive, number
	if err := r.client.Update(ctx, rev); err != nil {
		return fmt.Errorf("activate %s: %w", rev.GetName(), err)
	}
	return nil
}

// ensure creates the current revision, or brings the one that exists up to it.
func (r *packageReconciler) ensure(ctx context.Context, p v1.Package, existing, current v1.PackageRevision) error {
	name := current.GetName()
	switch {
	case existing == nil:
		err := r.client.Create(ctx, current)
		if apierrors.IsAlreadyExists(err) && r.unseen(ctx, p, name) {
			return errStale
		}
		if err != nil {
			return fmt.Errorf("create revision %s: %w", name, err)
		}
	case !equality.Semantic.DeepEqual(existing, current):
		if err := r.client.Update(ctx, current); err != nil {
			return fmt.Errorf("update revision %s: %w", name, err)
		}
	}
	return nil
}

// unseen reports whether a revision that exists is one of the package, which was
// missed because the cache is behind.
func (r *packageReconciler) unseen(ctx context.Context, p v1.Package, name string) bool {
	rev := p.NewRevision()
	err := r.client.Get(ctx, types.NamespacedName{Name: name}, rev)
	return apierrors.IsNotFound(err) || err == nil && rev.GetLabels()[v1.LabelPackage] == p.GetName()
}
