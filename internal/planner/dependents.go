package planner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// ErrDependentsBroken is the code for a plan after which the dependencies of another package are not satisfied.
var ErrDependentsBroken = errcode.Code{
	Name: "DependentsBroken", Class: errcode.Conflict,
	Cause: "Another package requires a version of this one, or a kind that it provides, and the operation replaces or removes it.",
	Fix:   "Update the dependents first, to versions that accept it. To continue anyway, use --yes.",
}

// Broken is a package whose dependencies would no longer be satisfied, or an install object without the provider of its kind.
type Broken struct {
	// Kind and Name are the kind and name of the object; the name of an install object follows its namespace.
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Requires is the required repository, and Constraint the constraint on its versions.
	Requires   string `json:"requires"`
	Constraint string `json:"constraint,omitempty"`
	// Installed is the version of the required package after the operation. It is empty if the
	// package would not be installed.
	Installed string `json:"installed,omitempty"`
	// Kinds are the kinds that the required package provides now, and not after the operation.
	Kinds []string `json:"kinds,omitempty"`
	// ReplacedBy is the repository that provides the kinds after the operation; empty if the operation does not switch their
	// provider.
	ReplacedBy string `json:"replacedBy,omitempty"`
}

// Needs describes the requirement, without its subject.
func (b Broken) Needs() string {
	needs := strings.TrimSpace("needs " + b.Requires + " " + b.Constraint)
	if len(b.Kinds) > 0 {
		needs += " for " + strings.Join(b.Kinds, " and ")
	}
	return needs
}

// After describes the requirement after the operation, for the subject "it".
func (b Broken) After() string {
	switch {
	case b.ReplacedBy != "":
		return "would be replaced by " + b.ReplacedBy
	case b.Installed == "":
		return "would not be installed"
	case len(b.Kinds) > 0:
		return "would not provide that at " + b.Installed
	}
	return "would be at " + b.Installed
}

// String describes the broken dependency in one clause.
func (b Broken) String() string {
	return fmt.Sprintf("%s %s, and it %s", Package{Kind: b.Kind, Name: b.Name}.Short(), b.Needs(), b.After())
}

// ConsentError returns the error of a plan that a user can apply only with consent, because it breaks dependents or because
// the package waits for a dependency that the manager does not move, or nil.
func (p *Plan) ConsentError() error {
	if err := p.BreakageError(); err != nil {
		return err
	}
	return p.DependencyError()
}

// DependencyError returns the error of a plan whose package waits for installed dependencies at another version, which
// the manager does not move, or nil.
func (p *Plan) DependencyError() error {
	var reasons []string
	for _, d := range p.Dependencies {
		if d.conflicts() && !p.moves(d.Package) {
			reasons = append(reasons, fmt.Sprintf("%s is needed, and %s is installed", strings.TrimSpace(d.Package+" "+d.Constraint), d.Installed))
		}
	}
	if len(reasons) == 0 || !p.HasChanges() {
		return nil
	}
	err := graph.ErrDependencyVersion.New(few(reasons), "%s would not become healthy", p.Package.Short())
	if p.Remedy != "" {
		return err.WithDo("%s", p.Remedy)
	}
	return err
}

// BreakageError returns the error of a plan that breaks dependents, or nil. A user can still apply
// such a plan.
func (p *Plan) BreakageError() error {
	if len(p.Breaks) == 0 {
		return nil
	}
	var reasons []string
	for _, b := range p.Breaks {
		reasons = append(reasons, b.String())
	}
	err := ErrDependentsBroken.New(few(reasons), "to %s %s breaks %s", p.Operation, p.Package.Short(), wording.Count(len(p.Breaks), "package"))
	if p.Operation == Uninstall {
		return err.WithDo("Uninstall the dependents too, with `xpkg uninstall %s`. To continue anyway, use --yes.", strings.Join(p.withDependents(), " "))
	}
	return err
}

// withDependents returns the names of the broken dependents, each once, and of the package.
func (p *Plan) withDependents() []string {
	var out []string
	for _, b := range p.Breaks {
		if name := (Package{Kind: b.Kind, Name: b.Name}).Short(); !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return append(out, p.Package.Short())
}

// breaks returns the packages whose requirements on the package are not met after the operation,
// except for those that are not met now either, and those that the same operation changes. Node is
// the package after the operation, or nil if the operation deletes it.
func (pl *Planner) breaks(s *clusterState, g *graph.Graph, node *graph.Node) []Broken {
	was, exists := s.liveNode()
	var out []Broken
	check := func(repository string, to *graph.Node) {
		for _, d := range g.Dependents(repository) {
			short := Package{Kind: d.Kind, Name: d.Name}.Short()
			brokenBefore := exists && s.sameRepository(was.Repository, repository) && !graph.Accepts(d.Dependency, graph.VersionOf(was))
			if pl.ChangedTogether[short] || to == nil && d.Dependency.Optional || brokenBefore {
				continue
			}
			b := Broken{Kind: d.Kind, Name: d.Name, Requires: oci.RepositoryName(d.Dependency.Package), Constraint: d.Dependency.Constraint}
			if to != nil {
				if graph.Accepts(d.Dependency, graph.VersionOf(*to)) {
					continue
				}
				b.Installed = to.VersionOrDigest()
			}
			out = append(out, b)
		}
	}
	if node != nil {
		check(node.Repository, node)
	}
	if exists && (node == nil || !s.sameRepository(node.Repository, was.Repository)) {
		check(was.Repository, nil)
	}
	return out
}
