package inventory

import (
	"path"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/graph"
)

// InstallReason is the reason why a package is installed.
type InstallReason string

// Install reasons: a user installed the package explicitly, or the package manager
// installed it as a dependency.
const (
	Explicit   InstallReason = "explicit"
	Dependency InstallReason = "dependency"
)

// ReasonOf returns the reason why a package is installed.
func ReasonOf(p v1.Package) InstallReason {
	if graph.IsAutoInstalled(p) {
		return Dependency
	}
	return Explicit
}

// DependentNames returns the names of the dependents for which a package was installed, in the cluster if they are
// installed.
func (i *Inventory) DependentNames(repositories []string) []string {
	if len(repositories) == 0 {
		return []string{"others"}
	}
	names := make([]string, len(repositories))
	for at, r := range repositories {
		names[at] = path.Base(r)
		if p := i.FromRepository(r); p != nil {
			names[at] = p.GetName()
		}
	}
	return names
}
