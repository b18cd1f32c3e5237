package inventory

import (
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
)

// Locked returns the package that is installed from the repository of a locked package, or with the same
// content.
func (i *Inventory) Locked(p lockfile.Package) v1.Package {
	if x := i.installedFrom(string(p.Kind), p.Repository, ""); x != nil {
		return x
	}
	var same v1.Package
	for _, x := range i.Packages {
		if x.PackageKind() == string(p.Kind) && x.PackageStatus().ResolvedDigest == p.Digest.String() {
			same = x
		}
	}
	return same
}

// InstalledFrom returns the package of the same kind that is installed from the repository of a package, under any name. It prefers
// the package with the same name, and returns nil if there is none.
func (i *Inventory) InstalledFrom(p v1.Package) v1.Package {
	return i.installedFrom(p.PackageKind(), RepositoryOf(p), p.GetName())
}

// installedFrom returns the package of a kind that is installed from a repository, or from a location to which ImageConfigs rewrite it. Of
// several packages, it returns the one with the name, or the first.
func (i *Inventory) installedFrom(kind, repository, name string) (found v1.Package) {
	for _, x := range i.Packages {
		if x.PackageKind() == kind && i.place(RepositoryOf(x)) == i.place(repository) && (found == nil || x.GetName() == name) {
			found = x
		}
	}
	return found
}

// Named returns the package of the same kind and name.
func (i *Inventory) Named(p v1.Package) v1.Package {
	for _, x := range i.Packages {
		if x.PackageKind() == p.PackageKind() && x.GetName() == p.GetName() {
			return x
		}
	}
	return nil
}
