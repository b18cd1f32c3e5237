package solver

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

var errMissing = errcode.Code{
	Name: "TestMissing", Class: errcode.NotFound, Cause: "A test took it away.", Fix: "Put it back.",
}

// A table is a Source in memory: package → tag → dependencies. It counts lookups.
type table struct {
	packages map[string]map[string][]dependency.Dependency
	tags     map[string][]string // of the packages that were listed
	asked    map[string]int
	fault    map[string]error
}

func newTable() *table {
	return &table{
		packages: map[string]map[string][]dependency.Dependency{}, tags: map[string][]string{}, asked: map[string]int{},
		fault: map[string]error{},
	}
}

// parseTable reads lines "package version: dependency constraint; …". An optional
// dependency begins with a question mark.
func parseTable(text string) *table {
	t := newTable()
	for line := range strings.Lines(text) {
		head, needs, _ := strings.Cut(strings.TrimSpace(line), ": ")
		pkg, tag, ok := strings.Cut(strings.TrimSuffix(head, ":"), " ")
		if !ok {
			continue
		}
		var deps []dependency.Dependency
		for need := range strings.SplitSeq(needs, ";") {
			if name, constraint, _ := strings.Cut(strings.TrimSpace(need), " "); name != "" {
				name, optional := strings.CutPrefix(name, "?")
				deps = append(deps, dependency.Dependency{Package: name, Constraint: constraint, Optional: optional})
			}
		}
		t.add(pkg, tag, deps...)
	}
	return t
}

// listLikeRegistries lists all tags in lexical order, as the OCI distribution specification requires.
func (t *table) listLikeRegistries() {
	for pkg, versions := range t.packages {
		t.tags[pkg] = slices.Sorted(maps.Keys(versions))
	}
}

func (t *table) add(pkg, tag string, deps ...dependency.Dependency) {
	if t.packages[pkg] == nil {
		t.packages[pkg] = map[string][]dependency.Dependency{}
	}
	t.packages[pkg][tag] = deps
}

func (t *table) Versions(pkg string) ([]string, error) {
	t.asked["list "+pkg]++
	if err := t.fault[pkg]; err != nil {
		return nil, err
	}
	p, ok := t.packages[pkg]
	if !ok {
		return nil, errMissing.New(nil, "there is no repository %s", pkg)
	}
	if len(t.tags[pkg]) != len(p) {
		t.tags[pkg] = slices.Collect(maps.Keys(p)) // in random order
	}
	return t.tags[pkg], nil
}

func (t *table) Dependencies(pkg, version string) ([]dependency.Dependency, error) {
	t.asked[pkg+" "+version]++
	if err := t.fault[pkg+" "+version]; err != nil {
		return nil, err
	}
	deps, ok := t.packages[pkg][version]
	if !ok {
		return nil, errMissing.New(nil, "there is no %s %s", pkg, version)
	}
	return deps, nil
}

// accepts returns the second opinion of the tests about a constraint, without any of the
// code that is tested.
func accepts(constraint, tag string) bool {
	v, err := semver.NewVersion(tag)
	if err != nil {
		return constraint == tag
	}
	if constraint == "" {
		return true
	}
	c, err := semver.NewConstraint(constraint)
	if err != nil {
		return constraint == tag
	}
	return c.Check(v)
}

// valid returns the reason why a selection of versions is invalid, or "".
func (t *table) valid(roots []dependency.Root, chosen map[string]string) string {
	needs := func(who string, d dependency.Dependency) string {
		tag, ok := chosen[d.Package]
		if !ok && d.Optional {
			return ""
		}
		if !ok || !accepts(d.Constraint, tag) {
			return fmt.Sprintf("%s needs %s %s, which is %q", who, d.Package, d.Constraint, tag)
		}
		return ""
	}
	for _, r := range roots {
		if wrong := needs("root", asDependency(r)); wrong != "" {
			return wrong
		}
	}
	for pkg, tag := range chosen {
		deps, ok := t.packages[pkg][tag]
		if !ok {
			return pkg + " " + tag + " does not exist"
		}
		for _, d := range deps {
			if wrong := needs(pkg+" "+tag, d); wrong != "" {
				return wrong
			}
		}
	}
	return ""
}

// dependency is a root as a dependency of the problem.
// asDependency returns the requirement of a root.
func asDependency(r dependency.Root) dependency.Dependency {
	return dependency.Dependency{Package: r.Package, Constraint: r.Constraint, Optional: r.Optional}
}

func chosen(s Solution) map[string]string {
	out := map[string]string{}
	for _, p := range s.Picks {
		out[p.Package] = p.Tag
	}
	return out
}
