package catalog

import (
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

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
		if stems[i] = stem(w); isQualified(w) {
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
			if p := s.packages[base[position]]; p == nil || p.words[i] == 0 {
				return false
			}
		}
		return own
	}}
}

// similarLines returns a function that reports whether the kind in a line can be similar to a lower-case word, which
// no former step has found.
func similarLines(word string) func(line string) bool {
	isSimilar := similarNames(word)
	return func(line string) bool {
		name, rest, _ := strings.Cut(line, "\t")
		_, rest, _ = strings.Cut(rest, "\t") // the group
		plural, _, _ := strings.Cut(rest, "\t")
		return isSimilar(name, plural)
	}
}

// similarNames returns a function that reports whether a kind with a name and a plural can be similar to a lower-case
// word: apart from typing errors, the name, a part of it, or the plural has the length and the bytes of the word. An
// empty plural is that of the rule.
func similarNames(word string) func(name, plural string) bool {
	most, wanted := mostErrors(len(word)), bytesIn(word)
	fits := func(length int, has uint64) bool {
		return length-len(word) <= most && len(word)-length <= most && bits.OnesCount64(wanted&^has) <= most
	}
	return func(name, plural string) bool {
		has := bytesIn(name) | bytesIn("s")
		switch {
		case most == 0:
			return false
		case !isASCII(name):
			return true // Its length changes with its case.
		case fits(len(plural), bytesIn(plural)), fits(len(name), has), fits(len(name)+len("s"), has):
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
