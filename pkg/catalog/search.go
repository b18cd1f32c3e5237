package catalog

import (
	"cmp"
	"slices"
	"strings"
)

// A Hit is a result of a search: a kind with its package, or a package.
type Hit struct {
	// Kind is nil for a package.
	Kind    *Kind
	Package *Package
	// Score orders hits, highest first.
	Score int
	// Why names the match that determined the score: kind, prefix, part, group, package, text or similar.
	Why string
	// Fields are the fields that match Query.Field.
	Fields []string
}

// Search returns the kinds and packages that match a query, best first, at most limit; a limit of 0 means all. The
// order is total: exact kind, prefix, part of the kind, group, package, text, similar name; then the static rank of the
// package. A [SearchIndex] has the same hits in less time.
func (c *Catalog) Search(q Query, limit int) []Hit {
	texts := func() ([]Text, error) { return c.Texts, nil }
	hits, _ := searchInSteps(q, limit, pointers(c.Packages), texts, func(s *searcher) error { // No step of it fails.
		for i := range c.Kinds {
			s.kind(&c.Kinds[i])
		}
		return nil
	})
	return hits
}

// pointers returns pointers to the elements of a list.
func pointers[T any](list []T) []*T {
	out := make([]*T, len(list))
	for i := range list {
		out[i] = &list[i]
	}
	return out
}

// searchInSteps searches names, then names and texts, then similar names, until there are hits. A query for a field
// begins with the second step. Feed passes the kinds to the searcher.
func searchInSteps(
	q Query, limit int, packages []*Package, texts func() ([]Text, error), feed func(*searcher) error,
) ([]Hit, error) {
	for _, step := range []struct{ texts, fuzzy bool }{{false, false}, {true, false}, {true, true}} {
		if q.Field != "" && !step.texts {
			continue
		}
		var with []Text
		if step.texts {
			var err error
			if with, err = texts(); err != nil {
				return nil, err
			}
		}
		if step.texts && !step.fuzzy && q.Field == "" && len(with) == 0 {
			continue // It has the result of the first step.
		}
		s := newSearcher(q, limit, packages, with, step.fuzzy)
		if err := feed(s); err != nil {
			return nil, err
		}
		if hits := s.hits(); len(hits) > 0 || len(q.Words) == 0 {
			return hits, nil
		}
	}
	return nil, nil
}

// searcher collects hits.
type searcher struct {
	q        Query
	packages map[string]*candidate
	texts    map[string]*Text
	found    []scored
	// limit is the number of hits that the caller wants; 0 for all.
	limit int
	// worst is the last hit within the limit among those found so far; without a package before there are as many.
	worst scored
	// fuzzy accepts similar names.
	fuzzy bool
	// name is the name in Query.Kind, and named reports whether a kind was found whose own name it is.
	name  string
	named bool
	// own are the scores of the words of the query in the names of the kind that is searched.
	own []int
}

// scored is a hit with the static rank of its package.
type scored struct {
	Hit
	static int
}

// candidate is a package with what a search needs of it.
type candidate struct {
	*Package
	// words are the scores of each word of the query in the texts of the package.
	words  []int
	static int
	// selected reports whether a kind of the package matches the filters.
	selected bool
}

func newSearcher(q Query, limit int, packages []*Package, texts []Text, fuzzy bool) *searcher {
	s := &searcher{q: q, limit: limit, fuzzy: fuzzy}
	s.packages, s.texts = make(map[string]*candidate, len(packages)), make(map[string]*Text, len(texts))
	s.name, _ = splitKind(q.Kind)
	s.own = make([]int, len(q.Words))
	for i := range texts {
		s.texts[texts[i].Repository] = &texts[i]
	}
	words := make([]int, 0, len(packages)*len(q.Words))
	for _, p := range packages {
		first := len(words)
		for _, w := range q.Words {
			words = append(words, matchPackage(p, s.texts[p.Repository], w, fuzzy))
		}
		s.packages[p.Repository] = &candidate{Package: p, static: staticRank(p), words: words[first:]}
	}
	return s
}

// staticRank orders packages that match equally: deprecated ones last, before them those without a release, then
// verified publishers and dependents.
func staticRank(p *Package) int {
	rank := min(p.Rank, 99)
	if p.Verified != "" {
		rank += 100
	}
	if p.Released() {
		rank += 500
	}
	if !p.Deprecated {
		rank += 1000
	}
	return rank
}

// kind adds a kind if it matches.
func (s *searcher) kind(k *Kind) {
	p := s.packages[k.Repository]
	if p == nil || !s.q.matchesFilters(k, p.Package) {
		return
	}
	p.selected = true
	names := namesOf(k)
	for i, w := range s.q.Words {
		s.own[i] = names.match(w, s.fuzzy)
	}
	text := s.textOf(k)
	if score, why, ok := s.score(p, text); ok {
		s.add(k, p, score+names.coverage(s.q.Words), why, text)
	}
}

// add adds a kind that matches apart from its fields.
func (s *searcher) add(k *Kind, p *candidate, score int, why string, text *KindText) {
	// A plural, singular or short name selects kinds only if no match has the name itself.
	precedes := s.name != "" && !s.named && strings.EqualFold(k.Kind, s.name)
	hit := scored{Hit{Kind: k, Package: p.Package, Score: score, Why: why}, p.static}
	if !precedes &&
		(s.named && !strings.EqualFold(k.Kind, s.name) || s.worst.Package != nil && compareHits(hit, s.worst) > 0) {
		return
	}
	if s.q.Field != "" {
		if text != nil {
			hit.Fields = text.fields(s.q.Field)
		}
		if len(hit.Fields) == 0 {
			return
		}
	}
	if precedes {
		s.named, s.found, s.worst = true, nil, scored{}
	}
	s.found = append(s.found, hit)
	if s.limit > 0 && len(s.found) >= max(4*s.limit, manyHits) {
		s.cut()
	}
}

// manyHits is the number of hits from which those beyond the limit are dropped during a search.
const manyHits = 256

// cut sorts the hits and drops those beyond the limit.
func (s *searcher) cut() {
	slices.SortFunc(s.found, compareHits)
	if s.limit > 0 && len(s.found) >= s.limit {
		clear(s.found[s.limit:])
		s.found = s.found[:s.limit]
		s.worst = s.found[s.limit-1]
	}
}

// score returns the sum of the scores of all words in a kind, and what the best word matched. It returns false if a
// word matches nothing, or if no word matches the kind itself.
func (s *searcher) score(p *candidate, text *KindText) (score int, why string, ok bool) {
	if len(s.q.Words) == 0 {
		return scoreExact, "kind", true
	}
	best, isOwn := 0, false
	for i, w := range s.q.Words {
		m := s.own[i]
		if m < scoreText && text != nil && text.contains(w) {
			m = scoreText
		}
		isOwn = isOwn || m > 0
		viaPackage := p.words[i]/2 > m
		if viaPackage {
			m = p.words[i] / 2
		}
		switch {
		case m == 0:
			return 0, "", false
		case m <= best:
		case viaPackage:
			best, why = m, "package"
		default:
			best, why = m, whyOfKind(m)
		}
		score += m
	}
	return score, why, isOwn
}

func (s *searcher) textOf(k *Kind) *KindText {
	t := s.texts[k.Repository]
	if t == nil {
		return nil
	}
	return t.kind(k.Group, k.Kind)
}

// scorePackage returns the sum of the scores of all words, or 0 if the package does not match.
func (s *searcher) scorePackage(p *candidate) int {
	filtered := s.q.Kind != "" || s.q.Group != "" || s.q.Field != ""
	if filtered || s.q.Type != "" && !strings.EqualFold(p.Type, s.q.Type) || s.q.Provides != "" && !p.selected {
		return 0
	}
	if len(s.q.Words) == 0 {
		return scoreExact
	}
	score := 0
	for _, m := range p.words {
		if m == 0 {
			return 0
		}
		score += m
	}
	return score
}

// hits returns the results in their order.
func (s *searcher) hits() []Hit {
	for _, p := range s.packages {
		if score := s.scorePackage(p); score > 0 {
			why := "package"
			if len(p.words) > 0 {
				why = whyOfPackage(slices.Max(p.words))
			}
			s.found = append(s.found, scored{Hit{Package: p.Package, Score: score, Why: why}, p.static})
		}
	}
	s.cut()
	var hits []Hit
	for i := range s.found {
		hits = append(hits, s.found[i].Hit)
	}
	return hits
}

// isBelow reports whether no hit with a score is among those within the limit.
func (s *searcher) isBelow(score int) bool {
	return s.worst.Package != nil && score < s.worst.Score && (s.name == "" || s.named)
}

// compareHits orders hits, the best first.
func compareHits(a, b scored) int {
	if c := cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.static, a.static)); c != 0 {
		return c
	}
	switch {
	case a.Kind == nil && b.Kind == nil:
		return cmp.Compare(a.Package.Repository, b.Package.Repository)
	case a.Kind == nil:
		return -1
	case b.Kind == nil:
		return 1
	}
	if c := cmp.Compare(len(a.Kind.Kind), len(b.Kind.Kind)); c != 0 {
		return c
	}
	if c := cmp.Compare(a.Kind.Kind, b.Kind.Kind); c != 0 {
		return c
	}
	return compareKindRows(a.Kind, b.Kind)
}
