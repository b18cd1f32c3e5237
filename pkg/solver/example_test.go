package solver_test

import (
	"errors"
	"fmt"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/solver"
)

// shelf is a Source in memory: package, version, dependencies.
type shelf map[string]map[string][]dependency.Dependency

func (s shelf) Versions(pkg string) ([]string, error) {
	var tags []string
	for tag := range s[pkg] {
		tags = append(tags, tag)
	}
	return tags, nil
}

func (s shelf) Dependencies(pkg, version string) ([]dependency.Dependency, error) {
	return s[pkg][version], nil
}

var source = shelf{
	"platform": {"v1.0.0": {{Package: "network", Constraint: ">=v1.0.0"}}},
	"network":  {"v1.0.0": nil, "v1.1.0": nil, "v2.0.0": nil},
}

func ExampleSolve() {
	solution, err := solver.Solve(solver.Problem{
		Roots:  []dependency.Root{{Package: "platform"}, {Package: "network", Constraint: "<v2"}},
		Source: source,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range solution.Picks {
		fmt.Println(p.Package, p.Version())
	}
	// Output:
	// network v1.1.0
	// platform v1.0.0
}

func ExampleConflict() {
	_, err := solver.Solve(solver.Problem{
		Roots:  []dependency.Root{{Package: "platform"}, {Package: "network", Constraint: "<v1.0.0"}},
		Source: source,
	})
	var conflict *solver.Conflict
	if errors.As(err, &conflict) {
		fmt.Print(conflict.Explanation)
	}
	// Output:
	// network <v1.0.0 cannot be installed at all:
	//   you request network <v1.0.0, which does not exist (versions: v1.0.0 to v2.0.0)
	//
	// Any of these changes resolves the conflict:
	// - request network v1.0.0 instead of <v1.0.0
	// - request network v1.1.0 instead of <v1.0.0
	// - remove network <v1.0.0
}
