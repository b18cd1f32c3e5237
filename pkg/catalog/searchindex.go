package catalog

import (
	"math/bits"
	"slices"
	"strings"
)

// A SearchIndex answers many searches in a catalog. It has the names and the groups of all kinds once, so a search compares its words with each of
// them once, and adds their scores for every kind. It takes about 50 bytes for each kind. It is safe for concurrent use.
type SearchIndex struct {
	catalog *Catalog
	// rows are those of the kinds of the catalog.
	rows []searchRow
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

// searchRow has the positions of the names, the group and the package of a kind.
type searchRow struct{ name, group, pack int32 }

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
			x.names = append(x.names, kindNames{kind: k})
			x.nameBytes = append(x.nameBytes, bytesIn(k.Kind)|bytesIn(k.Plural))
			nameLines.add(append([]string{k.Kind, k.Plural, k.Singular}, k.ShortNames...)...)
		}
		x.rows[i] = searchRow{int32(len(x.names) - 1), group, pack} //nolint:gosec // An index has fewer kinds.
	}
	x.names, x.nameBytes, x.nameLines, x.groupLines = slices.Clip(x.names), slices.Clip(x.nameBytes), nameLines.finish(), groupLines.finish()
	for i, start := range x.nameLines.starts {
		line := x.nameLines.text[start:]
		x.names[i].lower = line[:strings.IndexByte(line, '\t')]
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
	filters := x.filtersOf(&s.q)
	words := make([]wordScores, len(s.q.Words))
	for i, w := range s.q.Words {
		words[i] = x.scoresOf(w, s.fuzzy)
	}
	coverage := make([]int8, len(x.names)) // Each is one more, so that 0 means unknown.
	for i := range x.rows {
		row := &x.rows[i]
		if row.pack < 0 || packages[row.pack] == nil {
			continue
		}
		k, p := &x.catalog.Kinds[i], packages[row.pack]
		if !filters.selects(k, row) {
			continue
		}
		p.selected = true
		for j := range words {
			s.own[j] = words[j].of(k, row)
		}
		var text *KindText
		if len(s.texts) > 0 {
			text = x.texts[i]
		}
		score, why, ok := s.score(p, text)
		if !ok || s.isBelow(score+maxCoverage) {
			continue
		}
		if coverage[row.name] == 0 {
			coverage[row.name] = int8(x.names[row.name].coverage(s.q.Words)) + 1 //nolint:gosec // at most maxCoverage
		}
		s.add(k, p, score+int(coverage[row.name])-1, why, text)
	}
	return nil
}

// A nameFilter selects the kinds that a name in a query names: it has the names and the groups for which [named] returns true together.
type nameFilter struct {
	names  []bool
	groups []bool
}

func (f *nameFilter) selects(row *searchRow) bool { return f.names[row.name] && f.groups[row.group] }

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
		for i, g := range x.groups {
			f.groups[i] = matchesGroup(q.Group, g)
		}
	}
	return f
}

func (f *kindFilters) selects(k *Kind, row *searchRow) bool {
	return (f.groups == nil || f.groups[row.group]) && (f.kind == nil || f.kind.selects(row)) &&
		(f.provides == nil || k.Role != Input && f.provides.selects(row))
}

// wordScores are the scores of a word in the names and the groups of the kinds.
type wordScores struct {
	word string
	// names and groups are the scores of a word that is not qualified.
	names, groups []uint8
	// named selects the kinds that a qualified word names, and contains the groups that contain it.
	named    *nameFilter
	contains []bool
}

// scoresOf returns the scores of a lower-case word.
func (x *SearchIndex) scoresOf(w string, fuzzy bool) wordScores {
	out := wordScores{word: w}
	if isQualified(w) {
		name, _, _ := strings.Cut(w, "/")
		out.named, out.contains = x.named(name), make([]bool, len(x.groups))
		x.groupLines.each(name, func(i int) { out.contains[i] = strings.Contains(x.groups[i], name) })
		return out
	}
	out.names, out.groups = make([]uint8, len(x.names)), make([]uint8, len(x.groups))
	match := func(i int) { out.names[i] = uint8(x.names[i].matchName(w, fuzzy)) } //nolint:gosec // at most scoreExact
	x.nameLines.each(stem(w), match)
	if fuzzy {
		x.eachSimilar(w, match)
	}
	x.groupLines.each(w, func(i int) { out.groups[i] = uint8(matchGroup(x.groups[i], w)) }) //nolint:gosec // at most scoreGroup
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
func (s *wordScores) of(k *Kind, row *searchRow) int {
	if s.named == nil {
		return int(max(s.names[row.name], s.groups[row.group]))
	}
	if !s.contains[row.group] && !s.named.selects(row) {
		return 0
	}
	names := kindNames{kind: k}
	return names.matchQualified(s.word)
}
