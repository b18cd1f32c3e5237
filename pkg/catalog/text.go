package catalog

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// clip returns the text on one line with at most most bytes: control and formatting characters and invalid bytes are
// dropped, and runs of white space become one space.
func clip(s string, most int) string {
	if len(s) > 4*most {
		s = s[:4*most]
	}
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case r == utf8.RuneError, !unicode.IsPrint(r):
			return -1
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= most {
		return s
	}
	const dots = "…"
	end := most - len(dots)
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return strings.TrimSpace(s[:end]) + dots
}
