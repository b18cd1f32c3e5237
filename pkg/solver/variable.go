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
	virtual    VirtualSource  // for a virtual package; nil for others

	state             set
	history           []int // indexes of the assignments of this package
	incompatibilities []*incompatibility
	read              set // candidates with loaded dependencies
	queued            bool
	waiting           bool
	deselected        bool // a backjump removed its version
	conflicts         int
	merged            map[mergeKey]*incompatibility
}

// candidate is one version of a package.
type candidate struct {
	version version.Version // with the tag
	digest  string
}

func newCandidate(p version.Pin) candidate {
	return candidate{version.Parse(p.Tag), p.Digest}
}

// named reports whether a pin names one of the candidates after the first one.
func named(candidates []candidate, p version.Pin) bool {
	for i := 1; i < len(candidates); i++ {
		if p.Matches(candidates[i].pin()) {
			return true
		}
	}
	return false
}

// pin returns the tag and the digest of the version.
func (c *candidate) pin() version.Pin { return version.Pin{Tag: c.version.Tag, Digest: c.digest} }

// newVariable creates the candidates of a package: the listed versions, the versions that
// requirements name, and the installed version.
func newVariable(name string, listed *listing, pins []version.Pin, installed string) *variable {
	v := &variable{name: name, sets: map[string]set{}, merged: map[mergeKey]*incompatibility{}}
	if listed != nil {
		v.listed, v.missing, v.unusable = true, listed.missing, listed.unusable
		v.candidates = listed.candidates
	}
	pins = slices.Clip(pins)
	var at version.Pin
	if installed != "" {
		at = version.ParsePin(installed)
		pins = append(pins, at)
	}
	if v.candidates == nil || len(pins) > 0 {
		v.candidates = merge(v.candidates, pins)
	}
	v.finish(installed != "", at)
	return v
}

// merge adds named candidates to listed ones.
func merge(listed []candidate, pins []version.Pin) []candidate {
	candidates := make([]candidate, 1, max(1, len(listed))+len(pins))
	if len(listed) > 0 {
		candidates = append(candidates, listed[1:]...)
	}
	for _, p := range pins {
		candidates = append(candidates, newCandidate(p))
	}
	return order(candidates)
}

// order sorts the candidates after the first one, which is the absence, and removes duplicates. It
// changes the slice.
func order(candidates []candidate) []candidate {
	versions := candidates[1:]
	if len(versions) > maxPlaces {
		slices.SortFunc(versions, func(a, b candidate) int { return a.compare(&b) })
	} else if distinct := sortByRank(versions); distinct {
		return candidates
	}
	versions = slices.CompactFunc(versions, func(a, b candidate) bool { return a.pin() == b.pin() })
	return candidates[:1+len(versions)]
}

// sortByRank sorts at most maxPlaces candidates. It sorts numbers, which are cheaper to compare and to move
// than candidates, and compares only candidates of the same rank. It reports whether all ranks are distinct.
func sortByRank(versions []candidate) (distinct bool) {
	places := make([]place, len(versions))
	for i := range places {
		places[i] = place(versions[i].version.Rank()<<placeBits | uint64(i))
	}
	slices.Sort(places)
	distinct = true
	for start := 0; start < len(places); {
		end := start + 1
		for end < len(places) && places[end].rank() == places[start].rank() {
			end++
		}
		if end > start+1 {
			distinct = false
			slices.SortFunc(places[start:end], func(a, b place) int { return versions[a.index()].compare(&versions[b.index()]) })
		}
		start = end
	}
	permute(versions, places)
	return distinct
}

// compare orders candidates by version, and candidates of the same version by tag and digest.
func (c *candidate) compare(d *candidate) int {
	if order := c.version.Compare(&d.version); order != 0 {
		return order
	}
	return version.ComparePins(c.pin(), d.pin())
}

// place is the rank of the version of a candidate, and its index in an unsorted list.
type place uint64

const (
	placeBits = 64 - version.RankBits
	maxPlaces = 1<<placeBits - 1 // the index maxPlaces marks a candidate that was moved
)

func (p place) rank() uint64 { return uint64(p) >> placeBits }
func (p place) index() int   { return int(p & maxPlaces) }

// permute moves the candidate at places[i].index() to index i, for each i. It changes both slices.
func permute(s []candidate, places []place) {
	for start := range places {
		if places[start].index() == maxPlaces {
			continue
		}
		first, at := s[start], start
		for {
			from := places[at].index()
			places[at] |= maxPlaces
			if from == start {
				s[at] = first
				break
			}
			s[at] = s[from]
			at = from
		}
	}
}

func (v *variable) finish(has bool, at version.Pin) {
	v.size = len(v.candidates)
	v.first = v.size
	for i := 1; i < v.size; i++ {
		c := &v.candidates[i]
		if has && c.pin() == at {
			v.installed = i
		}
		if c.version.Usable() {
			v.first = min(v.first, i)
		}
	}
	v.all = fullSet(v.size)
	v.state = v.all
	v.read = newSet(v.size)
}

// knows reports whether a pin names a candidate.
func (v *variable) knows(p version.Pin) bool {
	return named(v.candidates, p)
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
	return c.AcceptsVersion(candidate.pin(), &candidate.version)
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
		if _, named := v.sets[v.candidates[i].version.Tag]; named && in.has(i) &&
			v.sets[v.candidates[first].version.Tag] == nil {
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
