package inventory

import (
	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/revision"
)

// UnhealthyDependency returns a package that p requires, directly or indirectly, and that is not healthy, or
// nil if there is none. It ignores optional dependencies. A package that was rolled back is healthy with its
// former version.
func (i *Inventory) UnhealthyDependency(p v1.Package) v1.Package {
	seen := map[string]bool{ShortName(p): true}
	queue := i.required(p)
	for len(queue) > 0 {
		d := queue[0]
		queue = queue[1:]
		if seen[ShortName(d)] {
			continue
		}
		seen[ShortName(d)] = true
		if d.GetCondition(v1.TypeHealthy).Status != corev1.ConditionTrue && revision.PolicyOf(d).Back == "" {
			return d
		}
		queue = append(queue, i.required(d)...)
	}
	return nil
}

// required returns the installed packages that a package requires directly.
func (i *Inventory) required(p v1.Package) []v1.Package {
	running := p.PackageStatus().CurrentRevision
	if back := revision.PolicyOf(p).Back; back != "" {
		running = back
	}
	var out []v1.Package
	for _, d := range i.Entry(running).Dependencies {
		if by := i.FromRepository(d.Package); by != nil {
			out = append(out, by)
		}
	}
	return out
}
