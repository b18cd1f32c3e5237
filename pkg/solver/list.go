package solver

import (
	"fmt"
	"slices"
	"strings"
)

// joinList joins words as in a sentence: "a, b and c", with a last word of "and".
func joinList(words []string, last string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	if !strings.HasPrefix(last, ",") {
		last = " " + last
	}
	return strings.Join(words[:len(words)-1], ", ") + last + " " + words[len(words)-1]
}

// fewItems leaves out the middle of a long list.
func fewItems(words []string) []string {
	const most = 4
	if len(words) <= most {
		return words
	}
	more := fmt.Sprintf("%d more", len(words)-most+1)
	return slices.Concat(words[:most-2], []string{more}, words[len(words)-1:])
}

// shorten cuts a long text, such as a digest or a constraint that does not end.
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
