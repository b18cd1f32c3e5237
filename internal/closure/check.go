package closure

import (
	"cmp"
	"slices"

	"github.com/xpkg-dev/xpkg/internal/lockfile"
)

// State says what there is of a dependency.
type State string

// The states of a dependency.
const (
	// Satisfied is installed at a version that is accepted.
	Satisfied State = "satisfied"
	// Missing is not installed.
	Missing State = "missing"
	// Unfit is installed at a version that is not accepted.
	Unfit State = "unfit"
	// Off is not installed, and need not be: the package works without it.
	Off State = "off"
	// Coming is on its way to a version that is accepted, and what is in the cluster
	// may still be one that is not.
	Coming State = "coming"
)

// Found is a dependency and what there is of it.
type Found struct {
	Need  lockfile.Dependency
	State State
	// At is the package that is there, unless it is Missing or Off.
	At Node
}

// Check looks every dependency up among what is installed.
func (g *Graph) Check(needs []lockfile.Dependency) []Found {
	out := make([]Found, 0, len(needs))
	for _, need := range needs {
		found := Found{Need: need, State: Missing}
		if need.Optional {
			found.State = Off
		}
		if n, ok := g.Find(g.Name(need.Package)); ok {
			found.At, found.State = n, n.state(need.Constraint)
		}
		out = append(out, found)
	}
	return out
}

// state says what a package is to somebody with a constraint. What runs counts, and not
// what the package asks for: that may never come. A package of which nothing was there
// yet counts as what it asks for, so that packages are installed all at once.
func (n Node) state(constraint string) State {
	wanted := VersionOf(n).fits(constraint)
	switch {
	case len(n.Running) == 0 && wanted,
		len(n.Running) > 0 && !slices.ContainsFunc(n.Running, func(v Version) bool { return !v.fits(constraint) }):
		return Satisfied
	case wanted:
		return Coming
	}
	return Unfit
}

// At is the version as people read it: the tag, or the digest where there is none.
func (n Node) At() string { return cmp.Or(n.Version, n.Digest.String()) }

// Reference is the package as people read it.
func (n Node) Reference() string {
	if n.Version == "" {
		return n.Package.Package + "@" + n.Digest.String()
	}
	return n.Package.Package + ":" + n.Version
}
