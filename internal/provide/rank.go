package provide

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// A Request asks for the provider of a kind.
type Request struct {
	Kind dependency.KindRef
	// Recorded is the repository that was selected for the kind before; empty if there is none.
	Recorded string
	// RecordedKinds maps kinds to the repositories that were selected for them before, for [Finder.RankTogether].
	RecordedKinds map[dependency.KindRef]string
	// Present lists repositories of packages that are installed, locked, or required by name.
	Present map[string]bool
	// locations are those of Present, which are the same for all spellings.
	locations map[string]bool
	// Holders maps the names of CRDs to the packages that hold them, for messages.
	Holders map[string]string
	// GroupPublishers identify the publishers of all kinds of the API group; see [Publishers].
	GroupPublishers []string
}

// Reason is the reason for a decision.
type Reason string

// Reasons for which a package is selected without asking the user.
const (
	// Recorded means that the package was selected before.
	Recorded Reason = "it was selected before"
	// Present means that the package is installed, locked or required by name.
	Present Reason = "it is installed or required already"
	// OwnsGroup means that the publisher of the package owns the API group.
	OwnsGroup Reason = "its publisher owns the API group"
	// OnlyProvider means that no other package, and no other publisher, provides the kind.
	OnlyProvider Reason = "it is the only package that provides the kind"
	// OnlyTogether means that no other package that provides the kind can be installed beside the packages for other
	// kinds.
	OnlyTogether Reason = "it is the only package that can be installed with the packages for the other kinds"
)

// A Dropped candidate cannot be selected.
type Dropped struct {
	Candidate
	Why string
}

// A Ranking lists the candidates for a kind.
type Ranking struct {
	Kind dependency.KindRef
	// Order lists the candidates that can be selected, best first.
	Order []Candidate
	// Dropped lists the other candidates with the reasons.
	Dropped []Dropped
	// Decided is the reason why the first candidate is selected without asking the user; empty if the user must decide.
	Decided Reason
	// Alternatives is the number of further candidates that may be selected for the same reason, such as another package
	// of the owner of the API group.
	Alternatives int
	// Conflicting reports that the packages that provide the kind define CRDs of packages that are selected for other
	// kinds.
	Conflicting bool

	// publishers are the publishers of the candidates and of the group.
	publishers []string
	// joint reports that the order depends on other kinds; see [Together].
	joint bool
}

// Rank orders the candidates for a kind, and decides whether the first one is selected without asking the user. The
// candidates can come in any order, and from several sources.
//
// A package that was selected before stays selected. A package that is present takes precedence. Otherwise the first
// candidate is selected only if its publisher owns the API group, or if it is the only one, and all known kinds of the
// group have the same publisher; content that was only downloaded is not selected. Candidates that were dropped because
// of a conflict count as alternatives: a conflict must not turn the package of another publisher into the only
// candidate.
func Rank(q Request, candidates []Candidate) Ranking {
	q = q.located()
	out := Ranking{Kind: q.Kind}
	var usable []group
	publishers := slices.Clone(q.GroupPublishers)
	relevant := matching(q.Kind, candidates)
	if len(relevant) > maxCandidates {
		relevant = slices.SortedFunc(slices.Values(relevant), Candidate.compare)[:maxCandidates]
	}
	for _, g := range mergeNames(mergeSources(relevant)) {
		first := g.preferred(q)
		why, final := q.refuse(first)
		if !final {
			publishers = append(publishers, g.publishers()...)
		}
		for _, c := range g {
			if c.Repository != first.Repository && why == "" {
				out.Dropped = append(out.Dropped, Dropped{c, "it is " + first.Repository + " under another name"})
			}
		}
		if why != "" {
			out.Dropped = append(out.Dropped, Dropped{first, why})
			continue
		}
		usable = append(usable, g.with(first))
	}
	usable = q.dropRemoved(usable, &out)
	slices.SortStableFunc(usable, func(a, b group) int {
		return cmp.Or(-compareBool(q.isPresent(a), q.isPresent(b)), a[0].compare(b[0]))
	})
	for _, g := range usable {
		out.Order = append(out.Order, g[0])
	}
	slices.SortStableFunc(out.Dropped, func(a, b Dropped) int { return a.compare(b.Candidate) })
	slices.Sort(publishers)
	out.publishers = slices.Compact(publishers)
	q.decide(&out, usable, out.publishers)
	return out
}

// dropRemoved drops the packages that do not define the kind any more if another package of the publisher does: the
// kind has moved to it.
func (q Request) dropRemoved(usable []group, out *Ranking) []group {
	return slices.DeleteFunc(slices.Clone(usable), func(g group) bool {
		if !g[0].Removed || q.isPresent(g) || q.isRecorded(g[0]) {
			return false
		}
		at := slices.IndexFunc(usable, func(other group) bool {
			return len(other) > 0 && !other[0].Removed && other[0].publisher() == g[0].publisher()
		})
		if at < 0 {
			return false
		}
		out.Dropped = append(out.Dropped, Dropped{
			g[0], "its newest version does not define the kind, and " + usable[at][0].Repository + " of the same publisher does",
		})
		return true
	})
}

// maxCandidates limits the candidates for one kind. Names are compared in pairs.
const maxCandidates = 200

// matching returns the candidates whose names the kind matches. The name of a kind takes precedence over the names of a
// resource.
func matching(kind dependency.KindRef, all []Candidate) []Candidate {
	var out []Candidate
	exact := false
	for _, c := range all {
		if kind.Matches(c.Group, c.Kind, c.Plural, c.Singular) {
			out = append(out, c)
			exact = exact || c.Kind == kind.Name
		}
	}
	return slices.DeleteFunc(out, func(c Candidate) bool { return exact && c.Kind != kind.Name })
}

// with returns the group with one of its names first.
func (g group) with(first Candidate) group {
	rest := slices.DeleteFunc(slices.Clone(g), func(c Candidate) bool { return c.Repository == first.Repository })
	return append(group{first}, rest...)
}

// preferred returns the name of a package that is recorded or present, otherwise the first one.
func (g group) preferred(q Request) Candidate {
	for _, c := range g {
		if q.isRecorded(c) {
			return c
		}
	}
	for _, c := range g {
		if q.has(c) {
			return c
		}
	}
	return g[0]
}

func (q Request) isPresent(g group) bool {
	return slices.ContainsFunc(g, q.has)
}

// has reports whether the package of a candidate is present, under any spelling of its repository.
func (q Request) has(c Candidate) bool {
	return q.Present[c.Repository] || q.locations[oci.RepositoryLocation(c.Repository)]
}

// isRecorded reports whether a candidate was selected before.
func (q Request) isRecorded(c Candidate) bool {
	return q.Recorded != "" && oci.SameRepository(c.Repository, q.Recorded)
}

// located returns the request with the locations of the packages that are present.
func (q Request) located() Request {
	q.locations = make(map[string]bool, len(q.Present))
	for repository, present := range q.Present {
		if present {
			q.locations[oci.RepositoryLocation(repository)] = true
		}
	}
	return q
}

// refuse returns the reason why a candidate cannot be selected, or "". Final reports that it does not provide the kind
// at all, so that it does not count as an alternative.
func (q Request) refuse(c Candidate) (why string, final bool) {
	switch {
	case c.Role == Input:
		return "it is a Function that has the kind as its input, which is not a resource of the API server", true
	case c.Role == Elsewhere:
		return "it uses the kind, but does not define it", true
	case q.has(c) || q.isRecorded(c):
		return "", false
	case c.Version == "":
		return cmp.Or(c.Unusable, "it has no version that can be installed"), true
	case q.Kind.Version != "" && !slices.Contains(c.Served, q.Kind.Version):
		return fmt.Sprintf("its version %s serves %s, not %s", c.Version, strings.Join(c.Served, " and "), q.Kind.Version),
			true
	}
	for _, crd := range c.CRDs {
		if holder, held := q.Holders[crd]; held && !oci.SameRepository(holder, c.Repository) {
			return fmt.Sprintf("it also defines %s, which %s holds", crd, holder), false
		}
	}
	return "", false
}

// decide sets the reason for the first candidate, if it is selected without asking the user.
func (q Request) decide(out *Ranking, usable []group, publishers []string) {
	if q.Recorded != "" {
		at := slices.IndexFunc(out.Order, q.isRecorded)
		first := Candidate{Repository: q.Recorded, Kind: q.Kind.Name, Group: q.Kind.Group}
		if at >= 0 {
			first = out.Order[at]
			out.Order = slices.Delete(out.Order, at, at+1)
		}
		out.Order = slices.Insert(out.Order, 0, first)
		out.Decided = Recorded
		return
	}
	if len(usable) == 0 {
		return
	}
	first := usable[0][0]
	switch {
	case q.isPresent(usable[0]) && (len(usable) == 1 || !q.isPresent(usable[1])):
		out.Decided = Present
	case q.isPresent(usable[0]):
		// Two packages that are required by name define the same CRD. Their conflict is reported where it occurs.
		out.Decided = Present
	case first.OwnsGroup && !first.Removed:
		out.Decided = OwnsGroup
		for _, g := range usable[1:] {
			if g[0].OwnsGroup && g[0].publisher() == first.publisher() {
				out.Alternatives++
			}
		}
	case len(usable) == 1 && len(publishers) == 1 && !first.Downloaded:
		out.Decided = OnlyProvider
	}
}

// Publishers returns the publishers of candidates for Request.GroupPublishers. Candidates that neither define their
// kinds nor did in another version do not count, and neither do copies of a package whose publisher is known.
func Publishers(all []Candidate) []string {
	defining := mergeSources(slices.DeleteFunc(
		slices.Clone(all), func(c Candidate) bool { return c.Role != Defines && c.Role != Former },
	))
	var out []string
	for _, c := range defining[min(len(defining), maxCandidates):] {
		out = append(out, c.publisher())
	}
	for _, g := range mergeNames(defining[:min(len(defining), maxCandidates)]) {
		out = append(out, g.publishers()...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Allowed returns the candidates among which a solver may select: the first one and its alternatives if the ranking is
// decided, otherwise all.
func (r Ranking) Allowed() []Candidate {
	if r.Decided == "" || r.joint {
		return r.Order
	}
	out := r.Order[:1:1]
	for _, c := range r.Order[1:] {
		if r.Decided == OwnsGroup && c.OwnsGroup && c.publisher() == out[0].publisher() {
			out = append(out, c)
		}
	}
	return out
}

// Canonical returns the kind under its own name instead of the name of the resource.
func (r Ranking) Canonical() dependency.KindRef {
	for _, c := range r.Order {
		if c.Kind != "" && !strings.EqualFold(c.Kind, dependency.AllKinds) {
			return c.KindRef(r.Kind.Version)
		}
	}
	return r.Kind
}
