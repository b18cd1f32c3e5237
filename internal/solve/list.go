package solve

import "strings"

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
