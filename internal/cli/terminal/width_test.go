package terminal

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// A line of progress fits in its terminal, also with wide characters.
func TestClippedTextFits(t *testing.T) {
	for _, text := range []string{"installing provider/hello", "提供者提供者提供者", "🚀🚀🚀", "a提b供c者"} {
		for limit := range 30 {
			got := Clip(text, limit)
			if Cells(got) > max(limit, 1) || got != text && !strings.HasSuffix(got, "…") || got == text && Cells(text) > limit {
				t.Errorf("%q in %d cells is %q", text, limit, got)
			}
			if !utf8.ValidString(got) {
				t.Errorf("%q is not UTF-8", got)
			}
		}
	}
}

// Wrapped lines fit, keep every word, and leave the commands that users copy in one line.
func TestWrappedTextFits(t *testing.T) {
	for _, text := range []string{
		"error: TagNotFound: the tag v9 of registry.example.org/acme/boats was not found\n  Run `xpkg versions registry.example.org/acme/boats` to see all.\n",
		"configuration/boats  v1.0.0\n├─ needs registry.example.org/acme/ships >=v1.0.0\n│  └─ provider/ships  v1.0.0  Healthy=False  it waits for an approval\n",
		"提供者 提供者 提供者 提供者 提供者 提供者\n\nshort\n",
		"  xpkg install provider registry.example.org/acme/boats:v1.0.0 --wait 2m --yes\n",
		"an `unclosed quote and more words that fill a line of a terminal",
	} {
		for columns := 12; columns < 100; columns++ {
			got := Wrap(text, columns)
			for line := range strings.Lines(got) {
				line = strings.TrimRight(line, "\n")
				words := strings.Trim(strings.Split(line, "`")[0], " │├└─")
				if Cells(line) > columns && strings.Contains(words, " ") && !commandLine().MatchString(line) {
					t.Errorf("in %d columns: %q", columns, line)
				}
			}
			if words(got) != words(text) ||
				strings.Count(got, "`xpkg versions registry.example.org/acme/boats`") != strings.Count(text, "`xpkg v") {
				t.Errorf("in %d columns:\n%s", columns, got)
			}
		}
	}
	if got, want := Wrap("├─ needs a bb\n│  └─ b", 12), "├─ needs a\n│    bb\n│  └─ b"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	if got, want := Wrap("healthy (boats@"+digest+")", 60), "healthy (boats@sha256:0123456789ab…)"; got != want {
		t.Errorf("got %s", got)
	}
}

// words returns the words of a text without the lines of trees.
func words(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \n│├└─", r) }), " ")
}
