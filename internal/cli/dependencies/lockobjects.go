package dependencies

import (
	"crypto/sha256"
	"encoding/hex"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/bootstrap"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// LockNames returns the names of the objects for a dependency tree, by repository: the names that Crossplane chooses for
// dependencies. If two packages of a kind would have the same name, for example from two registries, the second one gets
// a unique name.
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

// lockObjects returns the objects that install a dependency tree, dependencies first.
func lockObjects(f lockfile.File) ([]map[string]any, error) {
	names := LockNames(f)
	var out []map[string]any
	for _, p := range f.InstallOrder() {
		object := v1.NewPackage(string(p.Kind))
		object.SetName(names[p.Repository])
		object.PackageSpec().Package = p.Reference().String()
		plain, err := bootstrap.Plain(object)
		if err != nil {
			return nil, err
		}
		out = append(out, plain)
	}
	return out, nil
}
