package solver

import (
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/xpkg-dev/xpkg/internal/lazyregexp"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

// relax returns the change of a root to the nearest version that makes the problem
// solvable, and, if it differs, to the highest version with the same major version.
func (y *suggester) relax(root dependency.Root) (nearest, highest *Suggestion) {
	if root.Constraint == "" {
		return nil, nil
	}
	nearest = y.nearest(root, nil, orderFrom)
	if nearest == nil || nearest.Older {
		return nearest, nil
	}
	highest = y.nearest(root, nil, func(v *variable, b base) []int { return v.sameMajorFrom(b, nearest.To) })
	return nearest, highest
}

// nearest returns the first version in an order for which the problem, with the other
// changes, is solvable if the root requires that version.
func (y *suggester) nearest(
	root dependency.Root, others []Suggestion, order func(v *variable, b base) []int,
) *Suggestion {
	p := Suggestion{All: others}.Apply(y.problem)
	for i := range p.Roots {
		if p.Roots[i] == root {
			p.Roots[i].Constraint, p.Roots[i].Exact = "", false
		}
	}
	var found base
	p.preferred = &preference{root.Package, func(v *variable) []int {
		found = v.baseOf(root.Constraint, root.Exact, y.store)
		return order(v, found)
	}}
	s, err := y.solve(y.store.apply(Suggestion{All: others}), p)
	if err != nil {
		return nil
	}
	to, v := s.selected(root.Package)
	if to == nil {
		return nil
	}
	return &Suggestion{Relax: &root, To: to.pin().String(), Older: v.olderThan(to, found)}
}

// base is the set of versions that a constraint accepts, or the version in its text if it
// accepts none.
type base struct {
	fit  set
	from *version.Version // the lowest accepted version; nil if unknown
}

var numberPattern = lazyregexp.New(`\d+(\.\d+){0,2}(-[0-9A-Za-z.-]+)?`)

// baseOf returns the versions of a constraint.
func (v *variable) baseOf(text string, exact bool, store *factStore) base {
	c := store.constraint(text)
	if exact {
		text = store.exactTag(text)
		c = store.constraint(text)
	}
	b := base{fit: v.fitting(text, c)}
	for _, i := range b.fit.members() {
		if i >= v.first {
			b.from = &v.candidates[i].version
			return b
		}
	}
	b.from = namedVersion(strings.TrimPrefix(text, "tag "))
	return b
}

// namedVersion returns the first version that a text contains, or nil.
func namedVersion(text string) *version.Version {
	if p := version.ParsePin(text); p.Digest != "" {
		text = p.Tag
	}
	found := numberPattern().FindString(text)
	if found == "" {
		return nil
	}
	full, err := semver.NewVersion(found)
	if err != nil {
		return nil
	}
	parsed := version.Parse(full.String())
	if !parsed.Usable() {
		return nil
	}
	return &parsed
}

// orderFrom lists the versions that a constraint does not accept: releases above the base,
// nearest first, releases below it, nearest first, and then prereleases likewise.
func orderFrom(v *variable, b base) []int {
	var out []int
	for _, prerelease := range []bool{false, true} {
		above, below := v.around(b)
		for _, i := range slices.Concat(above, below) {
			if v.candidates[i].version.Prerelease() == prerelease {
				out = append(out, i)
			}
		}
	}
	return out
}

// around lists the versions above a base, lowest first, and below it, highest first. If the
// base has no version, all versions are above it, highest first.
func (v *variable) around(b base) (above, below []int) {
	for i := v.first; i < v.size; i++ {
		switch {
		case b.fit.has(i):
		case b.from == nil || v.candidates[i].version.Compare(b.from) >= 0:
			above = append(above, i)
		default:
			below = append(below, i)
		}
	}
	slices.Reverse(below)
	if b.from == nil {
		slices.Reverse(above)
	}
	return above, below
}

// sameMajorFrom lists the releases above a version that have the major version of the
// base, highest first.
func (v *variable) sameMajorFrom(b base, pin string) []int {
	if b.from == nil {
		return nil
	}
	at := version.Parse(version.ParsePin(pin).Tag)
	above, _ := v.around(b)
	slices.Reverse(above)
	return slices.DeleteFunc(above, func(i int) bool {
		x := &v.candidates[i].version
		return x.Prerelease() || x.Major() != b.from.Major() || x.Compare(&at) <= 0
	})
}

func (v *variable) olderThan(c *candidate, b base) bool {
	return b.from != nil && c.version.Usable() && c.version.Compare(b.from) < 0
}

// relaxSeveral suggests other versions for as many as possible of the roots that would
// otherwise have to be removed.
func (y *suggester) relaxSeveral(removal []dependency.Root) {
	var all []Suggestion
	for _, root := range removal {
		all = append(all, Suggestion{Remove: []dependency.Root{root}})
	}
	relaxed := false
	for i, root := range removal {
		others := slices.Delete(slices.Clone(all), i, i+1)
		if nearest := y.nearest(root, others, orderFrom); nearest != nil {
			all[i], relaxed = *nearest, true
		}
	}
	if relaxed {
		y.keepAll(all)
	}
}
