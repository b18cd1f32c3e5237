package yamldoc

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/xpkg-dev/xpkg/internal/wording"
)

// maxMessage is the maximum number of characters of untrusted text in a message.
const maxMessage = 400

// Printable makes text that may quote the package safe to print: it escapes characters
// that are not graphic, and truncates long text.
func Printable(s string) string {
	var b strings.Builder
	n := 0
	for _, r := range s {
		if n++; n > maxMessage {
			b.WriteString("…")
			break
		}
		if unicode.IsPrint(r) && !wording.Invisible(r) {
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
