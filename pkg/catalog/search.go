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

// Search returns the kinds and packages that match a query, best first, at most limit; a limit of 0 means all. The order is
// total: exact kind, prefix, part of the kind, group, package, text, similar name; then the static rank of the package.
func (c *Catalog) Search(q Query, limit int) []Hit {
	s := newSearcher(q, c.Packages, c.Texts)
	for i := range c.Kinds {
		s.kind(&c.Kinds[i])
	}
	if s.similar() {
		for i := range c.Kinds {
			s.kind(&c.Kinds[i])
		}
	}
	return s.hits(limit)
}

// searcher collects hits.
type searcher struct {
	q        Query
	packages map[string]*candidate
	texts    map[string]*Text
	found    []Hit
	// fuzzy accepts similar names.
	fuzzy bool
}

// candidate is a package with what a search needs of it.
type candidate struct {
	*Package
	// words are the scores of each word of the query in the texts of the package.
	words  []match
	static int
	// kinds is the number of kinds of the package that match the filters.
	kinds int
}

func newSearcher(q Query, packages []Package, texts []Text) *searcher {
	s := &searcher{q: q, packages: make(map[string]*candidate, len(packages)), texts: make(map[string]*Text, len(texts))}
	for i := range texts {
		s.texts[texts[i].Repository] = &texts[i]
	}
	for i := range packages {
		p := &packages[i]
		c := &candidate{Package: p, static: staticRank(p)}
		for _, w := range q.Words {
			c.words = append(c.words, matchPackage(p, s.texts[p.Repository], w, false))
		}
		s.packages[p.Repository] = c
	}
	return s
}

// staticRank orders packages that match equally: deprecated ones last, then dependents, verified publishers.
func staticRank(p *Package) int {
	rank := min(p.Rank, 99)
	if p.Verified != "" {
		rank += 100
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
	fields := s.fields(k)
	if s.q.Field != "" && len(fields) == 0 {
		return
	}
	p.kinds++
	best, why, ok := s.scoreKind(k, p)
	if !ok {
		return
	}
	s.found = append(s.found, Hit{Kind: k, Package: p.Package, Score: best, Why: why, Fields: fields})
}

// scoreKind returns the sum of the scores of all words, and what the best word matched. It returns false if a word matches
// nothing, or if no word matches the kind itself.
func (s *searcher) scoreKind(k *Kind, p *candidate) (score int, why string, ok bool) {
	if len(s.q.Words) == 0 {
		return scoreExact, "kind", true
	}
	own := false
	var best match
	names := namesOf(k)
	for i, w := range s.q.Words {
		m := names.match(w, s.fuzzy)
		if t := s.textOf(k); m.score < scoreText && t != nil && t.contains(w) {
			m = match{scoreText, "text"}
		}
		own = own || m.score > 0
		if p.words[i].score/2 > m.score {
			m = match{p.words[i].score / 2, "package"}
		}
		if m.score == 0 {
			return 0, "", false
		}
		score += m.score
		if m.score > best.score {
			best = m
		}
	}
	if !own {
		return 0, "", false
	}
	return score + names.coverage(s.q.Words), best.why, true
}

func (s *searcher) textOf(k *Kind) *KindText {
	t := s.texts[k.Repository]
	if t == nil {
		return nil
	}
	return t.kind(k.Group, k.Kind)
}

// fields returns the fields of the kind that begin with Query.Field.
func (s *searcher) fields(k *Kind) []string {
	if s.q.Field == "" {
		return nil
	}
	t := s.textOf(k)
	if t == nil {
		return nil
	}
	return t.fields(s.q.Field)
}

// similar reports whether the search has to be repeated with similar names, because nothing was found.
func (s *searcher) similar() bool {
	if len(s.found) > 0 || len(s.q.Words) == 0 {
		return false
	}
	for _, p := range s.packages {
		if s.scorePackage(p) > 0 {
			return false
		}
	}
	s.fuzzy = true
	for _, p := range s.packages {
		for i, w := range s.q.Words {
			p.words[i] = matchPackage(p.Package, s.texts[p.Repository], w, true)
		}
		p.kinds = 0
	}
	return true
}

// scorePackage returns the sum of the scores of all words, or 0 if the package does not match.
func (s *searcher) scorePackage(p *candidate) int {
	filtered := s.q.Kind != "" || s.q.Group != "" || s.q.Field != ""
	if filtered || s.q.Type != "" && !strings.EqualFold(p.Type, s.q.Type) || s.q.Provides != "" && p.kinds == 0 {
		return 0
	}
	if len(s.q.Words) == 0 {
		return scoreExact
	}
	score := 0
	for _, m := range p.words {
		if m.score == 0 {
			return 0
		}
		score += m.score
	}
	return score
}

// hits returns the results in their order.
func (s *searcher) hits(limit int) []Hit {
	for _, p := range s.packages {
		if score := s.scorePackage(p); score > 0 {
			s.found = append(s.found, Hit{Package: p.Package, Score: score, Why: bestOf(p.words).why})
		}
	}
	slices.SortFunc(s.found, s.compare)
	if limit > 0 && len(s.found) > limit {
		return s.found[:limit:limit]
	}
	return s.found
}

func bestOf(all []match) match {
	best := match{why: "package"}
	for _, m := range all {
		if m.score > best.score {
			best = m
		}
	}
	return best
}

func (s *searcher) compare(a, b Hit) int {
	name := func(h Hit) string {
		if h.Kind == nil {
			return ""
		}
		return h.Kind.Kind
	}
	c := cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(s.static(b), s.static(a)), cmp.Compare(len(name(a)), len(name(b))), cmp.Compare(name(a), name(b)))
	if c != 0 || a.Kind == nil || b.Kind == nil {
		return cmp.Or(c, cmp.Compare(a.Package.Repository, b.Package.Repository))
	}
	return cmp.Or(cmp.Compare(a.Kind.Group, b.Kind.Group), compareKinds(*a.Kind, *b.Kind))
}

func (s *searcher) static(h Hit) int { return s.packages[h.Package.Repository].static }
