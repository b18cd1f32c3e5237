package cli

import (
	"strings"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/graph"
)

// installReason is why a package is in a cluster.
type installReason string

// The reasons: a person has installed it, or the package manager has because others
// need it.
const (
	explicit   installReason = "explicit"
	dependency installReason = "dependency"
)

func reasonOf(p v1.Package) installReason {
	if graph.IsAutoInstalled(p) {
		return dependency
	}
	return explicit
}

// forWhom names those for whom a package was installed, as people call them.
func forWhom(repositories []string) string {
	if len(repositories) == 0 {
		return "others"
	}
	names := make([]string, len(repositories))
	for i, r := range repositories {
		names[i] = lastPart(r)
	}
	return strings.Join(names, ", ")
}
