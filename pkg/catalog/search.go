package catalog

import (
	"cmp"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
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
	texts := func() ([]Text, error) { return c.Texts, nil }
	hits, _ := searchInSteps(q, limit, c.Packages, texts, func(s *searcher) error { // No step of it fails.
		for i := range c.Kinds {
			s.kind(&c.Kinds[i])
		}
		return nil
	})
	return hits
}

// searchInSteps searches names, then names and texts, then similar names, until there are hits. A query for a field begins with
// the second step. Feed passes the kinds to the searcher.
func searchInSteps(q Query, limit int, packages []Package, texts func() ([]Text, error), feed func(*searcher) error) ([]Hit, error) {
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
		s := newSearcher(q, packages, with, step.fuzzy)
		s.limit = limit
		if err := feed(s); err != nil {
			return nil, err
		}
		if hits := s.hits(limit); len(hits) > 0 || len(q.Words) == 0 {
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
	found    []Hit
	// limit is the number of hits that the caller wants; 0 for all.
	limit int
	// fuzzy accepts similar names.
	fuzzy bool
	// named reports whether a kind was found whose own name is Query.Kind.
	named bool
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

func newSearcher(q Query, packages []Package, texts []Text, fuzzy bool) *searcher {
	s := &searcher{q: q, fuzzy: fuzzy, packages: make(map[string]*candidate, len(packages)), texts: make(map[string]*Text, len(texts))}
	for i := range texts {
		s.texts[texts[i].Repository] = &texts[i]
	}
	for i := range packages {
		p := &packages[i]
		c := &candidate{Package: p, static: staticRank(p)}
		for _, w := range q.Words {
			c.words = append(c.words, matchPackage(p, s.texts[p.Repository], w, fuzzy))
		}
		s.packages[p.Repository] = c
	}
	return s
}

// staticRank orders packages that match equally: deprecated ones last, before them those without a release, then verified
// publishers and dependents.
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
	fields := s.fields(k)
	if s.q.Field != "" && len(fields) == 0 {
		return
	}
	p.kinds++
	best, why, ok := s.scoreKind(k, p)
	if !ok || !s.precedes(k) {
		return
	}
	s.found = append(s.found, Hit{Kind: k, Package: p.Package, Score: best, Why: why, Fields: fields})
	if s.limit > 0 && len(s.found) >= max(4*s.limit, manyHits) {
		slices.SortFunc(s.found, s.compare)
		clear(s.found[s.limit:])
		s.found = s.found[:s.limit]
	}
}

// precedes reports whether a kind that matches is a hit: a plural, singular or short name selects kinds only if no match has the name itself. It
// drops the former hits when it sees the first kind that has the name itself.
func (s *searcher) precedes(k *Kind) bool {
	name, _ := splitKind(s.q.Kind)
	if name == "" || strings.EqualFold(k.Kind, name) == s.named {
		return true
	}
	if s.named {
		return false
	}
	s.named = true
	clear(s.found)
	s.found = s.found[:0]
	return true
}

// manyHits is the number of hits from which those beyond the limit are dropped during a search.
const manyHits = 4096

// textFilter selects the lines of kinds that can match a query. It is faster than reading the lines.
type textFilter struct {
	// frame reports whether one of several lines can match.
	frame func(text string) bool
	line  func(line string) bool
}

// filter returns the filter of the query. The lines refer to the packages by their positions in base.
func (s *searcher) filter(base []string) textFilter {
	all := func(string) bool { return true }
	if s.fuzzy && len(s.q.Words) == 1 {
		return textFilter{all, similarLines(s.q.Words[0])}
	}
	if s.fuzzy || len(s.q.Words) == 0 || len(s.texts) > 0 || s.q.Provides != "" {
		return textFilter{all, all}
	}
	stems := make([]string, len(s.q.Words))
	for i, w := range s.q.Words {
		if stems[i] = stem(w); strings.ContainsAny(w, "./") {
			stems[i] = "" // Every line can match a qualified name.
		}
	}
	// A word matches a line by its own text or by its package, and at least one word by its own text.
	frame := func(text string) bool {
		return slices.ContainsFunc(stems, func(w string) bool { return containsFold(text, w) })
	}
	return textFilter{frame, func(line string) bool {
		own, position := false, -1
		for i, w := range stems {
			if containsFold(line, w) {
				own = true
				continue
			}
			if position < 0 {
				position = packageOf(line)
			}
			if position < 0 || position >= len(base) {
				return true // Reading the line reports the error.
			}
			if p := s.packages[base[position]]; p == nil || p.words[i].score == 0 {
				return false
			}
		}
		return own
	}}
}

// similarLines returns a function that reports whether the kind in a line can be similar to a lower-case word, which no former step has
// found: apart from typing errors, the name, a part of it, or the plural has the length and the bytes of the word.
func similarLines(word string) func(line string) bool {
	most, wanted := mostErrors(len(word)), bytesIn(word)
	fits := func(length int, has uint64) bool {
		return length-len(word) <= most && len(word)-length <= most && bits.OnesCount64(wanted&^has) <= most
	}
	return func(line string) bool {
		name, rest, _ := strings.Cut(line, "\t")
		_, rest, _ = strings.Cut(rest, "\t") // the group
		plural, _, _ := strings.Cut(rest, "\t")
		has := bytesIn(name) | bytesIn("s")
		switch {
		case most == 0:
			return false
		case !isASCII(name):
			return true // Its length changes with its case.
		case fits(len(plural), bytesIn(plural)), fits(len(name), has), fits(len(name)+len("s"), has): // An empty plural is that of the rule.
			return true
		case bits.OnesCount64(wanted&^has) > most:
			return false
		}
		for part := range camelSeq(name) {
			if fits(len(part), bytesIn(part)) {
				return true
			}
		}
		return false
	}
}

// isASCII reports whether a name has only ASCII characters.
func isASCII(name string) bool {
	var all byte
	for i := range len(name) {
		all |= name[i]
	}
	return all < utf8.RuneSelf
}

// packageOf returns the position of the package in the line of a kind, and -1 if there is none.
func packageOf(line string) int {
	end := strings.LastIndexByte(line, '\t')
	if end < 0 {
		return -1
	}
	start := strings.LastIndexByte(line[:end], '\t')
	position, err := strconv.Atoi(line[start+1 : end])
	if err != nil {
		return -1
	}
	return position
}

// stem returns the part of a word that its singular and its plural have in common.
func stem(w string) string {
	w = strings.TrimSuffix(strings.TrimSuffix(w, "s"), "e")
	return strings.TrimSuffix(w, "i")
}

// containsFold reports whether a text contains a lower-case word in any case.
func containsFold(s, word string) bool {
	if word == "" {
		return true
	}
	lower, upper := word[0], word[0]
	if lower >= 'a' && lower <= 'z' {
		upper -= 'a' - 'A'
	}
	for i := 0; i+len(word) <= len(s); i++ {
		if c := s[i]; (c == lower || c == upper) && equalFold(s[i:i+len(word)], word) {
			return true
		}
	}
	return false
}

// equalFold compares a text with a lower-case word of the same length, ignoring the case of ASCII letters.
func equalFold(s, word string) bool {
	for i := range len(word) {
		c := s[i]
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != word[i] {
			return false
		}
	}
	return true
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
	return cmp.Or(cmp.Compare(a.Kind.Group, b.Kind.Group), compareKindRows(a.Kind, b.Kind))
}

func (s *searcher) static(h Hit) int { return s.packages[h.Package.Repository].static }
