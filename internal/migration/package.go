package migration

import (
	"cmp"
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/state"
)

// Package is a package with all of its revisions.
type Package struct {
	v1.Package
	Revisions []v1.PackageRevision
}

// ListPackages returns the packages of a cluster, ordered by kind and name. A cluster without the package API has none.
func ListPackages(ctx context.Context, reader client.Reader) ([]Package, error) {
	var out []Package
	for _, kind := range v1.PackageKinds() {
		packages, revisions, err := state.ListPackages(ctx, reader, kind)
		if err != nil {
			return nil, err
		}
		slices.SortFunc(packages, func(a, b v1.Package) int { return cmp.Compare(a.GetName(), b.GetName()) })
		for _, p := range packages {
			out = append(out, Package{p, revisions[p.GetName()]})
		}
	}
	return out, nil
}

// Active returns the active revision, or nil.
func (p Package) Active() v1.PackageRevision {
	if i := slices.IndexFunc(p.Revisions, revision.IsActive); i >= 0 {
		return p.Revisions[i]
	}
	return nil
}

// Revision returns the revision with a name, or nil.
func (p Package) Revision(name string) v1.PackageRevision {
	if i := slices.IndexFunc(p.Revisions, func(rev v1.PackageRevision) bool { return rev.GetName() == name }); i >= 0 {
		return p.Revisions[i]
	}
	return nil
}

// Name returns the kind and the name of a package, as commands accept them.
func (p Package) Name() string { return revision.ObjectName(p.Package) }
