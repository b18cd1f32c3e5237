package inventory

import (
	"path"
	"strings"

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

// ShortNames returns the short names of the dependents for which a package was installed.
func ShortNames(repositories []string) string {
	if len(repositories) == 0 {
		return "others"
	}
	names := make([]string, len(repositories))
	for i, r := range repositories {
		names[i] = path.Base(r)
	}
	return strings.Join(names, ", ")
}
