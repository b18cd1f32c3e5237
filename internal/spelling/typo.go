package spelling

import (
	"slices"
	"strings"
)

// Typo returns the words that a user has meant by a misspelled word of a command line, the most similar first: words
// that begin with it, and words of similar length with few wrong letters, or with two letters exchanged. A flag of one
// letter resembles none.
func Typo(word string, words []string) []string {
	letters := strings.TrimLeft(word, "-")
	most := len(letters) / 3
	if most == 0 {
		return nil
	}
	var near []string
	for _, s := range Alike(word, words) {
		d := Distance(s, word)
		if d <= most || d == 2 && sorted(s) == sorted(word) {
			near = append(near, s)
		}
	}
	for _, s := range words {
		if strings.HasPrefix(s, word) && !slices.Contains(near, s) {
			near = append(near, s)
		}
	}
	return near
}

// sorted returns the bytes of a word in order.
func sorted(word string) string {
	b := []byte(word)
	slices.Sort(b)
	return string(b)
}
