package dependencies

import (
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/bootstrap"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
)

// lockObjects returns the objects that install a dependency tree, dependencies first.
func lockObjects(f lockfile.File) ([]map[string]any, error) {
	names := inventory.LockNames(f)
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
