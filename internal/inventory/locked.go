package inventory

import (
	"crypto/sha256"
	"encoding/hex"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/oci"
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

// InstalledFrom returns the package of the same kind that is installed from the repository of a package, under any
// name. It prefers the package with the same name, and returns nil if there is none.
func (i *Inventory) InstalledFrom(p v1.Package) v1.Package {
	return i.installedFrom(p.PackageKind(), RepositoryOf(p), p.GetName())
}

// installedFrom returns the package of a kind that is installed from a repository, or from a location to which
// ImageConfigs rewrite it. Of several packages, it returns the one with the name, or the first.
func (i *Inventory) installedFrom(kind, repository, name string) (found v1.Package) {
	for _, x := range i.Packages {
		if x.PackageKind() == kind && i.IsFrom(x, repository) && (found == nil || x.GetName() == name) {
			found = x
		}
	}
	return found
}

// IsFrom reports whether a package is read from the same location as a repository.
func (i *Inventory) IsFrom(p v1.Package, repository string) bool {
	return i.location(RepositoryOf(p)) == i.location(repository)
}

// location returns the location from which a repository is read.
func (i *Inventory) location(repository string) string {
	at, known := i.locations[repository]
	if known {
		return at
	}
	if i.rewrites == nil {
		at = oci.RepositoryLocation(repository)
	} else {
		at = i.rewrites(repository)
	}
	if i.locations == nil {
		i.locations = map[string]string{}
	}
	i.locations[repository] = at
	return at
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

// LockNames returns the names of the objects for a dependency tree, by repository: the names that Crossplane chooses
// for dependencies. If two packages of a kind would have the same name, for example from two registries, the second one
// gets a unique name.
func LockNames(f lockfile.File) map[string]string {
	out, taken := map[string]string{}, map[string]bool{}
	for _, p := range f.Packages {
		name := oci.ToDNSLabel(p.RepositoryReference().Repository)
		if taken[string(p.Kind)+name] {
			sum := sha256.Sum256([]byte(p.Repository))
			name = oci.FriendlyID(name, hex.EncodeToString(sum[:]))
		}
		out[p.Repository], taken[string(p.Kind)+name] = name, true
	}
	return out
}
