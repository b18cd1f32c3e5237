package provide

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Together refines the rankings of kinds that are required together: the packages that are selected for them can be
// installed beside each other, because no two of them define the same CRD. Defined maps repositories to the names of
// the CRDs that their packages define. The rankings stay in their order, and neither their order nor the order of
// candidates matters.
//
// Among the sets of packages that provide all kinds, the first in the order of candidates is selected; the kinds of all
// packages of a set count. A kind that was not decided is decided if every set has the same package for it, unless
// several publishers have kinds of the group. If there is no set, packages are dropped that define a CRD of a preferred
// package.
func Together(rankings []Ranking, defined map[string][]string) []Ranking {
	t := newTogether(rankings, defined)
	for _, part := range t.parts() {
		if len(part) < 2 {
			continue
		}
		s := t.search(part)
		switch {
		case len(s.sets) > 0:
			t.selectSet(part, s)
		case !t.hasChoice(part):
			t.dropConflicts(part)
		}
	}
	return t.rankings
}

// together is the state of [Together].
type together struct {
	rankings []Ranking
	// domains are the candidates that may be selected for each kind.
	domains [][]Candidate
	// crds are the sorted names of the CRDs that each package defines.
	crds map[string][]string
	// pinned are the packages that were selected before or are present.
	pinned map[string]bool
}

func newTogether(rankings []Ranking, defined map[string][]string) *together {
	t := &together{rankings: slices.Clone(rankings), crds: map[string][]string{}, pinned: map[string]bool{}}
	for _, r := range rankings {
		domain := r.Allowed()
		t.domains = append(t.domains, domain)
		for _, c := range domain {
			if t.crds[c.Repository] == nil {
				t.crds[c.Repository] = slices.Clone(defined[c.Repository])
			}
			t.crds[c.Repository] = append(t.crds[c.Repository], c.CRDs...)
			if crd := r.crdIn(c); crd != "" {
				t.crds[c.Repository] = append(t.crds[c.Repository], crd)
			}
		}
		if r.Decided == Recorded || r.Decided == Present {
			t.pinned[domain[0].Repository] = true
		}
	}
	for repository, names := range t.crds {
		slices.Sort(names)
		t.crds[repository] = slices.Compact(names)
	}
	return t
}

// crdIn returns the name of the CRD of the kind in a candidate, or "" if it is not known. A package that was selected
// before, and that no source knows, defines the same CRD as the other candidates.
func (r Ranking) crdIn(c Candidate) string {
	if c.Plural != "" {
		return c.CRD()
	}
	for _, other := range r.Order {
		if other.Plural != "" {
			return other.CRD()
		}
	}
	return ""
}

// conflict returns the first CRD that two packages define, or "".
func (t *together) conflict(a, b string) string {
	if a == b {
		return ""
	}
	x, y := t.crds[a], t.crds[b]
	for len(x) > 0 && len(y) > 0 {
		switch strings.Compare(x[0], y[0]) {
		case 0:
			return x[0]
		case -1:
			x = x[1:]
		default:
			y = y[1:]
		}
	}
	return ""
}

// parts returns the kinds, as positions, in groups whose selections depend on each other: they have a candidate in
// common, or candidates that define the same CRD. The kinds with the fewest candidates come first.
func (t *together) parts() [][]int {
	same := make([]int, len(t.domains))
	byKey := map[string]int{}
	add := func(i int, key string) (isNew bool) {
		at, ok := byKey[key]
		if !ok {
			byKey[key] = i
			return true
		}
		join(same, same[i], same[at])
		return false
	}
	for i, domain := range t.domains {
		same[i] = i
		for _, c := range domain {
			if !add(i, "package "+c.Repository) {
				continue
			}
			for _, crd := range t.crds[c.Repository] {
				add(i, crd)
			}
		}
	}
	parts := map[int][]int{}
	for i := range same {
		parts[same[i]] = append(parts[same[i]], i)
	}
	var out [][]int
	for i := range same {
		if part := parts[i]; len(part) > 0 {
			slices.SortFunc(part, func(a, b int) int {
				return cmp.Or(
					cmp.Compare(len(t.domains[a]), len(t.domains[b])),
					cmp.Compare(t.rankings[a].Kind.String(), t.rankings[b].Kind.String()),
				)
			})
			out = append(out, part)
		}
	}
	return out
}

// maxSteps limits the search for sets of packages.
const maxSteps = 50_000

// A setSearch finds the sets of packages that provide all kinds of a part without a conflict.
type setSearch struct {
	*together
	part  []int
	facts map[string]Candidate
	sets  [][]string
	steps int
}

// search returns the sets of packages that provide all kinds of a part, best first.
func (t *together) search(part []int) *setSearch {
	s := &setSearch{together: t, part: part, facts: t.facts(part)}
	s.extend(nil, part)
	slices.SortFunc(s.sets, s.compareSets)
	return s
}

// complete reports whether all sets were found.
func (s *setSearch) complete() bool { return s.steps <= maxSteps }

// extend adds the sets that contain the chosen packages and provide further kinds.
func (s *setSearch) extend(chosen []string, kinds []int) {
	for len(kinds) > 0 && s.providedBy(kinds[0], chosen) != nil {
		kinds = kinds[1:]
	}
	if len(kinds) == 0 {
		s.sets = append(s.sets, slices.Sorted(slices.Values(chosen)))
		return
	}
	for _, c := range s.domains[kinds[0]] {
		if s.steps++; !s.complete() {
			return
		}
		if !slices.ContainsFunc(chosen, func(other string) bool { return s.conflict(c.Repository, other) != "" }) {
			s.extend(append(slices.Clip(chosen), c.Repository), kinds[1:])
		}
	}
}

// providedBy returns the candidate for a kind in a set, or nil.
func (t *together) providedBy(kind int, set []string) *Candidate {
	for i, c := range t.domains[kind] {
		if slices.Contains(set, c.Repository) {
			return &t.domains[kind][i]
		}
	}
	return nil
}

// facts returns the facts about each package that hold for all of its kinds in a part.
func (t *together) facts(part []int) map[string]Candidate {
	out := map[string]Candidate{}
	for _, i := range part {
		for _, c := range t.domains[i] {
			if is, ok := out[c.Repository]; ok {
				c.Priority, c.Cost = max(is.Priority, c.Priority), max(is.Cost, c.Cost)
				c.OwnsGroup, c.Verified = is.OwnsGroup && c.OwnsGroup, is.Verified && c.Verified
				c.Deprecated, c.Updated = is.Deprecated || c.Deprecated, min(is.Updated, c.Updated)
			}
			out[c.Repository] = c
		}
	}
	return out
}

// setFacts are the facts by which sets are ordered.
type setFacts struct {
	owned, verified, deprecated bool
	priority, cost              int
	updated                     int64
}

func (s *setSearch) factsOf(set []string) setFacts {
	out := setFacts{owned: true, verified: true}
	for i, repository := range set {
		c := s.facts[repository]
		out.owned, out.verified, out.deprecated = out.owned && c.OwnsGroup, out.verified && c.Verified, out.deprecated ||
			c.Deprecated
		out.priority, out.cost = max(out.priority, c.Priority), out.cost+c.Cost
		if i == 0 || c.Updated < out.updated {
			out.updated = c.Updated
		}
	}
	return out
}

// compareSets orders sets as [Candidate] values are ordered.
func (s *setSearch) compareSets(a, b []string) int {
	x, y := s.factsOf(a), s.factsOf(b)
	return cmp.Or(
		cmp.Compare(x.priority, y.priority),
		-compareBool(x.owned, y.owned),
		-compareBool(x.verified, y.verified),
		cmp.Compare(x.cost, y.cost),
		cmp.Compare(len(a), len(b)),
		compareBool(x.deprecated, y.deprecated),
		-cmp.Compare(x.updated, y.updated),
		slices.Compare(a, b),
	)
}

// selectSet selects the packages of the best set for the kinds of a part.
func (t *together) selectSet(part []int, s *setSearch) {
	best := s.sets[0]
	for _, i := range part {
		r := &t.rankings[i]
		kept := []Candidate{*t.providedBy(i, best)}
		if r.Decided == "" {
			for _, set := range s.sets[1:] {
				if c := t.providedBy(
					i, set,
				); !slices.ContainsFunc(kept, func(k Candidate) bool { return k.Repository == c.Repository }) {
					kept = append(kept, *c)
				}
			}
		}
		if r.Decided == "" && len(kept) == 1 && len(r.Order) > 1 && !kept[0].Downloaded && !kept[0].Removed && s.complete() &&
			(len(r.publishers) == 1 || t.pinned[kept[0].Repository]) {
			r.Decided = OnlyTogether
		}
		t.keep(r, kept, best)
	}
}

// keep drops the candidates of a ranking that are not kept, because of the packages that are selected instead.
func (t *together) keep(r *Ranking, kept []Candidate, selected []string) {
	r.Dropped = slices.Clone(r.Dropped)
	for _, c := range r.Order {
		if slices.ContainsFunc(kept, func(k Candidate) bool { return k.Repository == c.Repository }) {
			continue
		}
		why := "another package is preferred"
		for _, other := range selected {
			if crd := t.conflict(c.Repository, other); crd != "" {
				why = fmt.Sprintf("it also defines %s, which %s provides", crd, other)
				break
			}
		}
		r.Dropped = append(r.Dropped, Dropped{c, why})
	}
	slices.SortStableFunc(r.Dropped, func(a, b Dropped) int { return a.compare(b.Candidate) })
	r.Order, r.Alternatives, r.joint = kept, 0, true
	if len(kept) == 0 {
		r.Decided, r.Conflicting = "", true
	}
}

// hasChoice reports whether a user must select one of several packages for a kind of a part.
func (t *together) hasChoice(part []int) bool {
	return slices.ContainsFunc(
		part, func(i int) bool { return t.rankings[i].Decided == "" && len(t.rankings[i].Order) > 1 },
	)
}

// dropConflicts drops the candidates of a part that define a CRD of a preferred one.
func (t *together) dropConflicts(part []int) {
	var all []Candidate
	for _, c := range t.facts(part) {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b Candidate) int {
		return cmp.Or(-compareBool(t.pinned[a.Repository], t.pinned[b.Repository]), a.compare(b))
	})
	var accepted []string
	for _, c := range all {
		if t.pinned[c.Repository] ||
			!slices.ContainsFunc(accepted, func(other string) bool { return t.conflict(c.Repository, other) != "" }) {
			accepted = append(accepted, c.Repository)
		}
	}
	for _, i := range part {
		kept := slices.DeleteFunc(
			slices.Clone(t.domains[i]), func(c Candidate) bool { return !slices.Contains(accepted, c.Repository) },
		)
		t.keep(&t.rankings[i], kept, accepted)
	}
}
