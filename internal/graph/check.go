package graph

import (
	"cmp"
	"slices"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
)

// State is the state of a dependency.
type State string

// States of a dependency.
const (
	// Satisfied is the state of a package that is installed at an accepted version.
	Satisfied State = "satisfied"
	// Missing is the state of a package that is not installed.
	Missing State = "missing"
	// Incompatible is the state of a package that is installed at a version that is not accepted.
	Incompatible State = "incompatible"
	// Absent is the state of an optional dependency that is not installed.
	Absent State = "absent"
	// Progressing is the state of a package that is rolling out an accepted version; the cluster may still
	// contain the objects of another version.
	Progressing State = "progressing"
	// NotProvided is the state of a package that is installed at an accepted version and does not contain the kind for
	// which it was selected. [Graph.Check] does not know the kinds, and never returns it.
	NotProvided State = "not-provided"
)

// DependencyStatus is a dependency and its state.
type DependencyStatus struct {
	Dependency dependency.Dependency
	State      State
	// Installed is the installed package. It is nil if the state is Missing or Absent.
	Installed Node
}

// Check returns the state of every dependency among the installed packages.
func (g *Graph) Check(needs []dependency.Dependency) []DependencyStatus {
	out := make([]DependencyStatus, 0, len(needs))
	for _, need := range needs {
		found := DependencyStatus{Dependency: need, State: Missing}
		if need.Optional {
			found.State = Absent
		}
		if n, ok := g.Find(g.Name(need.Package)); ok {
			found.Installed, found.State = n, n.state(need.Constraint)
		}
		out = append(out, found)
	}
	return out
}

// state returns the state of a package for a constraint. The installed version counts, not the requested one,
// which may never become healthy. For a package that was never installed, the requested version counts, so
// that packages are installed in parallel.
func (n Node) state(constraint string) State {
	wanted := VersionOf(n).satisfies(constraint)
	switch {
	case len(n.Running) == 0 && wanted,
		len(n.Running) > 0 && !slices.ContainsFunc(n.Running, func(v Version) bool { return !v.satisfies(constraint) }):
		return Satisfied
	case wanted:
		return Progressing
	}
	return Incompatible
}

// VersionOrDigest returns the tag, or the digest if there is no tag.
func (n Node) VersionOrDigest() string { return cmp.Or(n.Version, n.Digest.String()) }

// Reference returns the repository with the tag or the digest.
func (n Node) Reference() string {
	if n.Version == "" {
		return n.Repository + "@" + n.Digest.String()
	}
	return n.Repository + ":" + n.Version
}
