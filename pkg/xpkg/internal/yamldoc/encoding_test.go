package yamldoc

import "testing"

// hardening: D7
func TestCheckEncoding(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"plain":              {"a: b\n\tc\n", ""},
		"crlf":               {"a\r\nb\r\n", ""},
		"other scripts":      {"é 漢 😀 \u00a0 \u202e \ufffd \ufffc\n", ""},
		"lone cr":            {"a\rb", "carriage return without a line feed at byte 1 of the document"},
		"cr at the end":      {"a\r", "carriage return without a line feed at byte 1 of the document"},
		"nul":                {"ab\x00", "NUL character at byte 2 of the document"},
		"bell":               {"\a", "control character U+0007 at byte 0 of the document"},
		"delete":             {"\x7f", "control character U+007F at byte 0 of the document"},
		"C1":                 {"\u0080", "control character U+0080 at byte 0 of the document"},
		"next line":          {"a\u0085", "line separator U+0085 at byte 1 of the document"},
		"line separator":     {"\u2028", "line separator U+2028 at byte 0 of the document"},
		"byte order mark":    {"a\ufeff", "byte order mark at byte 1 of the document"},
		"not a character":    {"\uffff", "control character U+FFFF at byte 0 of the document"},
		"invalid":            {"a\xffb", "invalid UTF-8 at byte 1 of the document"},
		"cut":                {"é"[:1], "invalid UTF-8 at byte 0 of the document"},
		"surrogate":          {"\xed\xa0\x80", "invalid UTF-8 at byte 0 of the document"},
		"beyond the last":    {"\xf4\x90\x80\x80", "invalid UTF-8 at byte 0 of the document"},
		"replacement itself": {"\ufffd", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if f := checkEncoding([]byte(c.in)); f != nil {
				got = f.What
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
