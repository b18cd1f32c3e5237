package catalog

import (
	"iter"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/xpkg-dev/xpkg/internal/spelling"
)

// Scores of matches. The score of a hit is the sum of the scores of its words.
const (
	scoreExact    = 100 // the kind, its plural, singular or short name, or the name of the package
	scorePrefix   = 80  // the beginning of the kind
	scorePart     = 70  // a word in the CamelCase of the kind, or a part of the name of the package
	scorePartOf   = 60  // the beginning of such a word
	scoreContains = 50
	scoreGroup    = 45 // a label of the group
	scoreGroupOf  = 35 // the beginning of a label
	scoreSimilar  = 30
	scoreTitle    = 40 // a word of the title, or a keyword
	scoreText     = 10
	// maxCoverage is added when the words cover the whole kind.
	maxCoverage = 20
)

// whyOfKind names the match of a kind with a score.
func whyOfKind(score int) string {
	switch score {
	case scoreExact:
		return "kind"
	case scorePrefix:
		return "prefix"
	case scorePart, scorePartOf, scoreContains:
		return "part"
	case scoreGroup + 1, scoreGroup, scoreGroupOf:
		return "group"
	}
	return whyOfPackage(score)
}

// whyOfPackage names the match of a package with a score.
func whyOfPackage(score int) string {
	switch score {
	case scoreSimilar + 1, scoreSimilar:
		return "similar"
	case scoreText:
		return "text"
	}
	return "package"
}

// kindNames are the names of a kind in the form that a search compares.
type kindNames struct {
	kind  *Kind
	lower string
	// starts has a bit for each position at which a word of the CamelCase begins. A kind has fewer characters than bits.
	starts uint64
}

func namesOf(k *Kind) kindNames {
	n := kindNames{kind: k, lower: strings.ToLower(k.Kind)}
	at := 0
	for part := range camelSeq(k.Kind) {
		n.starts |= 1 << at
		if at += len(part); len(n.lower) != len(k.Kind) { // It is not ASCII.
			at += len(strings.ToLower(part)) - len(part)
		}
	}
	return n
}

// parts returns the words of the CamelCase of the kind in lower case: VPCPeeringConnection is vpc, peering, connection.
func (n *kindNames) parts() iter.Seq[string] {
	return func(yield func(string) bool) {
		for rest := n.starts; rest != 0; {
			start := bits.TrailingZeros64(rest)
			rest &= rest - 1
			if end := min(bits.TrailingZeros64(rest), len(n.lower)); !yield(n.lower[start:end]) {
				return
			}
		}
	}
}

// match returns the score of the best match of a lower-case word; 0 if there is none.
func (n *kindNames) match(w string, fuzzy bool) int {
	if isQualified(w) {
		return n.matchQualified(w)
	}
	return max(n.matchName(w, fuzzy), matchGroup(n.kind.Group, w))
}

// isQualified reports whether a word is KIND.GROUP, PLURAL.GROUP, GROUP or one of them with a version.
func isQualified(w string) bool { return strings.ContainsAny(w, "./") }

// matchName returns the score of the best match in the names without the group.
func (n *kindNames) matchName(w string, fuzzy bool) int {
	if n.kind.hasName(w) {
		return scoreExact
	}
	return n.matchOwn(w, fuzzy)
}

// matchOwn is like matchName for a kind that has no other name which is the word.
func (n *kindNames) matchOwn(w string, fuzzy bool) int {
	switch {
	case n.lower == w:
		return scoreExact
	case strings.HasPrefix(n.lower, w):
		return scorePrefix
	}
	best, one := 0, singular(w)
	for p := range n.parts() {
		switch {
		case p == w, p == one:
			best = max(best, scorePart)
		case strings.HasPrefix(p, w):
			best = max(best, scorePartOf)
		case fuzzy && similar(p, w):
			best = max(best, scoreSimilar)
		}
	}
	if best < scoreContains && strings.Contains(n.lower, w) {
		best = scoreContains
	}
	if best < scoreSimilar+1 && fuzzy && (similar(n.lower, w) || similar(n.kind.Plural, w)) {
		best = scoreSimilar + 1
	}
	return best
}

// matchGroup returns the score of the best match in the labels of a group.
func matchGroup(group, w string) int {
	best := 0
	if !strings.Contains(group, w) {
		return best
	}
	for label := range strings.SplitSeq(group, ".") {
		switch {
		case label == w:
			return scoreGroup
		case strings.HasPrefix(label, w):
			best = scoreGroupOf
		}
	}
	return best
}

// singular returns the singular of a word, by the rules of English that the names of kinds follow.
func singular(w string) string {
	switch {
	case strings.HasSuffix(w, "ies"):
		return w[:len(w)-3] + "y"
	case strings.HasSuffix(w, "sses"), strings.HasSuffix(w, "xes"):
		return w[:len(w)-2]
	}
	return strings.TrimSuffix(w, "s")
}

// matchQualified matches KIND.GROUP, PLURAL.GROUP, GROUP and GROUP/VERSION.
func (n *kindNames) matchQualified(w string) int {
	name, apiVersion, versioned := strings.Cut(w, "/")
	switch k := n.kind; {
	case versioned && !slices.Contains(k.Served, apiVersion):
		return 0
	case named(k, name):
		return scoreExact
	case k.Group == name:
		return scoreGroup + 1
	case strings.Contains(k.Group, name):
		return scoreGroupOf
	}
	return 0
}

// coverage returns up to maxCoverage points for the part of the kind that the words cover.
func (n *kindNames) coverage(words []string) int {
	covered, all := 0, 0
	for p := range n.parts() {
		all++
		if slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, p) || strings.HasPrefix(p, w) }) {
			covered++
		}
	}
	if all == 0 {
		return 0
	}
	return maxCoverage * covered / all
}

// camelSeq returns the words of a CamelCase name.
func camelSeq(name string) iter.Seq[string] {
	upper := func(i int) bool { return i < len(name) && name[i] >= 'A' && name[i] <= 'Z' }
	return func(yield func(string) bool) {
		start := 0
		for i := 1; i <= len(name); i++ {
			if i < len(name) && (!upper(i) || upper(i-1) && (i+1 == len(name) || upper(i+1))) {
				continue
			}
			if !yield(name[start:i]) {
				return
			}
			start = i
		}
	}
}

// similar reports whether two words differ by a typing error.
func similar(a, b string) bool {
	most := mostErrors(min(len(a), len(b)))
	if most == 0 || len(a)-len(b) > most || len(b)-len(a) > most {
		return false
	}
	// Each change adds at most one byte that the other word lacks. Most words differ more, which is faster to see.
	inA, inB := bytesIn(a), bytesIn(b)
	return bits.OnesCount64(inA&^inB) <= most && bits.OnesCount64(inB&^inA) <= most && spelling.Distance(a, b) <= most
}

// mostErrors returns the number of typing errors in a word of a length.
func mostErrors(length int) int {
	const short, long = 4, 8
	switch {
	case length >= long:
		return 2
	case length >= short:
		return 1
	}
	return 0
}

// bytesIn returns the set of the bytes of a word. Bytes that differ by a multiple of 64 are one element, and so are an
// upper-case letter and its lower case.
func bytesIn(w string) uint64 {
	const lower = 'a' - 'A'
	var set uint64
	for i := range len(w) {
		set |= 1 << ((w[i] | lower) & 63)
	}
	return set
}

// matchPackage returns the score of the best match of a lower-case word in the texts of a package; 0 if there is none.
func matchPackage(p *Package, t *Text, w string, fuzzy bool) int {
	best := matchRepository(p.Repository, w, fuzzy)
	for _, alias := range p.Aliases {
		best = max(best, matchRepository(alias, w, fuzzy))
	}
	switch {
	case best >= scoreTitle:
	case hasWord(p.Title, w) || hasWord(p.Category, w) ||
		slices.ContainsFunc(p.Keywords, func(k string) bool { return hasWord(k, w) }):
		best = scoreTitle
	case best < scoreText &&
		(textContains(p.Summary, w) || textContains(p.Title, w) || t != nil && textContains(t.Readme, w)):
		best = scoreText
	}
	return best
}

// hasWord reports whether a text is a lower-case word, or contains it as a complete one.
func hasWord(text, w string) bool {
	return strings.EqualFold(text, w) || len(text) > len(w) && slices.Contains(words(text), w)
}

// matchRepository returns the score of the best match of a word in the name of a repository; 0 if there is none.
func matchRepository(repository, w string, fuzzy bool) int {
	name := repository[strings.LastIndexByte(repository, '/')+1:]
	best := 0
	switch {
	case repository == w, name == w, strings.HasSuffix(repository, "/"+w) && strings.Contains(w, "/"):
		return scoreExact
	case strings.HasPrefix(name, w):
		return scorePrefix - 1
	}
	for part := range strings.SplitSeq(name, "-") {
		switch {
		case part == w:
			best = max(best, scorePart-1)
		case strings.HasPrefix(part, w):
			best = max(best, scorePartOf-1)
		case fuzzy && similar(part, w):
			best = max(best, scoreSimilar)
		}
	}
	switch {
	case strings.Contains(name, w):
		best = max(best, scoreContains-1)
	case strings.Contains(repository, w):
		best = max(best, scoreGroupOf-1)
	case fuzzy && similar(name, w):
		best = max(best, scoreSimilar+1)
	}
	return best
}

// words returns the words of a text in lower case.
func words(s string) []string {
	return strings.FieldsFunc(
		strings.ToLower(s), func(r rune) bool { return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && r < 0x80 },
	)
}

// kind returns the text of a kind, or nil.
func (t *Text) kind(group, kind string) *KindText {
	i := slices.IndexFunc(t.Kinds, func(k KindText) bool { return k.Group == group && k.Kind == kind })
	if i < 0 {
		return nil
	}
	return &t.Kinds[i]
}

func (t *KindText) contains(w string) bool { return textContains(t.Description, w) }

// textContains reports whether a text contains a lower-case word in any case.
func textContains(text, w string) bool {
	return containsFold(text, w) || !isASCII(text) && strings.Contains(strings.ToLower(text), w)
}

// fields returns the fields that begin with a prefix, in any case.
func (t *KindText) fields(prefix string) []string {
	prefix = strings.ToLower(prefix)
	var out []string
	for _, f := range t.Fields {
		if f == "" || f[0] < utf8.RuneSelf && toLower(f[0]) != prefix[0] {
			continue // Most fields differ in their first byte, which is faster to see.
		}
		if strings.HasPrefix(strings.ToLower(f), prefix) {
			out = append(out, f)
		}
	}
	return out
}
