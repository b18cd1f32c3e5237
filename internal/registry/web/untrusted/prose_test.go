package untrusted_test

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"pgregory.net/rapid"

	"github.com/xpkg-dev/xpkg/internal/registry/web/untrusted"
)

// proseOf returns the text of HTML with a line break before each paragraph and line, and the targets of its links.
func proseOf(t interface{ Fatal(...any) }, source string) (text string, links []string) {
	root, err := html.Parse(strings.NewReader(source))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for n := range root.Descendants() {
		switch {
		case n.Type == html.TextNode:
			out.WriteString(n.Data)
		case n.Data == "p":
			out.WriteString("\n\n")
		case n.Data == "br":
			out.WriteString("\n")
		case n.Data == "a":
			links = append(links, n.Attr[0].Val)
		}
	}
	return strings.TrimSpace(out.String()), links
}

// TestProseIsReflowedInAnyLayout breaks the lines of random paragraphs at any space, and addresses also where they can
// be divided. The result has the paragraphs without these breaks, and exactly the addresses that are complete as links.
func TestProseIsReflowedInAnyLayout(t *testing.T) {
	whole := []string{
		"https://example.org", "https://docs.example.org/a/b-c.html", "https://example.org/a_(b)",
		"https://example.org:8443/x?a=b&c=d#e.f", "https://en.example.org/q?name=x-y_z",
	}
	others := []string{
		"https://localhost:8080", "https://example.org/<name>", "https://example.org/{id}", "https://example.org/a...",
		"https://example.org/$HOME", "http://example.org",
		"xhttps://example.org", "https://user:secret@example.org", "https://192.0.2.1/", "javascript:alert(1)", "<script>",
		"a", "of", "The", "fields", "&amp;", "'x'",
	}
	marks := []string{"%s", "%s.", "%s,", "(%s)", "\"%s\"", "<%s>", "(see %s).", "%s?", "`%s`"}
	rapid.Check(t, func(t *rapid.T) {
		var want, links []string
		var written strings.Builder
		for i := range rapid.IntRange(1, 3).Draw(t, "paragraphs") {
			var words []string
			for range rapid.IntRange(1, 12).Draw(t, "words") {
				if word := rapid.SampledFrom(slices.Concat(whole, others)).Draw(t, "word"); slices.Contains(whole, word) {
					links = append(links, word)
					word = strings.Replace(rapid.SampledFrom(marks).Draw(t, "mark"), "%s", word, 1)
					words = append(words, strings.Fields(word)...)
				} else {
					words = append(words, word)
				}
			}
			if i > 0 {
				written.WriteString("\n\n")
			}
			for j, word := range words {
				if j > 0 {
					written.WriteString(rapid.SampledFrom([]string{" ", "\n", "\r\n"}).Draw(t, "space"))
				}
				divide := slices.IndexFunc(
					[]string{"b-c", "?a=", "name=", "&c"}, func(part string) bool { return strings.Contains(word, part) },
				)
				if divide >= 0 && rapid.Bool().Draw(t, "divide") {
					at := strings.IndexAny(word, "-=&?") + 1
					word = word[:at] + "\n" + word[at:]
				}
				written.WriteString(word)
			}
			want = append(want, strings.Join(words, " "))
		}
		text, found := proseOf(t, string(untrusted.Prose(written.String())))
		if got := strings.Join(want, "\n\n"); text != got {
			t.Fatalf("%q\nbecame %q\nwant   %q", written.String(), text, got)
		}
		if !slices.Equal(found, links) {
			t.Fatalf("%q has the links %q, want %q", written.String(), found, links)
		}
	})
}

// TestProseIsSafe joins random texts with addresses and parts of HTML.
func TestProseIsSafe(t *testing.T) {
	parts := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
		"https://", "https://a.example/", "<a href=", "\"", "'", ">", "&quot;", "\n", " ", "javascript:", "@", "\\",
	}))
	rapid.Check(t, func(t *rapid.T) {
		source := strings.Join(rapid.SliceOf(parts).Draw(t, "parts"), "")
		out := string(untrusted.Prose(source))
		checkSafe(t, source, out)
		if text, _ := proseOf(t, out); strings.Join(strings.Fields(text), "") != strings.Join(strings.Fields(source), "") &&
			!strings.Contains(source, "\x00") && !strings.Contains(source, "\r") {
			t.Errorf("%q became %q", source, text)
		}
	})
}

func TestProse(t *testing.T) {
	for source, want := range map[string]string{
		"":                                "",
		"The empty\nstring.\n\nA second.": "<p>The empty string.</p><p>A second.</p>",
		"One of:\n- a\n  of these\n- b\n1. c\nIt is.": "<p>One of:<br>- a of these<br>- b<br>1. c It is.</p>",
		"See:\n    kind: A\n\tname: b\n":              "<p>See:<br>kind: A<br>name: b</p>",
		"https://example.org/docs/\nguide/a.html and": `<p><a href="https://example.org/docs/guide/a.html" rel="nofollow noopener ugc">https://example.org/docs/guide/a.html</a> and</p>`,
		"https://example.org/\nThe end":               `<p><a href="https://example.org/" rel="nofollow noopener ugc">https://example.org/</a> The end</p>`,
		"<b>&https://a.example/?a&b</b>":              `<p>&lt;b&gt;&amp;https://a.example/?a&amp;b&lt;/b&gt;</p>`,
	} {
		if got := string(untrusted.Prose(source)); got != want {
			t.Errorf("Prose(%q) = %s, want %s", source, got, want)
		}
	}
}
