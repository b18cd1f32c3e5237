package graph

import (
	"cmp"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// DependenciesFromLock returns the dependencies in an entry of the Lock.
func DependenciesFromLock(entry v1beta1.LockPackage) []dependency.Dependency {
	var out []dependency.Dependency
	for _, d := range entry.Dependencies {
		out = append(out, dependency.Dependency{Package: d.Package, Constraint: d.Constraints})
	}
	for _, d := range entry.OptionalDependencies {
		out = append(out, dependency.Dependency{Package: d.Package, Constraint: d.Constraints, Optional: true})
	}
	return out
}

// LockDependencies returns dependencies in the form of the Lock.
func LockDependencies(all []dependency.Dependency) []v1beta1.Dependency {
	var out []v1beta1.Dependency
	for _, d := range all {
		entry := v1beta1.Dependency{Package: oci.RepositoryName(d.Package), Constraints: d.Constraint}
		if d.Kind != "" {
			entry.APIVersion, entry.Kind = new(cmp.Or(d.APIVersion, v1.GroupVersion.String())), new(d.Kind)
		}
		out = append(out, entry)
	}
	return out
}
