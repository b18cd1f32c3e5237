package wording

import (
	"strings"
	"unicode/utf8"
)

const ellipsis = "…"

// Clip returns a text, or its first bytes and an ellipsis if it has more than most bytes. The result is valid UTF-8 if
// the text is.
func Clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + ellipsis
}

// ClipCharacters returns a text of at most most characters, which end with an ellipsis if the text has more.
func ClipCharacters(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + ellipsis
}
