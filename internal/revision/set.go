package revision

import (
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// Set is a revision with its package and all revisions of the package.
type Set struct {
	Revision v1.PackageRevision
	Package  v1.Package
	Siblings []v1.PackageRevision
}

// Requester returns the owner that the objects of the revision get.
func (s Set) Requester() plan.Requester { return Requester(s.Package, s.Revision, s.Siblings) }

// All returns the revisions of the package, including the revision of the set.
func (s Set) All() []v1.PackageRevision {
	for _, rev := range s.Siblings {
		if rev.GetName() == s.Revision.GetName() {
			return s.Siblings
		}
	}
	return append([]v1.PackageRevision{s.Revision}, s.Siblings...)
}

// AnyActive reports whether any of the revisions is active.
func AnyActive(revisions []v1.PackageRevision) bool {
	for _, rev := range revisions {
		if IsActive(rev) {
			return true
		}
	}
	return false
}

// ObjectName returns the name of a package as users and commands write it; see [v1.ObjectName].
func ObjectName(p v1.Package) string { return v1.ObjectName(p.PackageKind(), p.GetName()) }
