package solver

import (
	"cmp"
	"slices"

	"github.com/xpkg-dev/xpkg/pkg/version"
)

// variable is the state of a package in a search. State 0 is the absence of the package; states
// from 1 are the candidates, lowest first.
type variable struct {
	name       string
	candidates []candidate // candidates[0] is the absence
	size       int
	all        set
	listed     bool
	missing    error // error of a repository that does not exist
	unusable   []version.Version
	sets       map[string]set // of constraints
	installed  int            // installed candidate, or 0
	isRoot     bool           // a root names it
	preference []int          // order of candidates; nil means highest first
	preferred  bool           // only the candidates of preference are allowed
	order      int            // in the order of decisions
	first      int            // index of the first candidate that is a version

	state             set
	history           []int // indexes of the assignments of this package
	incompatibilities []*incompatibility
	read              set // candidates with loaded dependencies
	queued            bool
	waiting           bool
	conflicts         int
	merged            map[mergeKey]*incompatibility
}

// candidate is one version of a package.
type candidate struct {
	version.Pin
	version version.Version
}

// newVariable creates the candidates of a package: the listed versions, the versions that
// requirements name, and the installed version.
func newVariable(name string, listed *listing, pins []version.Pin, installed string) *variable {
	v := &variable{name: name, sets: map[string]set{}, merged: map[mergeKey]*incompatibility{}}
	if listed != nil {
		v.listed, v.missing, v.unusable = true, listed.missing, listed.unusable
		v.candidates = listed.candidates
	}
	named := slices.Clone(pins)
	var at version.Pin
	if installed != "" {
		at = version.ParsePin(installed)
		named = append(named, at)
	}
	if v.candidates == nil || len(named) > 0 {
		v.candidates = merge(v.candidates, named)
	}
	v.finish(installed != "", at)
	return v
}

// merge adds named candidates to listed ones.
func merge(listed []candidate, named []version.Pin) []candidate {
	var found []candidate
	for i := range listed {
		if i > 0 {
			found = append(found, listed[i])
		}
	}
	for _, p := range named {
		found = append(found, candidate{Pin: p, version: version.Parse(p.Tag)})
	}
	return ordered(found)
}

// ordered sorts candidates, removes duplicates and puts the absence first.
func ordered(found []candidate) []candidate {
	order := make([]int32, len(found)) // indexes are cheaper to swap than candidates
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(i, j int32) int {
		a, b := &found[i], &found[j]
		if c := a.version.Compare(&b.version); c != 0 {
			return c
		}
		return version.ComparePins(a.Pin, b.Pin)
	})
	out := make([]candidate, 1, len(found)+1)
	for _, i := range order {
		if len(out) == 1 || out[len(out)-1].Pin != found[i].Pin {
			out = append(out, found[i])
		}
	}
	return out
}

func (v *variable) finish(has bool, at version.Pin) {
	v.size = len(v.candidates)
	v.first = v.size
	for i := 1; i < v.size; i++ {
		c := &v.candidates[i]
		if has && c.Pin == at {
			v.installed = i
		}
		if c.version.Unusable() == "" {
			v.first = min(v.first, i)
		}
	}
	v.all = fullSet(v.size)
	v.state = v.all
	v.read = newSet(v.size)
}

// knows reports whether a pin names a candidate.
func (v *variable) knows(p version.Pin) bool {
	return slices.ContainsFunc(v.candidates[1:], func(c candidate) bool { return p.Matches(c.Pin) })
}

// fitting returns the candidates that satisfy a constraint.
func (v *variable) fitting(text string, c *version.Constraint) set {
	if s, ok := v.sets[text]; ok {
		return s
	}
	if plain := c.Comparisons(); plain != nil {
		if s, ok := v.spans(plain); ok {
			v.sets[text] = s
			return s
		}
	}
	s := newSet(v.size)
	for i := 1; i < v.size; i++ {
		if v.fits(&v.candidates[i], c) {
			s.add(i)
		}
	}
	v.sets[text] = s
	return s
}

func (v *variable) fits(candidate *candidate, c *version.Constraint) bool {
	return c.AcceptsVersion(candidate.Pin, &candidate.version)
}

// prefer sets the order in which the versions of an installed package are tried.
func (v *variable) prefer(nearest bool) {
	if v.installed == 0 {
		return
	}
	v.preference = append(v.preference, v.installed)
	if !nearest || v.installed < v.first { // Nothing is near a tag that is not a version.
		for i := v.size - 1; i > 0; i-- {
			v.preference = append(v.preference, i)
		}
		return
	}
	for i := v.installed + 1; i < v.size; i++ {
		v.preference = append(v.preference, i)
	}
	for i := v.installed - 1; i > 0; i-- {
		v.preference = append(v.preference, i)
	}
}

// best returns the candidate of a set that is tried first. Of tags of the same version, such as
// 1.0.0 and v1.0.0, it is the tag that a requirement names.
func (v *variable) best(in set, welcome func() bool) int {
	first := v.bestVersion(in, welcome)
	if first == 0 || first == v.installed {
		return first
	}
	for i := first - 1; i > 0 && v.candidates[i].version.Compare(&v.candidates[first].version) == 0; i-- {
		if _, named := v.sets[v.candidates[i].Tag]; named && in.has(i) && v.sets[v.candidates[first].Tag] == nil {
			return i
		}
	}
	return first
}

// bestVersion returns the candidate with the version that is tried first. Prereleases come last
// unless they are welcome.
func (v *variable) bestVersion(in set, welcome func() bool) int {
	if v.installed > 0 && in.has(v.installed) && !v.preferred {
		return v.installed
	}
	first := v.top(in, func(int) bool { return true })
	if first == 0 || !v.candidates[first].version.Prerelease() || welcome() {
		return first
	}
	return cmp.Or(v.top(in, func(i int) bool { return !v.candidates[i].version.Prerelease() }), first)
}

// top returns the most preferred candidate of a set that passes a filter, or 0.
func (v *variable) top(in set, pass func(int) bool) int {
	for _, i := range v.preference {
		if in.has(i) && pass(i) {
			return i
		}
	}
	for i := v.size - 1; i > 0; i-- {
		if in.has(i) && pass(i) {
			return i
		}
	}
	return 0
}

// settled reports whether the package is decided: it is absent, or a version is selected and
// its dependencies are loaded.
func (v *variable) settled() bool {
	i := v.state.only()
	return i == 0 || i > 0 && v.read.has(i)
}

// olderThanInstalled returns the candidates below the installed one. Tags that are not
// versions have no order.
func (v *variable) olderThanInstalled() set {
	s := newSet(v.size)
	if v.installed < v.first {
		return s
	}
	for i := v.first; i < v.installed; i++ {
		if v.candidates[i].version.Compare(&v.candidates[v.installed].version) < 0 {
			s.add(i)
		}
	}
	return s
}
