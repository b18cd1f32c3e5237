package solver

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

// factStore caches the versions and dependencies that the source returned. All searches
// that solve and explain one problem share it, so that the source is asked once for each
// list and each version, and each list is parsed once.
type factStore struct {
	source                Source
	virtual               VirtualSource // the source, or nil
	listings              map[string]*listing
	dependenciesByVersion map[string]map[string]*versionFacts
	pins                  map[string][]version.Pin
	mustList              map[string]bool // packages whose versions must be listed
	parsed                map[string]*version.Constraint
	// overrides replaces the facts of single versions, for the attempts of suggestions.
	overrides map[versionKey]*versionFacts
}

// versionKey names one version of a package.
type versionKey struct{ pkg, version string }

// listing is the parsed list of versions of a package.
type listing struct {
	candidates []candidate // ordered; only versions that a constraint can select
	unusable   []version.Version
	missing    error
}

// versionFacts are the dependencies of one version.
type versionFacts struct {
	deps        []dependency.Dependency
	unavailable error
}

func newFactStore(source Source) *factStore {
	virtual, _ := source.(VirtualSource)
	return &factStore{
		source: source, virtual: virtual, listings: map[string]*listing{},
		dependenciesByVersion: map[string]map[string]*versionFacts{},
		pins:                  map[string][]version.Pin{}, mustList: map[string]bool{},
		parsed: map[string]*version.Constraint{},
	}
}

// constraint returns a parsed constraint from the cache.
func (m *factStore) constraint(text string) *version.Constraint {
	c, ok := m.parsed[text]
	if !ok {
		parsed := version.ParseConstraint(text)
		c = &parsed
		m.parsed[text] = c
	}
	return c
}

// exactTag returns the cache key of a tag that is not parsed as a constraint, even if it
// is a valid one.
func (m *factStore) exactTag(tag string) string {
	text := "tag " + tag
	parsed := version.ExactTag(tag)
	m.parsed[text] = &parsed
	return text
}

// listing returns the versions of a package, and lists them once.
func (m *factStore) listing(pkg string) (*listing, error) {
	if l, ok := m.listings[pkg]; ok {
		return l, nil
	}
	l := &listing{}
	tags, err := m.source.Versions(pkg)
	switch {
	case notFound(err):
		l.missing = err
	case err != nil:
		return nil, fmt.Errorf("list the versions of %s: %w", pkg, err)
	}
	l.read(tags)
	m.listings[pkg] = l
	return l, nil
}

func (l *listing) read(tags []string) {
	candidates := make([]candidate, 1, len(tags)+1)
	for _, tag := range tags {
		if c := newCandidate(version.ParsePin(tag)); c.version.Usable() {
			candidates = append(candidates, c)
		} else {
			l.unusable = append(l.unusable, c.version)
		}
	}
	l.candidates = order(candidates)
	slices.SortFunc(l.unusable, func(a, b version.Version) int { return cmp.Compare(a.Tag, b.Tag) })
	l.unusable = slices.CompactFunc(l.unusable, func(a, b version.Version) bool { return a.Tag == b.Tag })
}

// virtualFor returns the source that names the versions of a virtual package, and nil for other packages.
func (m *factStore) virtualFor(pkg string) VirtualSource {
	if m.virtual == nil {
		return nil
	}
	if _, is := m.virtual.VersionName(pkg, ""); !is {
		return nil
	}
	return m.virtual
}

// dependencies returns the dependencies of one version, sorted, and reads them once.
func (m *factStore) dependencies(pkg string, p version.Pin) (*versionFacts, error) {
	name := p.String()
	if n, ok := m.overrides[versionKey{pkg, name}]; ok {
		return n, nil
	}
	if n, ok := m.dependenciesByVersion[pkg][name]; ok {
		return n, nil
	}
	n := &versionFacts{}
	deps, err := m.source.Dependencies(pkg, name)
	switch {
	case notFound(err):
		n.unavailable = err
	case err != nil:
		return nil, fmt.Errorf("read the dependencies of %s %s: %w", pkg, name, err)
	}
	n.deps = sortedDependencies(deps)
	if m.dependenciesByVersion[pkg] == nil {
		m.dependenciesByVersion[pkg] = map[string]*versionFacts{}
	}
	m.dependenciesByVersion[pkg][name] = n
	return n, nil
}

// sortedDependencies returns dependencies without duplicates, ordered by package and constraint. It returns the same
// slice if that is already the case.
func sortedDependencies(deps []dependency.Dependency) []dependency.Dependency {
	order := func(a, b dependency.Dependency) int {
		if c := cmp.Or(cmp.Compare(a.Package, b.Package), cmp.Compare(a.Constraint, b.Constraint)); c != 0 ||
			a.Optional == b.Optional {
			return c
		}
		if a.Optional {
			return 1
		}
		return -1
	}
	for i := 1; i < len(deps); i++ {
		if order(deps[i-1], deps[i]) >= 0 {
			deps = slices.Clone(deps)
			slices.SortStableFunc(deps, order)
			return slices.Compact(deps)
		}
	}
	return deps
}

// cachedDependencies returns the dependencies of a version if they were read before, and
// nil otherwise.
func (m *factStore) cachedDependencies(pkg string, p version.Pin) *versionFacts {
	name := p.String()
	if n, ok := m.overrides[versionKey{pkg, name}]; ok {
		return n
	}
	return m.dependenciesByVersion[pkg][name]
}

// override returns a store that shares all facts with m except for the facts about one
// version, which does not need to exist in the source.
func (m *factStore) override(pkg, tag string, facts *versionFacts) *factStore {
	out := *m
	out.pins = maps.Clone(m.pins)
	out.overrides = maps.Clone(m.overrides)
	if out.overrides == nil {
		out.overrides = map[versionKey]*versionFacts{}
	}
	out.overrides[versionKey{pkg, tag}] = facts
	out.pin(pkg, version.ParsePin(tag))
	return &out
}

// pin adds a version that a requirement names to the candidates of its package. It
// reports whether the version is new.
func (m *factStore) pin(pkg string, p version.Pin) bool {
	if slices.Contains(m.pins[pkg], p) {
		return false
	}
	m.pins[pkg] = append(slices.Clip(m.pins[pkg]), p) // An override shares the slice.
	return true
}

func notFound(err error) bool {
	var f *errcode.Error
	return errors.As(err, &f) && f.Code.Class.Name == errcode.NotFound.Name
}
