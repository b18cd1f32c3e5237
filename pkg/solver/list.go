package solver

import (
	"fmt"
	"slices"
	"strings"
)

// joinList joins words as in a sentence. With the last word "and" the result is "a, b and c".
func joinList(words []string, last string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	if !strings.HasPrefix(last, ",") {
		last = " " + last
	}
	return strings.Join(words[:len(words)-1], ", ") + last + " " + words[len(words)-1]
}

// fewItems omits the middle of a long list.
func fewItems(words []string) []string {
	const most = 4
	if len(words) <= most {
		return words
	}
	more := fmt.Sprintf("%d more", len(words)-most+1)
	return slices.Concat(words[:most-2], []string{more}, words[len(words)-1:])
}

// breaks lists the texts before which a long line is broken, best first.
var breaks = []string{", which ", " requires ", " that accepts ", "; ", ", ", " "}

// wrap breaks a line that is longer than lineLength. Continuation lines have a deeper
// indentation. Words are not broken.
func wrap(line string) []string {
	margin := len(line) - len(strings.TrimLeft(line, " "))
	next := strings.Repeat(" ", max(margin+len(indent), len(deepIndent)))
	var out []string
	for len(line) > lineLength {
		at := breakBefore(line, margin)
		if at < 0 {
			break
		}
		out = append(out, line[:at])
		line, margin = next+line[at+1:], len(next)
	}
	return append(out, line)
}

// breakBefore returns the position of the space at which a line is broken: the last one of
// the best kind that leaves at most lineLength characters, or otherwise the first one of the
// line. It returns -1 if the line is one word.
func breakBefore(line string, margin int) int {
	for _, b := range breaks {
		if at := strings.LastIndex(line[margin:min(lineLength+1, len(line))], b); at > 0 {
			return margin + at + strings.Index(b, " ")
		}
	}
	if at := strings.Index(line[margin:], " "); at > 0 {
		return margin + at
	}
	return -1
}

func wrapAll(lines []string) []string {
	var out []string
	for _, line := range lines {
		out = append(out, wrap(line)...)
	}
	return out
}

// shorten truncates a long text, such as a digest or a very long constraint.
func shorten(text string) string {
	const most = 72 // A digest with its algorithm is 71 characters long.
	if len(text) <= most {
		return text
	}
	if i := strings.Index(text, "@sha256:"); i >= 0 && i < most-20 {
		return text[:min(len(text), i+len("@sha256:")+12)]
	}
	return strings.ToValidUTF8(text[:most-3], "") + "..."
}
