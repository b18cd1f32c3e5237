package solve

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/xpkg-dev/xpkg/internal/failure"
)

// memory is what was learned from the source of a problem. It outlives the single
// searches that it takes to solve a problem and to explain it, so that nothing is
// asked twice.
type memory struct {
	source   Source
	listings map[string]*listing
	needs    map[string]map[string]*needs
	pins     map[string][]pin
	asked    map[string]bool // packages whose versions must be listed
	parsed   map[string]*constraint
}

// A listing is what a repository has.
type listing struct {
	pins       []pin
	candidates []candidate // in order, as far as a constraint can choose them
	unusable   []Version
	missing    error
}

// needs are the dependencies of one version.
type needs struct {
	deps []Dependency
	gone error
}

func newMemory(source Source) *memory {
	return &memory{
		source: source, listings: map[string]*listing{}, needs: map[string]map[string]*needs{},
		pins: map[string][]pin{}, asked: map[string]bool{}, parsed: map[string]*constraint{},
	}
}

// constraint parses a constraint once.
func (m *memory) constraint(text string) *constraint {
	c, ok := m.parsed[text]
	if !ok {
		parsed := parseConstraint(text)
		c = &parsed
		m.parsed[text] = c
	}
	return c
}

// exactly is the text under which a tag is known that is no constraint, whatever
// it reads like.
func (m *memory) exactly(tag string) string {
	text := "tag " + tag
	m.parsed[text] = &constraint{pin: &pin{tag: tag}}
	if p := parsePin(tag); p.digest != "" {
		m.parsed[text].pin = &p
	}
	return text
}

// listing lists the versions of a package, once.
func (m *memory) listing(pkg string) (*listing, error) {
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
	l.pins = make([]pin, 0, len(tags))
	found := make([]candidate, 0, len(tags))
	for _, tag := range tags {
		p := parsePin(tag)
		l.pins = append(l.pins, p)
		if v := ParseVersion(p.tag); v.unfit == "" {
			found = append(found, candidate{p, v})
		} else {
			l.unusable = append(l.unusable, v)
		}
	}
	l.candidates = ordered(found)
	slices.SortFunc(l.unusable, func(a, b Version) int { return cmp.Compare(a.Tag, b.Tag) })
	l.unusable = slices.CompactFunc(l.unusable, func(a, b Version) bool { return a.Tag == b.Tag })
}

// dependencies reads those of one version, once, in an order that does not depend
// on that of the package.
func (m *memory) dependencies(pkg string, p pin) (*needs, error) {
	name := p.String()
	if n, ok := m.needs[pkg][name]; ok {
		return n, nil
	}
	n := &needs{}
	deps, err := m.source.Dependencies(pkg, name)
	switch {
	case notFound(err):
		n.gone = err
	case err != nil:
		return nil, fmt.Errorf("read the dependencies of %s %s: %w", pkg, name, err)
	}
	n.deps = slices.Clone(deps)
	slices.SortStableFunc(n.deps, func(a, b Dependency) int {
		return cmp.Or(cmp.Compare(a.Package, b.Package), cmp.Compare(a.Constraint, b.Constraint), cmp.Compare(strconv.FormatBool(a.Optional), strconv.FormatBool(b.Optional)))
	})
	n.deps = slices.Compact(n.deps)
	if m.needs[pkg] == nil {
		m.needs[pkg] = map[string]*needs{}
	}
	m.needs[pkg][name] = n
	return n, nil
}

// known are the dependencies of a version that were read before, or nil.
func (m *memory) known(pkg string, p pin) *needs { return m.needs[pkg][p.String()] }

// pin makes a version that somebody names a candidate of its package. It reports
// whether that is news.
func (m *memory) pin(pkg string, p pin) bool {
	if slices.Contains(m.pins[pkg], p) {
		return false
	}
	m.pins[pkg] = append(m.pins[pkg], p)
	return true
}

func notFound(err error) bool {
	var f *failure.Error
	return errors.As(err, &f) && f.Code.Class.Name == failure.NotFound.Name
}
