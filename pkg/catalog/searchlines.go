package catalog

import (
	"slices"
	"sort"
	"strings"
)

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
