package untrusted

import (
	"fmt"
	"unicode"
	"unicode/utf8"

	"github.com/xpkg-dev/xpkg/internal/wording"
)

// maxMarks is the number of combining marks in a row that are shown. More marks cover the lines above and below.
const maxMarks = 4

// Visible returns a text in which invisible characters, such as those that reverse the direction of text, are replaced
// by their code points: [U+202E]. Tabs and line ends are kept, and so are the joiners and variation selectors of emoji.
func Visible(text []byte) []byte {
	if isPlain(text) {
		return text
	}
	out := make([]byte, 0, len(text)+64)
	former, marks := rune(0), 0
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		marks++
		if !unicode.Is(unicode.M, r) {
			marks = 0
		}
		switch {
		case isHidden(r, former):
			out = fmt.Appendf(out, "[U+%04X]", r)
		case marks <= maxMarks:
			out = append(out, text[i:i+size]...)
		}
		former, i = r, i+size
	}
	return out
}

// isPlain reports whether a text consists of visible ASCII characters.
func isPlain(text []byte) bool {
	for _, b := range text {
		if b >= utf8.RuneSelf || b < ' ' && b != '\t' && b != '\n' && b != '\r' || b == 0x7f {
			return false
		}
	}
	return true
}

func isHidden(r, former rune) bool {
	switch r {
	case '\t', '\r':
		return false
	case '\u200d', '\ufe0f':
		return !unicode.In(former, unicode.So, unicode.Sk, unicode.Variation_Selector)
	}
	return wording.Invisible(r)
}
