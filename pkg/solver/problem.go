package solver

import "github.com/xpkg-dev/xpkg/pkg/dependency"

// Source provides versions and their dependencies. While a problem is being solved, it
// must return the same results for the same arguments.
type Source interface {
	// Versions lists the tags of a package in any order. A tag can include its digest
	// ("v1.2.3@sha256:…"). An error of class NotFound reports that the repository does
	// not exist; any other error ends the search.
	Versions(pkg string) ([]string, error)
	// Dependencies returns the dependencies of one version, which is a tag, a digest, or both. The slice must not be
	// changed afterwards. An error of class NotFound reports that the version is not available; any other error ends the
	// search.
	Dependencies(pkg, version string) ([]dependency.Dependency, error)
}

// A VirtualSource is a Source with virtual packages. A version of a virtual package stands for a package that can be
// selected in its place, which is the dependency of that version. Explanations name it, and suggestions do not change
// it.
type VirtualSource interface {
	Source
	// VersionName returns the name of a version of a virtual package for explanations, and false for other packages.
	VersionName(pkg, version string) (name string, virtual bool)
}

// Moves restricts how the versions of installed packages change. It does not apply to
// packages that a root names.
type Moves int

const (
	// Freely allows upgrades and downgrades.
	Freely Moves = iota
	// Upward allows upgrades only (upgrade policy "Upgrade").
	Upward
	// Never allows no changes (upgrade policy "None").
	Never
)

// Problem is the input of Solve. The order of its parts does not affect the solution.
type Problem struct {
	Roots []dependency.Root
	// Installed maps packages to their installed versions: a tag, a digest, or both. The
	// solver keeps an installed version if it satisfies every constraint. Packages that no
	// root reaches are not part of the solution.
	Installed map[string]string
	Source    Source
	// Moves restricts changes of installed packages.
	Moves Moves
	// Nearest selects, for an installed package that must change, the lowest suitable
	// version above the installed one, or else the highest below it. The default is the
	// highest suitable version.
	Nearest bool
	// Budget limits the work, counted in 64-bit words that the search reads. Zero means
	// DefaultBudget. The work for a problem is deterministic.
	Budget int
	// SkipExplanation omits the explanation of a conflict, which can take longer than
	// the search. Use it for an attempt that is followed by another one.
	SkipExplanation bool

	// preferred makes the search decide a package first, with its candidates in a given
	// order.
	preferred *preference
	// movable lists packages that Moves does not restrict, in addition to the roots.
	movable []string
}

// preference is the order in which the candidates of a package are tried. Other candidates
// are excluded. Because the package is decided first, the solution contains its first
// candidate that any solution contains.
type preference struct {
	pkg   string
	order func(v *variable) []int
}

// DefaultBudget ends a search after a fraction of a second. Real problems need less
// than a thousandth of it.
const DefaultBudget = 40_000_000
