package solve

// A Dependency is what one version of a package needs of another package.
type Dependency struct {
	// Package is the identity of the package that is needed. It is compared as
	// it is: mirrors and aliases are settled by the caller.
	Package string
	// Constraint says which versions will do: a constraint in the language of
	// Masterminds/semver, a digest ("sha256:…"), or a tag with its digest
	// ("v1.2.3@sha256:…"). Anything else is a tag to be taken as it is. An empty
	// one accepts every release, and what is installed.
	Constraint string
	// Optional says that the package need not be there. Where somebody else needs it, its
	// version has to satisfy the constraint.
	Optional bool
}

// A Source says what there is. It answers the same for the same question as long
// as one problem is solved.
type Source interface {
	// Versions lists the tags of a package in any order. A tag whose digest is
	// known may carry it ("v1.2.3@sha256:…"). An error of the class NotFound
	// means that the package's repository does not exist; any other ends the
	// search.
	Versions(pkg string) ([]string, error)
	// Dependencies are those of one version, named by its tag, its digest, or
	// both. An error of the class NotFound means that this version can no longer
	// be had; any other ends the search.
	Dependencies(pkg, version string) ([]Dependency, error)
}

// A Root is a package that somebody asks for.
type Root struct {
	// Package and Constraint are as in Dependency.
	Package, Constraint string
	// Name says who asks, for explanations. Without it, it is "you".
	Name string
	// Exact takes Constraint for a tag, even where it reads as a constraint:
	// "v1" is then the tag v1, and not every version 1.
	Exact bool
	// Optional makes it no wish but a condition, as in Dependency: somebody who is not
	// part of the problem works with these versions only.
	Optional bool
}

// Moves says how the version of a package that is installed may change. It binds
// packages that no root names; a root says itself what it accepts.
type Moves int

// How installed packages may change.
const (
	// Freely lets them go up and down, as little as is needed.
	Freely Moves = iota
	// Upward never chooses a version below the installed one (upgrade policy
	// "Upgrade" of the packages guide).
	Upward
	// Never keeps the installed version, or finds no solution (upgrade policy
	// "None").
	Never
)

// A Problem is what is to be solved. The order of its parts has no effect on the
// solution.
type Problem struct {
	Roots []Root
	// Installed maps packages to what is installed of them: a tag, a digest, or
	// both. It is preferred wherever it fits. Packages that no root reaches are
	// not part of the solution.
	Installed map[string]string
	Source    Source
	// Moves binds installed packages.
	Moves Moves
	// Nearest makes an installed package that must change take the lowest fitting
	// version above the installed one, and then the highest below it, instead of
	// the highest of all.
	Nearest bool
	// Budget limits the work, in words of 64 bits that are looked at. Zero means
	// DefaultBudget. The same problem always takes the same work.
	Budget int
	// Unexplained leaves out why there is no solution, which can take longer than to
	// find out: for a try after which there will be another.
	Unexplained bool
}

// DefaultBudget ends a search that does not come to an end by itself within a
// fraction of a second; real problems take less than a thousandth of it.
const DefaultBudget = 40_000_000
