package lockfile

import (
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// Dependencies are the dependencies that the metadata of a package names, by repositories.
func Dependencies(all []xpkg.Dependency) []Dependency {
	var out []Dependency
	for _, d := range all {
		out = append(out, Dependency{Package: Repository(d.Package), Constraint: d.Constraint, Optional: d.Optional})
	}
	return out
}

// Repository is the canonical form of a dependency's package, without tag and
// digest.
func Repository(s string) string {
	ref, err := oci.ParseReference(s, oci.ParseOptions{AllowUntagged: true})
	if err != nil {
		return s
	}
	return ref.Name()
}
