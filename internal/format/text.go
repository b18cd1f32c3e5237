package format

import (
	"strconv"
	"strings"
	"unicode"
)

// maxMessage is how many characters of a text of others go into a message.
const maxMessage = 400

// printable makes a text of others, which may quote the package, safe to print:
// characters that are not graphic are escaped, and what is too long is cut.
func printable(s string) string {
	var b strings.Builder
	n := 0
	for _, r := range s {
		if n++; n > maxMessage {
			b.WriteString("…")
			break
		}
		if unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		if r == '\n' || r == '\t' {
			b.WriteByte(' ')
			continue
		}
		b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
	}
	return b.String()
}
