package tocore

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/migration"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// family is a package with all of its revisions.
type family struct{ migration.Package }

// includes reports whether a reference names the package or a revision of it. A deleted revision is named with the
// label of its pods only, so that its references stay.
func (f family) includes(r metav1.OwnerReference) bool {
	owner := plan.Owner{APIVersion: v1.GroupVersion.String(), Kind: f.PackageKind(), Name: f.GetName()}
	if owner.Is(r) {
		return true
	}
	owner.Kind = v1.RevisionKind(f.PackageKind())
	return slices.ContainsFunc(f.Revisions, func(rev v1.PackageRevision) bool {
		owner.Name = rev.GetName()
		return owner.Is(r)
	})
}

// ofPackage returns the owner reference that core adds for the package of a revision.
func (f family) ofPackage() metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: v1.GroupVersion.String(), Kind: f.PackageKind(), Name: f.GetName(), UID: f.GetUID(),
		Controller: new(bool), BlockOwnerDeletion: new(true),
	}
}

// ofRevision returns the owner reference that core adds for a revision.
func (f family) ofRevision(rev v1.PackageRevision, controls bool) metav1.OwnerReference {
	owner := plan.Owner{
		APIVersion: v1.GroupVersion.String(), Kind: v1.RevisionKind(f.PackageKind()), Name: rev.GetName(), UID: rev.GetUID(),
	}
	return owner.Reference(controls)
}

// others returns the owners that are not of the family.
func (f family) others(owners []metav1.OwnerReference) []metav1.OwnerReference {
	return slices.DeleteFunc(slices.Clone(owners), f.includes)
}

// ownersOfObject returns the owners that an object of the package has in core: the active revision as the controller if
// it contains the object, the package, and all other revisions that contain it. An object that another package controls
// keeps that controller.
func (f family) ownersOfObject(ref plan.Ref, current []metav1.OwnerReference) []metav1.OwnerReference {
	out := f.others(current)
	controlled := slices.ContainsFunc(out, func(r metav1.OwnerReference) bool { return flag(r.Controller) })
	for _, rev := range f.Revisions {
		if slices.Contains(revision.Objects(rev), ref) {
			out = append(out, f.ofRevision(rev, revision.IsActive(rev) && !controlled))
		}
	}
	return append(out, f.ofPackage())
}

// ownersOfRuntime returns the owners that an object of the runtime has in core: the active revision. An object that
// belongs to an inactive revision only, such as its ServiceAccount, keeps that owner.
func (f family) ownersOfRuntime(current []metav1.OwnerReference) []metav1.OwnerReference {
	active := f.Active()
	if active == nil {
		return current
	}
	shared := slices.ContainsFunc(current, func(r metav1.OwnerReference) bool {
		return r.Kind == f.PackageKind() && f.includes(r) || r.UID == active.GetUID()
	})
	if !shared {
		return current
	}
	out := f.others(current)
	controlled := slices.ContainsFunc(out, func(r metav1.OwnerReference) bool { return flag(r.Controller) })
	return append(out, f.ofRevision(active, !controlled))
}
