package inventory

import (
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// Locked returns the package that is installed from the repository of a locked package, or with the same
// content.
func (i *Inventory) Locked(p lockfile.Package) v1.Package {
	var same v1.Package
	for _, x := range i.Packages {
		if x.PackageKind() != string(p.Kind) {
			continue
		}
		if ref, err := oci.ParseReference(x.PackageSpec().Package, oci.ParseOptions{}); err == nil && i.place(ref.Name()) == i.place(p.Repository) {
			return x
		}
		if x.PackageStatus().ResolvedDigest == p.Digest.String() {
			same = x
		}
	}
	return same
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
