package yamldoc

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// ErrInvalidEncoding is the code for text that is not allowed in a package.
var ErrInvalidEncoding = errcode.Code{
	Name: "InvalidEncoding", Class: errcode.Invalid,
	Cause: "A file is not UTF-8, or contains a character that YAML readers reject or interpret differently.",
	Fix:   "Save the file as UTF-8 with LF or CRLF line ends, and write other control characters as escapes.",
}

var (
	utf8BOM  = []byte("\xef\xbb\xbf")
	otherBOM = []struct {
		name string
		mark []byte
	}{
		{"UTF-32", []byte("\x00\x00\xfe\xff")},
		{"UTF-32", []byte("\xff\xfe\x00\x00")},
		{"UTF-16", []byte("\xfe\xff")},
		{"UTF-16", []byte("\xff\xfe")},
	}
)

// trimBOM removes a UTF-8 byte order mark at the start of a file. It reports an error
// that names the encoding for the marks of other encodings.
func trimBOM(text []byte) ([]byte, *Fault) {
	for _, o := range otherBOM {
		if bytes.HasPrefix(text, o.mark) {
			return nil, &Fault{Code: ErrInvalidEncoding, Line: 1, What: o.name + " text at byte 0: only UTF-8 is supported"}
		}
	}
	return bytes.TrimPrefix(text, utf8BOM), nil
}

// checkEncoding accepts only valid UTF-8 with printable characters, tabs and the line
// ends LF and CRLF. It rejects a lone CR, NEL, LS and PS because readers of YAML 1.1 and
// 1.2 disagree on whether they end a line.
func checkEncoding(text []byte) *Fault {
	for i := 0; i < len(text); {
		c := text[i]
		if c >= ' ' && c < 0x7f || c == '\n' || c == '\t' {
			i++
			continue
		}
		if c == '\r' && i+1 < len(text) && text[i+1] == '\n' {
			i += 2
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		if what := forbidden(r, size); what != "" {
			line := 1 + bytes.Count(text[:i], []byte{'\n'})
			return &Fault{Code: ErrInvalidEncoding, Line: line, What: fmt.Sprintf("%s at byte %d of the document", what, i)}
		}
		i += size
	}
	return nil
}

// forbidden describes why a character that is not printable ASCII is not allowed, and
// returns "" if it is.
func forbidden(r rune, size int) string {
	switch {
	case r == utf8.RuneError && size == 1:
		return "invalid UTF-8"
	case r == 0:
		return "NUL character"
	case r == '\r':
		return "carriage return without a line feed"
	case r == 0x85 || r == 0x2028 || r == 0x2029:
		return fmt.Sprintf("line separator U+%04X", r)
	case r < ' ' || r >= 0x7f && r < 0xa0 || r == 0xfffe || r == 0xffff:
		return fmt.Sprintf("control character U+%04X", r)
	case r == 0xfeff:
		return "byte order mark"
	}
	return ""
}
