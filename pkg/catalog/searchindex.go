package catalog

import (
	"math/bits"
	"slices"
	"sort"
	"strings"
)

// A SearchIndex answers many searches in a catalog. It has the names and the groups of all kinds once, so a search
// compares its words with each of them once, and adds their scores for every kind. It takes about 50 bytes for each
// kind. It is safe for concurrent use.
type SearchIndex struct {
	catalog *Catalog
	// rows are those of the kinds of the catalog. The kinds from first of a name to that of the next one have the name.
	rows  []searchRow
	first []int32
	// texts are the texts of the kinds, nil for a kind without one; it is empty if no package has texts.
	texts []*KindText
	// names are the different names of kinds, each with its line, and the set of the bytes in it.
	names     []kindNames
	nameLines searchLines
	nameBytes []uint64
	// groups are the different API groups of the kinds.
	groups     []string
	groupLines searchLines
}

// searchRow has the positions of the group and the package of a kind; no package is -1.
type searchRow struct{ group, pack int32 }

// NewSearchIndex returns the index of a catalog, which nothing may change any more.
func NewSearchIndex(c *Catalog) *SearchIndex {
	x := &SearchIndex{catalog: c, rows: make([]searchRow, len(c.Kinds)), texts: textsOf(c)}
	packages, groups := make(map[string]int32, len(c.Packages)), map[string]int32{}
	for i := range c.Packages {
		packages[c.Packages[i].Repository] = int32(i) //nolint:gosec // An index has fewer packages.
	}
	var nameLines, groupLines lineBuilder
	for i := range c.Kinds {
		k := &c.Kinds[i]
		group, known := groups[k.Group]
		if !known {
			group = int32(len(x.groups)) //nolint:gosec // An index has fewer kinds.
			groups[k.Group] = group
			x.groups = append(x.groups, k.Group)
			groupLines.add(k.Group)
		}
		pack, known := packages[k.Repository]
		if !known {
			pack = -1
		}
		// Kinds with the same name are neighbors.
		if last := len(x.names) - 1; last < 0 || !x.names[last].kind.hasNamesOf(k) {
			x.names = append(x.names, namesOf(k))
			x.first = append(x.first, int32(i)) //nolint:gosec // An index has fewer kinds.
			x.nameBytes = append(x.nameBytes, bytesIn(k.Kind)|bytesIn(k.Plural))
			nameLines.add(append([]string{k.Kind, k.Plural, k.Singular}, k.ShortNames...)...)
		}
		x.rows[i] = searchRow{group, pack}
	}
	x.first = append(x.first, int32(len(c.Kinds))) //nolint:gosec // An index has fewer kinds.
	x.names, x.first, x.nameBytes = slices.Clip(x.names), slices.Clip(x.first), slices.Clip(x.nameBytes)
	x.nameLines, x.groupLines = nameLines.finish(), groupLines.finish()
	for i := range x.names {
		x.names[i].lower = x.nameLines.at(i)[:len(x.names[i].lower)]
	}
	return x
}

// textsOf returns the texts of the kinds of a catalog; nil if there are none.
func textsOf(c *Catalog) []*KindText {
	if len(c.Texts) == 0 {
		return nil
	}
	type key struct{ repository, group, kind string }
	texts := map[key]*KindText{}
	for i := range c.Texts {
		t := &c.Texts[i]
		for j := range t.Kinds {
			texts[key{t.Repository, t.Kinds[j].Group, t.Kinds[j].Kind}] = &t.Kinds[j]
		}
	}
	out := make([]*KindText, len(c.Kinds))
	for i := range c.Kinds {
		k := &c.Kinds[i]
		out[i] = texts[key{k.Repository, k.Group, k.Kind}]
	}
	return out
}

// Search returns what [Catalog.Search] returns for a catalog that has only the packages that visible selects.
func (x *SearchIndex) Search(q Query, limit int, visible func(repository string) bool) []Hit {
	packages := slices.DeleteFunc(pointers(x.catalog.Packages), func(p *Package) bool { return !visible(p.Repository) })
	texts := func() ([]Text, error) { return x.catalog.Texts, nil }
	hits, _ := searchInSteps(q, limit, packages, texts, x.feed) // No step of it fails.
	return hits
}

// feed passes the kinds that match to a searcher, like its method kind.
func (x *SearchIndex) feed(s *searcher) error {
	packages := make([]*candidate, len(x.catalog.Packages))
	for i := range x.catalog.Packages {
		if p := &x.catalog.Packages[i]; s.q.Type == "" || strings.EqualFold(s.q.Type, p.Type) {
			packages[i] = s.packages[p.Repository]
		}
	}
	f := &feeder{index: x, searcher: s, packages: packages, filters: x.filtersOf(&s.q)}
	f.words = make([]wordScores, len(s.q.Words))
	for i, w := range s.q.Words {
		f.words[i] = x.scoresOf(w, s.fuzzy)
		f.words[i].inPackage = slices.ContainsFunc(packages, func(p *candidate) bool { return p != nil && p.words[i] > 0 })
	}
	for name := range x.names {
		if f.canMatch(name) {
			f.feed(name)
		}
	}
	return nil
}

// feeder passes the kinds that match to a searcher.
type feeder struct {
	index    *SearchIndex
	searcher *searcher
	packages []*candidate
	filters  kindFilters
	words    []wordScores
}

// canMatch reports whether a kind with a name can match.
func (f *feeder) canMatch(name int) bool {
	if !f.filters.selectsName(name) {
		return false
	}
	if len(f.words) == 0 || len(f.searcher.texts) > 0 || f.searcher.q.Provides != "" {
		return true // With the last one, its package can match.
	}
	isOwn := false
	for i := range f.words {
		w := &f.words[i]
		inKind := w.inGroup || w.names[name] > 0
		if !inKind && !w.inPackage {
			return false
		}
		isOwn = isOwn || inKind
	}
	return isOwn
}

// feed passes the kinds with a name that match.
func (f *feeder) feed(name int) {
	s, x, coverage := f.searcher, f.index, -1
	for i := x.first[name]; i < x.first[name+1]; i++ {
		row := x.rows[i]
		if row.pack < 0 || f.packages[row.pack] == nil || !f.filters.selectsGroup(row.group) {
			continue
		}
		k, p := &x.catalog.Kinds[i], f.packages[row.pack]
		if s.q.Provides != "" && k.Role == Input {
			continue
		}
		p.selected = true
		for j := range f.words {
			s.own[j] = f.words[j].of(k, name, row.group)
		}
		var text *KindText
		if len(s.texts) > 0 {
			text = x.texts[i]
		}
		score, why, ok := s.score(p, text)
		if !ok || s.isBelow(score+maxCoverage) {
			continue
		}
		if coverage < 0 {
			coverage = x.names[name].coverage(s.q.Words)
		}
		s.add(k, p, score+coverage, why, text)
	}
}

// A nameFilter selects the kinds that a name in a query names: it has the names and the groups for which [named]
// returns true together.
type nameFilter struct {
	names  []bool
	groups []bool
}

// named returns the filter for KIND, KIND.GROUP or PLURAL.GROUP.
func (x *SearchIndex) named(name string) *nameFilter {
	kind, group := splitKind(name)
	f := &nameFilter{make([]bool, len(x.names)), make([]bool, len(x.groups))}
	x.nameLines.each(kind, func(i int) {
		k := x.names[i].kind
		f.names[i] = strings.EqualFold(k.Kind, kind) || k.hasName(kind)
	})
	for i, g := range x.groups {
		f.groups[i] = group == "" || g == group
	}
	return f
}

// kindFilters are the parts of a query that select kinds by their names and groups; nil for parts that the query lacks.
type kindFilters struct {
	kind, provides *nameFilter
	groups         []bool
}

func (x *SearchIndex) filtersOf(q *Query) kindFilters {
	var f kindFilters
	if q.Kind != "" {
		f.kind = x.named(q.Kind)
	}
	if q.Provides != "" {
		f.provides = x.named(q.Provides)
	}
	if q.Group != "" {
		f.groups = make([]bool, len(x.groups))
		matches := matchesGroup(q.Group)
		for i, g := range x.groups {
			f.groups[i] = matches(g)
		}
	}
	return f
}

func (f *kindFilters) selectsName(name int) bool {
	return (f.kind == nil || f.kind.names[name]) && (f.provides == nil || f.provides.names[name])
}

func (f *kindFilters) selectsGroup(group int32) bool {
	return (f.groups == nil || f.groups[group]) && (f.kind == nil || f.kind.groups[group]) &&
		(f.provides == nil || f.provides.groups[group])
}

// wordScores are the scores of a word in the names and the groups of the kinds.
type wordScores struct {
	word string
	// names and groups are the scores in the names and in the groups. For a qualified word, they only tell which kinds
	// it can match.
	names, groups []uint8
	// named selects the groups of the kinds that a qualified word names; nil for another word.
	named []bool
	// inGroup and inPackage report whether the word matches a group or a package.
	inGroup, inPackage bool
}

// scoresOf returns the scores of a lower-case word.
func (x *SearchIndex) scoresOf(w string, fuzzy bool) wordScores {
	out := wordScores{word: w, names: make([]uint8, len(x.names)), groups: make([]uint8, len(x.groups))}
	if isQualified(w) {
		name, _, _ := strings.Cut(w, "/")
		filter := x.named(name)
		out.named = filter.groups
		for i, isNamed := range filter.names {
			if isNamed {
				out.names[i] = scoreExact
			}
		}
		x.groupLines.each(name, func(i int) {
			if strings.Contains(x.groups[i], name) {
				out.groups[i], out.inGroup = scoreGroupOf, true
			}
		})
		return out
	}
	exact := "\t" + w + "\t"
	match := func(i int) {
		if n := &x.names[i]; strings.Contains(x.nameLines.at(i)[len(n.lower):], exact) {
			out.names[i] = scoreExact
		} else {
			out.names[i] = uint8(n.matchOwn(w, fuzzy)) //nolint:gosec // at most scoreExact
		}
	}
	x.nameLines.each(stem(w), match)
	if fuzzy {
		x.eachSimilar(w, match)
	}
	x.groupLines.each(w, func(i int) {
		out.groups[i] = uint8(matchGroup(x.groups[i], w)) //nolint:gosec // at most scoreGroup
		out.inGroup = out.inGroup || out.groups[i] > 0
	})
	return out
}

// eachSimilar calls visit with the positions of the names that can be similar to a lower-case word.
func (x *SearchIndex) eachSimilar(w string, visit func(i int)) {
	isSimilar, most, wanted := similarNames(w), mostErrors(len(w)), bytesIn(w)
	for i := range x.names {
		if bits.OnesCount64(wanted&^x.nameBytes[i]) > most {
			continue // Most names differ more, which is faster to see.
		}
		if k := x.names[i].kind; isSimilar(k.Kind, k.Plural) {
			visit(i)
		}
	}
}

// of returns the score of the word in the names of a kind.
func (s *wordScores) of(k *Kind, name int, group int32) int {
	switch {
	case s.named == nil:
		return int(max(s.names[name], s.groups[group]))
	case s.groups[group] > 0, s.names[name] > 0 && s.named[group]:
		names := kindNames{kind: k}
		return names.matchQualified(s.word)
	}
	return 0
}

// lineBuilder collects lines.
type lineBuilder struct {
	text   []byte
	starts []int32
}

// add adds a line with the parts of a text.
func (l *lineBuilder) add(parts ...string) {
	l.starts = append(l.starts, int32(len(l.text))) //nolint:gosec // An index is smaller.
	for _, part := range parts {
		l.text = append(append(l.text, strings.ToLower(part)...), '\t')
	}
	l.text = append(l.text, '\n')
}

// finish releases memory after the last addition, and returns the text.
func (l *lineBuilder) finish() searchLines {
	return searchLines{string(l.text), slices.Clip(l.starts)}
}

// searchLines are lines in lower case in which a search finds those that contain a word.
type searchLines struct {
	text   string
	starts []int32
}

// at returns a line.
func (l *searchLines) at(i int) string {
	if i+1 < len(l.starts) {
		return l.text[l.starts[i]:l.starts[i+1]]
	}
	return l.text[l.starts[i]:]
}

// each calls visit with the positions of the lines that contain a lower-case word. Without a word, and for one with
// characters of which another case can be ASCII, these are all.
func (l *searchLines) each(word string, visit func(i int)) {
	all := word == "" || !isASCII(word)
	for i, at := 0, 0; i < len(l.starts); i++ {
		if !all {
			found := strings.Index(l.text[at:], word)
			if found < 0 {
				return
			}
			at += found
			i += sort.Search(len(l.starts)-i, func(j int) bool { return int(l.starts[i+j]) > at }) - 1
			if i+1 < len(l.starts) {
				at = int(l.starts[i+1])
			}
		}
		visit(i)
	}
}
