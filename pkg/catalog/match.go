package catalog

import (
	"iter"
	"math/bits"
	"slices"
	"strings"

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

type match struct {
	score int
	why   string
}

// kindNames are the names of a kind in the form that a search compares.
type kindNames struct {
	kind  *Kind
	lower string
	parts []string
}

func namesOf(k *Kind) kindNames { return kindNames{k, strings.ToLower(k.Kind), camelParts(k.Kind)} }

// match returns the best match of a lower-case word.
func (n *kindNames) match(w string, fuzzy bool) match {
	k := n.kind
	if strings.Contains(w, ".") || strings.Contains(w, "/") {
		return n.matchQualified(w)
	}
	switch {
	case n.lower == w, k.hasName(w):
		return match{scoreExact, "kind"}
	case strings.HasPrefix(n.lower, w):
		return match{scorePrefix, "prefix"}
	}
	best := match{}
	better := func(score int, why string) {
		if score > best.score {
			best = match{score, why}
		}
	}
	for _, p := range n.parts {
		switch {
		case p == w, p == singular(w):
			better(scorePart, "part")
		case strings.HasPrefix(p, w):
			better(scorePartOf, "part")
		case fuzzy && similar(p, w):
			better(scoreSimilar, "similar")
		}
	}
	if strings.Contains(n.lower, w) {
		better(scoreContains, "part")
	}
	if fuzzy && (similar(n.lower, w) || similar(k.Plural, w)) {
		better(scoreSimilar+1, "similar")
	}
	for label := range strings.SplitSeq(k.Group, ".") {
		switch {
		case label == w:
			better(scoreGroup, "group")
		case strings.HasPrefix(label, w):
			better(scoreGroupOf, "group")
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
func (n *kindNames) matchQualified(w string) match {
	name, apiVersion, versioned := strings.Cut(w, "/")
	switch k := n.kind; {
	case versioned && !slices.Contains(k.Served, apiVersion):
		return match{}
	case named(k, name):
		return match{scoreExact, "kind"}
	case k.Group == name:
		return match{scoreGroup + 1, "group"}
	case strings.Contains(k.Group, name):
		return match{scoreGroupOf, "group"}
	}
	return match{}
}

// coverage returns up to maxCoverage points for the part of the kind that the words cover.
func (n *kindNames) coverage(words []string) int {
	covered := 0
	for _, p := range n.parts {
		if slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, p) || strings.HasPrefix(p, w) }) {
			covered++
		}
	}
	if len(n.parts) == 0 {
		return 0
	}
	return maxCoverage * covered / len(n.parts)
}

// camelParts returns the words of a CamelCase name in lower case: VPCPeeringConnection is vpc, peering, connection.
func camelParts(name string) []string {
	var parts []string
	for part := range camelSeq(name) {
		parts = append(parts, strings.ToLower(part))
	}
	return parts
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

// bytesIn returns the set of the bytes of a word. Bytes that differ by a multiple of 64 are one element, and so are an upper-case letter
// and its lower case.
func bytesIn(w string) uint64 {
	const lower = 'a' - 'A'
	var set uint64
	for i := range len(w) {
		set |= 1 << ((w[i] | lower) & 63)
	}
	return set
}

// matchPackage returns the best match of a lower-case word in the texts of a package.
func matchPackage(p *Package, t *Text, w string, fuzzy bool) match {
	best := match{}
	better := func(score int, why string) {
		if score > best.score {
			best = match{score, why}
		}
	}
	for _, repository := range append([]string{p.Repository}, p.Aliases...) {
		matchName(repository, w, fuzzy, better)
	}
	if hasWord(p.Title, w) || hasWord(p.Category, w) || slices.ContainsFunc(p.Keywords, func(k string) bool { return hasWord(k, w) }) {
		better(scoreTitle, "package")
	}
	if strings.Contains(strings.ToLower(p.Summary), w) || strings.Contains(strings.ToLower(p.Title), w) || t != nil && strings.Contains(strings.ToLower(t.Readme), w) {
		better(scoreText, "text")
	}
	return best
}

// hasWord reports whether a text is a lower-case word, or contains it as a complete one.
func hasWord(text, w string) bool {
	return strings.EqualFold(text, w) || len(text) > len(w) && slices.Contains(words(text), w)
}

// matchName matches a word with the name of a repository.
func matchName(repository, w string, fuzzy bool, better func(int, string)) {
	name := repository[strings.LastIndexByte(repository, '/')+1:]
	switch {
	case repository == w, name == w, strings.HasSuffix(repository, "/"+w) && strings.Contains(w, "/"):
		better(scoreExact, "package")
	case strings.HasPrefix(name, w):
		better(scorePrefix-1, "package")
	}
	for part := range strings.SplitSeq(name, "-") {
		switch {
		case part == w:
			better(scorePart-1, "package")
		case strings.HasPrefix(part, w):
			better(scorePartOf-1, "package")
		case fuzzy && similar(part, w):
			better(scoreSimilar, "similar")
		}
	}
	switch {
	case strings.Contains(name, w):
		better(scoreContains-1, "package")
	case strings.Contains(repository, w):
		better(scoreGroupOf-1, "package")
	case fuzzy && similar(name, w):
		better(scoreSimilar+1, "similar")
	}
}

// words returns the words of a text in lower case.
func words(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && r < 0x80 })
}

// kind returns the text of a kind, or nil.
func (t *Text) kind(group, kind string) *KindText {
	i := slices.IndexFunc(t.Kinds, func(k KindText) bool { return k.Group == group && k.Kind == kind })
	if i < 0 {
		return nil
	}
	return &t.Kinds[i]
}

func (t *KindText) contains(w string) bool {
	return strings.Contains(strings.ToLower(t.Description), w)
}

// fields returns the fields that begin with a prefix, in any case.
func (t *KindText) fields(prefix string) []string {
	prefix = strings.ToLower(prefix)
	var out []string
	for _, f := range t.Fields {
		if strings.HasPrefix(strings.ToLower(f), prefix) {
			out = append(out, f)
		}
	}
	return out
}
