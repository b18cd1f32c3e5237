package planner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/frontend"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

// ErrDependentsBroken is the code for a plan after which the dependencies of another package are not satisfied.
var ErrDependentsBroken = errcode.Code{
	Name: "DependentsBroken", Class: errcode.Conflict,
	Cause: "Another package requires a version of this one, or a kind that it provides, and the operation replaces or removes it.",
	Fix:   "Update the dependents first, to versions that accept it.",
}

// Broken is a package whose dependencies would no longer be satisfied, or an install object without the provider of its
// kind.
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
	// ReplacedBy is the repository that provides the kinds after the operation; empty if the operation does not switch
	// their provider.
	ReplacedBy string `json:"replacedBy,omitempty"`
}

// Needs describes the requirement, without its subject.
func (b Broken) Needs() string {
	return "needs " + dependency.Need{Package: b.Requires, Constraint: b.Constraint, Kinds: b.Kinds}.String()
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
	return "would be at " + b.Installed + version.PrereleaseNote(b.Constraint, version.ParsePin(b.Installed).Tag)
}

// String describes the broken dependency in one clause.
func (b Broken) String() string {
	return fmt.Sprintf("%s %s, and it %s", Package{Kind: b.Kind, Name: b.Name}.Short(), b.Needs(), b.After())
}

// ConsentError returns the error of a plan that a user can apply only with consent, because it breaks dependents or
// because the package waits for a dependency that the manager does not move, or nil.
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
			reasons = append(reasons,
				fmt.Sprintf("%s is needed, and %s is installed%s", strings.TrimSpace(d.Package+" "+d.Constraint), d.Installed,
					version.PrereleaseNote(d.Constraint, version.ParsePin(d.Installed).Tag)))
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
	err := ErrDependentsBroken.New(few(reasons), "to %s %s breaks %s", p.Verb(), p.Package.Short(), p.brokenText())
	if p.Remedy != "" {
		return err.WithDo("%s", p.Remedy)
	}
	return err
}

// uninstallRemedy returns how everything that requires the deleted package is removed, too: install objects and
// Packages with kubectl, and packages in one command with those that the operation deletes. Others are the nodes of the
// other packages.
func (pl *planning) uninstallRemedy(
	ctx context.Context, s *clusterState, others []graph.Node, uses frontend.Uses, out *Plan,
) string {
	g, removed := pl.removedTogether(s, others, out)
	packages := map[string]v1.Package{out.Package.Short(): s.live}
	for _, x := range slices.Concat(s.others, pl.RemovedTogether) {
		packages[Package{Kind: x.PackageKind(), Name: x.GetName()}.Short()] = x
	}
	var names, installs, objects []string
	for _, n := range g.WithDependents(removed...) {
		short := Package{Kind: n.Kind, Name: n.Name}.Short()
		for _, in := range uses.Installs {
			if n.Kind == v1.ProviderKind && in.Provider == n.Name {
				installs = append(installs, "`"+in.Command("delete")+"`")
			}
		}
		for _, use := range uses.Kinds {
			command := "`" + use.Object.Command("delete") + "`"
			if n.Kind == v1.ProviderKind && use.Provider == n.Name && !slices.Contains(objects, command) {
				objects = append(objects, command)
			}
		}
		// The manager deletes a maintained package with its install object.
		if CheckMaintained(ctx, pl.Frontend, pl.Reader, packages[short], nil) == nil {
			names = append(names, short)
		}
	}
	var text []string
	if len(installs) > 0 {
		text = append(text, "Delete the install objects first, with "+wording.Few(installs, maxInstallsInText, " and ")+".")
	}
	if len(objects) > 0 {
		text = append(text, "Delete the Packages that use its kinds, with "+wording.Few(objects, maxInstallsInText, " and ")+
			".")
	}
	if len(names) > 1 {
		text = append(text, fmt.Sprintf("Uninstall the dependents too, with `xpkg uninstall %s`.", strings.Join(names, " ")))
	}
	return strings.Join(text, " ")
}

// removedTogether returns the graph of all packages before the operation, and the nodes of the packages that are
// removed with a package whose uninstall breaks others: the broken packages, and those that the operation deletes.
func (pl *planning) removedTogether(s *clusterState, others []graph.Node, out *Plan) (*graph.Graph, []graph.Node) {
	nodes := slices.Clone(others)
	find := func(kind, name string) int {
		return slices.IndexFunc(nodes, func(n graph.Node) bool { return n.Kind == kind && n.Name == name })
	}
	var removed []graph.Node
	for _, b := range out.Breaks {
		if at := find(b.Kind, b.Name); at >= 0 {
			removed = append(removed, nodes[at])
		}
	}
	for _, x := range append(slices.Clone(pl.RemovedTogether), s.live) {
		at := find(x.PackageKind(), x.GetName())
		if at < 0 {
			n, ok := s.node(x, nil)
			if x == s.live {
				n, ok = s.liveNode()
			}
			if !ok {
				continue
			}
			nodes, at = append(nodes, n), len(nodes)
		}
		removed = append(removed, nodes[at])
	}
	return graph.New(nodes, s.place), removed
}

// maxInstallsInText limits the install objects in an advice.
const maxInstallsInText = 5

// isPackage reports whether a package is broken, and not an object of the first generation.
func (b Broken) isPackage() bool { return slices.Contains(v1.PackageKinds(), b.Kind) }

// brokenText returns the numbers of packages and of other objects that the plan breaks.
func (p *Plan) brokenText() string {
	packages := 0
	for _, b := range p.Breaks {
		if b.isPackage() {
			packages++
		}
	}
	var parts []string
	if packages > 0 {
		parts = append(parts, wording.Count(packages, "package"))
	}
	if objects := len(p.Breaks) - packages; objects > 0 {
		parts = append(parts, wording.Count(objects, "object")+" of the first generation")
	}
	return strings.Join(parts, " and ")
}

// addBroken adds a broken dependency to those of the same package on the required one. It names the kind of the
// dependency if the required package would not be installed.
func addBroken(all []Broken, b Broken, d dependency.Dependency) []Broken {
	at := slices.IndexFunc(all, func(x Broken) bool {
		return x.Kind == b.Kind && x.Name == b.Name && x.Requires == b.Requires && x.Installed == b.Installed
	})
	if at < 0 {
		at = len(all)
		all = append(all, b)
	}
	same := &all[at]
	needs := []dependency.Dependency{{Package: b.Requires, Constraint: same.Constraint}, {
		Package: b.Requires, Constraint: b.Constraint,
	}}
	same.Constraint = dependency.Needs(needs)[0].Constraint
	if d.CRD != "" && b.Installed == "" && !slices.Contains(same.Kinds, d.CRD) {
		same.Kinds = append(same.Kinds, d.CRD)
	}
	return all
}

// breaks returns the packages whose requirements on the package are not met after the operation, except for those that
// are not met now either, and those that the same operation changes. Node is the package after the operation, or nil if
// the operation deletes it. A package whose dependencies are not resolved accepts every version, but needs its
// dependencies.
func (pl *planning) breaks(s *clusterState, g *graph.Graph, node *graph.Node) []Broken {
	was, exists := s.liveNode()
	var out []Broken
	check := func(repository string, to *graph.Node) {
		for _, d := range g.Dependents(repository) {
			short := Package{Kind: d.Kind, Name: d.Name}.Short()
			brokenBefore := exists && s.sameRepository(was.Repository, repository) &&
				!graph.Accepts(d.Dependency, graph.VersionOf(was))
			if pl.ChangedTogether[short] || to == nil && d.Dependency.Optional || brokenBefore ||
				node != nil && d.SkipDependencies {
				continue
			}
			b := Broken{
				Kind: d.Kind, Name: d.Name, Requires: oci.RepositoryName(d.Dependency.Package), Constraint: d.Dependency.Constraint,
			}
			if to != nil {
				if graph.Accepts(d.Dependency, graph.VersionOf(*to)) {
					continue
				}
				b.Installed = to.VersionOrDigest()
			}
			out = addBroken(out, b, d.Dependency)
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
