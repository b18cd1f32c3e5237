package preview

import (
	"fmt"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/closure"
	"github.com/xpkg-dev/xpkg/internal/failure"
	"github.com/xpkg-dev/xpkg/internal/lockfile"
	"github.com/xpkg-dev/xpkg/internal/wording"
)

// ErrDependentsBroken is the failure of a plan after which another package does not
// have what it needs.
var ErrDependentsBroken = failure.Register(failure.Code{
	Name: "DependentsBroken", Class: failure.Conflict,
	Cause: "Another package needs this one, at a version that it would not be at any more.",
	Fix:   "Move the packages that need it first, or to versions that go with it. To go ahead all the same, give --yes.",
})

// Broken is a package that would not have what it needs any more.
type Broken struct {
	// Kind and Name are those of its object.
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Needs is the repository that it needs, with this constraint.
	Needs      string `json:"needs"`
	Constraint string `json:"constraint,omitempty"`
	// Gets is the version that would be there; it is empty when none would.
	Gets string `json:"gets,omitempty"`
}

// String is what is broken, in one clause.
func (b Broken) String() string {
	gets := "it would not be there"
	if b.Gets != "" {
		gets = "it would be at " + b.Gets
	}
	return fmt.Sprintf("%s needs %s, and %s", Package{Kind: b.Kind, Name: b.Name}.Short(), strings.TrimSpace(b.Needs+" "+b.Constraint), gets)
}

// Breaking is the failure of a plan that breaks others: nil when it breaks none. A
// person can want it all the same.
func (p *Plan) Breaking() error {
	if len(p.Breaks) == 0 {
		return nil
	}
	var reasons []string
	for _, b := range p.Breaks {
		reasons = append(reasons, b.String())
	}
	return ErrDependentsBroken.New(few(reasons), "to %s %s breaks %s", p.Operation, p.Package.Short(), wording.Count(len(p.Breaks), "package"))
}

// breaks finds the packages whose needs are met now, or would be by what is to be
// installed, and that a package as it will be does not meet: nil when it will not be
// there.
func (pl *Planner) breaks(s *situation, graph *closure.Graph, will *closure.Node) []Broken {
	was, there := closure.Node{}, false
	if s.live != nil {
		was, there = s.node(s.live)
	}
	var out []Broken
	look := func(repository string, to *closure.Node) {
		for _, d := range graph.Dependents(repository) {
			short := Package{Kind: d.Kind, Name: d.Name}.Short()
			if pl.Together[short] || to == nil && d.Need.Optional || there && s.same(was.Package.Package, repository) && !closure.Accepts(d.Need, closure.VersionOf(was)) {
				continue
			}
			b := Broken{Kind: d.Kind, Name: d.Name, Needs: lockfile.Repository(d.Need.Package), Constraint: d.Need.Constraint}
			if to != nil {
				if closure.Accepts(d.Need, closure.VersionOf(*to)) {
					continue
				}
				b.Gets = to.At()
			}
			out = append(out, b)
		}
	}
	if will != nil {
		look(will.Package.Package, will)
	}
	if there && (will == nil || !s.same(will.Package.Package, was.Package.Package)) {
		look(was.Package.Package, nil)
	}
	return out
}
