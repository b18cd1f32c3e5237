package closure

import (
	"cmp"

	"github.com/xpkg-dev/xpkg/internal/lockfile"
	"github.com/xpkg-dev/xpkg/internal/solve"
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
			found.At, found.State = n, Unfit
			if n.fits(need.Constraint) {
				found.State = Satisfied
			}
		}
		out = append(out, found)
	}
	return out
}

// fits reports whether what is installed will do: any version will where no constraint
// is named.
func (n Node) fits(constraint string) bool {
	return constraint == "" || solve.ParseConstraint(constraint).Accepts(n.pin())
}

// pin is the version as a solver names it, of which the digest may not be known yet.
func (n Node) pin() string {
	if n.Digest.IsZero() {
		return n.Version
	}
	return n.Pin()
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
