package terminal

import "testing"

// Text has no meaning in Markdown, except for commands in back-ticks, and notifies no user.
func TestEscapeMarkdown(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                             "plain",
		"**a** _b_ [c](d) <e> | \\":         `\*\*a\*\* \_b\_ \[c\](d) &lt;e&gt; \| \\`,
		"run `xpkg approve a_b | <c>` now":  "run `xpkg approve a_b \\| <c>` now",
		"one ` back-tick <b>":               "one ' back-tick &lt;b&gt;",
		"`a``<img>`b":                       "'a''&lt;img&gt;'b",
		"@everyone and (@acme/team), @@all": "@<!-- -->everyone and (@<!-- -->acme/team), @@<!-- -->all",
		"`@everyone`":                       "`@everyone`",
		"boats:v1@sha256:ab, a@b.test":      "boats:v1@sha256:ab, a@b.test",
	} {
		if got := EscapeMarkdown(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}
