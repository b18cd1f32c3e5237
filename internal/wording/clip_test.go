package wording

import "testing"

func TestClip(t *testing.T) {
	for _, c := range []struct{ text, bytes, characters string }{
		{"", "", ""},
		{"four", "four", "four"},
		{"fives", "five…", "fiv…"},
		{"äöü", "äö…", "äöü"},
		{"aäöüß", "aä…", "aäö…"},
	} {
		if got := Clip(c.text, 4); got != c.bytes {
			t.Errorf("Clip(%q, 4) = %q, want %q", c.text, got, c.bytes)
		}
		if got := ClipCharacters(c.text, 4); got != c.characters {
			t.Errorf("ClipCharacters(%q, 4) = %q, want %q", c.text, got, c.characters)
		}
	}
}
