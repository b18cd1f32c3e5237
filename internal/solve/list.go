package solve

import (
	"fmt"
	"slices"
	"strings"
)

// list joins words as in a sentence: "a, b and c", with a last word of "and".
func list(words []string, last string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	if !strings.HasPrefix(last, ",") {
		last = " " + last
	}
	return strings.Join(words[:len(words)-1], ", ") + last + " " + words[len(words)-1]
}

// few leaves out the middle of a long list.
func few(words []string) []string {
	const most = 4
	if len(words) <= most {
		return words
	}
	more := fmt.Sprintf("%d more", len(words)-most+1)
	return slices.Concat(words[:most-2], []string{more}, words[len(words)-1:])
}
