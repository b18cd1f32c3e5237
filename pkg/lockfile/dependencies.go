package lockfile

import (
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// Dependencies returns the dependencies in the metadata of a package in the form of a lock file: with
// normalized repository names and without hints.
func Dependencies(all []dependency.Dependency) []dependency.Dependency {
	var out []dependency.Dependency
	for _, d := range all {
		out = append(out, d.On(oci.RepositoryName(d.Package)))
	}
	return out
}
