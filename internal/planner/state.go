package planner

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// State is how the first changes of an operation change a cluster. The zero value changes nothing.
type State struct {
	// Packages are the packages that were created or updated, and Removed those that were deleted.
	Packages, Removed []v1.Package
	// Released are the owners that are left of the objects which packages have released.
	Released map[plan.Ref][]metav1.OwnerReference
}

// packages returns all packages of a kind, of which some were read, in the state.
func (s State) packages(kind string, read []v1.Package) []v1.Package {
	among := func(all []v1.Package, p v1.Package) int {
		return slices.IndexFunc(all, func(x v1.Package) bool { return x.PackageKind() == kind && x.GetName() == p.GetName() })
	}
	out := slices.DeleteFunc(read, func(p v1.Package) bool { return among(s.Removed, p) >= 0 })
	for _, p := range s.Packages {
		if p.PackageKind() != kind {
			continue
		}
		if i := among(out, p); i >= 0 {
			out[i] = p
		} else {
			out = append(out, p)
		}
	}
	return out
}

// releasedCluster is a cluster in which some objects have other owners.
type releasedCluster struct {
	Cluster
	released map[plan.Ref][]metav1.OwnerReference
}

// Metadata implements [Cluster].
func (r releasedCluster) Metadata(ctx context.Context, refs []plan.Ref) (map[plan.Ref]plan.Live, error) {
	live, err := r.Cluster.Metadata(ctx, refs)
	for ref, owners := range r.released {
		if l, ok := live[ref]; ok {
			l.Owners = owners
			live[ref] = l
		}
	}
	return live, err
}
