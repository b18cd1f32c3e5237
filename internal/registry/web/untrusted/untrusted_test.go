package untrusted_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/net/html"
	"pgregory.net/rapid"

	"github.com/xpkg-dev/xpkg/internal/registry/web/untrusted"
)

func TestLinksHaveSafeSchemes(t *testing.T) {
	for address, want := range map[string]string{
		"https://example.org/a?b#c": "https://example.org/a?b#c", "http://example.org": "http://example.org",
		" https://example.org ": "https://example.org",
		"mailto:a@example.org":  "mailto:a@example.org", "HTTPS://example.org": "https://example.org",
		"javascript:alert(1)": "", "JaVaScRiPt:alert(1)": "", "java\tscript:alert(1)": "", "\x01javascript:alert(1)": "",
		"data:text/html,x": "", "vbscript:x": "",
		"file:///etc/passwd": "", "//example.org": "", "/x": "", "x": "", "": "", "https:example.org": "", "https://": "",
		"https://user:secret@example.org": "",
		"https://example.org/\nx":         "", `https:\\example.org`: "", "mailto:": "",
		"mailto:a@example.org?bcc=b@example.org": "", "blob:https://example.org/x": "",
		"https://example.org/" + strings.Repeat("a", 3000): "",
	} {
		if got := untrusted.Link(address); got != want {
			t.Errorf("Link(%q) = %q, want %q", address, got, want)
		}
	}
}

func TestInvisibleCharactersBecomeVisible(t *testing.T) {
	for text, want := range map[string]string{
		"plain\ttext\n": "plain\ttext\n", "é 漢 🚢": "é 漢 🚢", "a\u202eb": "a[U+202E]b", "\u2066x\u2069": "[U+2066]x[U+2069]",
		"\u200b": "[U+200B]", "\ufeff": "[U+FEFF]",
		"\x1b[31m": "[U+001B][31m", "\x00": "[U+0000]", "❤\ufe0f": "❤\ufe0f", "a\ufe0f": "a[U+FE0F]", "\xff": "[U+FFFD]",
		"\U000e0041": "[U+E0041]", "\u061c": "[U+061C]",
		"e" + strings.Repeat("\u0301", 9): "e" + strings.Repeat("\u0301", 4),
	} {
		if got := string(untrusted.Visible([]byte(text))); got != want {
			t.Errorf("Visible(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestMarkdownKeepsItsStructure(t *testing.T) {
	r := untrusted.NewRenderer("readme-")
	for source, want := range map[string]string{
		"# Title":                  `<h3 id="readme-title">Title</h3>`,
		"# A\n# A":                 `<h3 id="readme-a">A</h3>` + "\n" + `<h3 id="readme-a-1">A</h3>`,
		"[x](#A-B)":                `<p><a href="#readme-a-b" rel="nofollow noopener ugc">x</a></p>`,
		"[x](https://example.org)": `<p><a href="https://example.org" rel="nofollow noopener ugc">x</a></p>`,
		"https://example.org":      `<p><a href="https://example.org" rel="nofollow noopener ugc">https://example.org</a></p>`,
		"[x](docs/y.md)":           `<p>x</p>`, "[x](javascript:alert(1))": `<p>x</p>`, "[x](//example.org)": `<p>x</p>`,
		"![alt](https://example.org/i.png)":                    `<p><a href="https://example.org/i.png" class="image" rel="nofollow noopener ugc">alt</a></p>`,
		"![alt](i.png)":                                        `<p>alt</p>`,
		"[![alt](https://a.example/i.png)](https://b.example)": `<p><a href="https://b.example" rel="nofollow noopener ugc">alt</a></p>`,
		"|a|b|c|\n|:-:|-:|-|\n|1|2|3|": "<table>\n<thead>\n<tr>\n<th class=\"center\">a</th>\n<th class=\"right\">b</th>\n<th>c</th>\n</tr>\n</thead>\n" +
			"<tbody>\n<tr>\n<td class=\"center\">1</td>\n<td class=\"right\">2</td>\n<td>3</td>\n</tr>\n</tbody>\n</table>",
		"a <b>b</b>": `<p>a b</p>`, "`<b>`": `<p><code>&lt;b&gt;</code></p>`, "~~a~~": `<p><del>a</del></p>`,
		"3. a": "<ol start=\"3\">\n<li>a</li>\n</ol>",
	} {
		if got := strings.TrimSpace(string(r.Markdown(source))); got != want {
			t.Errorf("Markdown(%q) =\n%s, want\n%s", source, got, want)
		}
	}
}

// allowed are the elements and attributes that a part of a page can have.
var allowed = map[string]string{
	"p": "", "br": "", "hr": "", "h3": "id", "h4": "id", "h5": "id", "h6": "id", "ul": "", "ol": "start", "li": "",
	"blockquote": "", "pre": "class", "code": "", "em": "",
	"strong": "", "del": "", "table": "", "thead": "", "tbody": "", "tr": "", "th": "class", "td": "class",
	"a": "href rel class", "span": "class",
}

// checkSafe fails if HTML has an element, attribute or address that is not allowed.
func checkSafe(t interface{ Errorf(string, ...any) }, source, out string) {
	z := html.NewTokenizer(strings.NewReader(out))
	for z.Next() != html.ErrorToken {
		token := z.Token()
		switch token.Type {
		case html.CommentToken, html.DoctypeToken:
			t.Errorf("%q has %s", source, token)
		case html.StartTagToken, html.SelfClosingTagToken:
			attributes, ok := allowed[token.Data]
			if !ok {
				t.Errorf("%q has the element %s", source, token)
			}
			for _, a := range token.Attr {
				if !strings.Contains(" "+attributes+" ", " "+a.Key+" ") {
					t.Errorf("%q has the attribute %s", source, token)
				}
				if a.Key == "href" && !strings.HasPrefix(a.Val, "#readme-") && untrusted.Link(a.Val) == "" {
					t.Errorf("%q has the address %q", source, a.Val)
				}
				if a.Key == "id" && !strings.HasPrefix(a.Val, "readme-") {
					t.Errorf("%q has the identifier %q", source, a.Val)
				}
			}
		}
	}
}

func FuzzMarkdownIsSafe(f *testing.F) {
	for _, s := range attacks {
		f.Add(s)
	}
	r := untrusted.NewRenderer("readme-")
	f.Fuzz(func(t *testing.T, source string) { checkSafe(t, source, string(r.Markdown(source))) })
}

// attacks are the seeds of the fuzz targets.
var attacks = []string{
	`<script>alert(1)</script>`, `<img src=x onerror=alert(1)>`, `[a](javascript:alert(1))`, `[a](  javascript:alert(1))`,
	`<javascript:alert(1)>`, `![a](javascript:alert(1))`,
	"[a]: javascript:alert(1)\n[a]", `[a](data:text/html;base64,PHNjcmlwdD4=)`,
	`<https://example.org/"onmouseover="alert(1)>`, `[a](https://example.org "x\" onclick=\"alert(1)")`,
	"| a |\n|---|\n| <svg onload=alert(1)> |", "```\n</code></pre><script>alert(1)</script>\n```",
	"~~~html\n<script>\n~~~", "# <a name=x>", "# a {#id onclick=x}", `&#x6A;avascript:alert(1)`,
	`[a](&#106;avascript:alert(1))`, "[a](java&Tab;script:alert(1))", "<!--><script>alert(1)</script>-->",
	"<a href=\"https://example.org\">x</a>", `\<script>alert(1)</script>`, "[a](<javascript:alert(1)>)",
	"![![a](https://a.example)](javascript:alert(1))", "[![a](x \"onerror=alert(1)\")](https://a.example)",
	"<details open ontoggle=alert(1)>", "<style>*{display:none}</style>", "<base href=//example.org>",
	"- [ ] a\n- [x] b", "https://example.org/<script>", "www.example.org/\"onclick=alert(1)", "a@example.org",
	"&lt;script&gt;", "<math><mtext></mtext><script>alert(1)</script></math>",
}

func TestMarkdownIsSafe(t *testing.T) {
	r := untrusted.NewRenderer("readme-")
	for _, s := range attacks {
		checkSafe(t, s, string(r.Markdown(s)))
	}
}

// TestMarkdownOfMixedAttacksIsSafe joins attacks with parts of Markdown.
func TestMarkdownOfMixedAttacksIsSafe(t *testing.T) {
	r := untrusted.NewRenderer("readme-")
	parts := append([]string{
		"[", "](", ")", "![", "`", "```\n", "> ", "- ", "| ", "\n", "\n\n", "<", ">", "\"", "'", "&", "\\", "*", "_", "~~",
		"#", "\x00", "\u202e",
	}, attacks...)
	rapid.Check(t, func(t *rapid.T) {
		source := strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 1, 12).Draw(t, "parts"), "")
		checkSafe(t, source, string(r.Markdown(source)))
	})
}

// TestMarkdownBombsAreText checks inputs on which parsers need much time or depth.
func TestMarkdownBombsAreText(t *testing.T) {
	r := untrusted.NewRenderer("readme-")
	for name, source := range map[string]string{
		"quotes": strings.Repeat(">", 60_000), "lists": strings.Repeat("- ", 60_000),
		"numbers": strings.Repeat("1. ", 40_000), "brackets": strings.Repeat("[", 100_000),
		"emphasis": strings.Repeat("*", 100_000), "mixed emphasis": strings.Repeat("*a_", 60_000),
		"links": strings.Repeat("[a](", 60_000), "images": strings.Repeat("![", 60_000),
		"autolinks": strings.Repeat("<a:", 60_000), "entities": strings.Repeat("&", 200_000),
		"code": strings.Repeat("`a", 60_000), "size": strings.Repeat("a\n\n", 200_000),
		"indent": strings.Repeat(" ", 10_000) + "a", "tables": "|" + strings.Repeat("a|", 20_000) + "\n|" +
			strings.Repeat("-|", 20_000), "references": strings.Repeat("[a]: b\n", 30_000) + strings.Repeat("[a]", 30_000),
		"nested quotes in lines": strings.Repeat(strings.Repeat("> ", 30)+"a\n", 2000),
		"html":                   strings.Repeat("<div>", 50_000), "strike": strings.Repeat("~~a", 60_000),
		"ticks":            strings.Repeat("`", 1) + strings.Repeat("``", 50_000),
		"open parentheses": "[a](" + strings.Repeat("(", 100_000), "deep list lines": deepList(),
		"escapes": strings.Repeat(`\`, 200_000), "tabs": strings.Repeat("\t", 100_000) + "a",
		"titles": strings.Repeat(`[a](b "`, 30_000),
	} {
		t.Run(name, func(t *testing.T) { checkSafe(t, name, string(r.Markdown(source))) })
	}
}

// deepList returns a list that is indented by two more spaces in each line.
func deepList() string {
	var out strings.Builder
	for i := range 400 {
		out.WriteString(strings.Repeat("  ", i) + "- a\n")
	}
	return out.String()
}

func FuzzYAMLIsEscaped(f *testing.F) {
	f.Add("a: b # c\n- 'x': 1\n---\n\"k\": <script>\n")
	for _, s := range attacks {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		out := string(untrusted.YAML(source))
		checkSafe(t, source, out)
		var text strings.Builder
		z := html.NewTokenizer(strings.NewReader(out))
		for z.Next() != html.ErrorToken {
			if token := z.Token(); token.Type == html.TextToken {
				text.WriteString(token.Data)
			}
		}
		// A parser of HTML replaces carriage returns by line feeds.
		plain := func(s string) string {
			return strings.Map(func(r rune) rune {
				if r == 0 || r == unicode.ReplacementChar || r == '\r' || r == '\n' {
					return -1
				}
				return r
			}, s)
		}
		if plain(text.String()) != plain(source) {
			t.Errorf("YAML(%q) has the text %q", source, text.String())
		}
	})
}

func TestYAMLHasColors(t *testing.T) {
	got := string(untrusted.YAML("a: 1 # one\n- b: \"x\"\n"))
	want := `<span class="k">a</span>: <span class="n">1</span><span class="c"> # one</span>` + "\n" +
		`- <span class="k">b</span>: <span class="s">&#34;x&#34;</span>` + "\n"
	if got != want {
		t.Errorf("YAML = %s, want %s", got, want)
	}
}

func TestBitmapIconsAreEncodedAgain(t *testing.T) {
	for name, data := range map[string][]byte{
		"png": icon(t, func(w *bytes.Buffer, i image.Image) error { return png.Encode(w, i) }, 8, 8),
		"jpg": icon(t, func(w *bytes.Buffer, i image.Image) error { return jpeg.Encode(w, i, nil) }, 8, 8),
		"gif": icon(t, func(w *bytes.Buffer, i image.Image) error { return gif.Encode(w, i, nil) }, 8, 8),
	} {
		got, err := untrusted.ParseIcon(append(data, "<script>alert(1)</script>"...))
		if err != nil || got.MediaType != "image/png" || bytes.Contains(got.Data, []byte("script")) {
			t.Errorf("%s: %v, %s", name, err, got.MediaType)
		}
	}
}

func icon(t testing.TB, encode func(*bytes.Buffer, image.Image) error, width, height int) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := encode(&out, image.NewRGBA(image.Rect(0, 0, width, height))); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestUnusableIconsAreRefused(t *testing.T) {
	encode := func(w *bytes.Buffer, i image.Image) error { return png.Encode(w, i) }
	valid := icon(t, encode, 8, 8)
	for name, data := range map[string][]byte{
		"empty": nil, "text": []byte("hello"), "html": []byte("<html><script>alert(1)</script></html>"),
		"truncated": valid[:40], "wide": icon(t, encode, 5000, 1),
		"entities": []byte(
			`<!DOCTYPE svg [<!ENTITY a "b"><!ENTITY c "&a;&a;">]><svg xmlns="http://www.w3.org/2000/svg">&c;</svg>`,
		),
		"unclosed":  []byte(`<svg xmlns="http://www.w3.org/2000/svg"><g>`),
		"deep":      []byte(`<svg>` + strings.Repeat("<g>", 100) + strings.Repeat("</g>", 100) + `</svg>`),
		"many":      []byte(`<svg>` + strings.Repeat("<g/>", 20_000) + `</svg>`),
		"too large": append([]byte("<svg>"), bytes.Repeat([]byte(" "), 600<<10)...),
		"two roots": []byte(`<p/><svg></svg>`),
	} {
		if _, err := untrusted.ParseIcon(data); !errors.Is(err, untrusted.ErrNoIcon) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	svg := []byte(
		`<?xml version="1.0"?><!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd"><svg xmlns="http://www.w3.org/2000/svg"/>`,
	)
	if got, err := untrusted.ParseIcon(svg); err != nil || got.MediaType != "image/svg+xml" {
		t.Errorf("a usual SVG is refused: %v", err)
	}
}

func TestDataURIs(t *testing.T) {
	if data, ok := untrusted.DataURI("data:image/png;base64," + base64.StdEncoding.EncodeToString([]byte("x"))); !ok ||
		string(data) != "x" {
		t.Errorf("DataURI = %q, %t", data, ok)
	}
	for _, uri := range []string{
		"", "data:text/html;base64,eA==", "data:image/png,x", "data:image/png;base64,%", "https://example.org/x.png",
	} {
		if _, ok := untrusted.DataURI(uri); ok {
			t.Errorf("DataURI(%q) is accepted", uri)
		}
	}
}

func FuzzParseIcon(f *testing.F) {
	f.Add([]byte(`<svg xmlns="http://www.w3.org/2000/svg"><g/></svg>`))
	f.Add([]byte("\x89PNG\r\n\x1a\n"))
	f.Add([]byte("GIF89a"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if got, err := untrusted.ParseIcon(data); err == nil && got.MediaType != "image/png" &&
			got.MediaType != "image/svg+xml" {
			t.Errorf("media type %s", got.MediaType)
		}
	})
}
