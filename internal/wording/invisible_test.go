package wording

import "testing"

func TestInvisible(t *testing.T) {
	for name, r := range map[string]rune{
		"null": 0, "tab": '\t', "escape": '\x1b', "delete": 0x7f, "C1 control": 0x9b, "not UTF-8": 0xfffd,
		"soft hyphen": 0xad, "combining grapheme joiner": 0x34f, "Arabic letter mark": 0x61c, "Hangul filler": 0x115f,
		"Mongolian vowel separator":    0x180e,
		"Mongolian variation selector": 0x180b, "zero width space": 0x200b, "zero width joiner": 0x200d,
		"right-to-left mark": 0x200f,
		"line separator":     0x2028, "paragraph separator": 0x2029, "right-to-left override": 0x202e, "word joiner": 0x2060,
		"invisible plus": 0x2064, "isolate": 0x2066,
		"wide Hangul filler": 0x3164, "variation selector 16": 0xfe0f, "byte order mark": 0xfeff,
		"narrow Hangul filler":   0xffa0,
		"interlinear annotation": 0xfff9, "musical format": 0x1d173, "language tag": 0xe0001, "tag A": 0xe0041,
		"variation selector 17": 0xe0100,
	} {
		if !Invisible(r) {
			t.Errorf("%s, U+%04X, is visible", name, r)
		}
	}
	for _, r := range "a Z0-/.\nä語🚀é\u0301→…\u2800" {
		if Invisible(r) {
			t.Errorf("%q, U+%04X, is invisible", r, r)
		}
	}
}
