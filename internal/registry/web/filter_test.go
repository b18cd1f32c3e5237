package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"golang.org/x/net/html"

	"github.com/xpkg-dev/xpkg/internal/registry/web/folder"
	"github.com/xpkg-dev/xpkg/internal/registry/web/webtest"
	"github.com/xpkg-dev/xpkg/internal/testing/browser"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
)

// manyKinds are more kinds than the largest Provider has.
const manyKinds = 2_100

// largePackage returns the names of the kinds of a package, each with its group, and a handler of it.
func largePackage(t *testing.T) ([]string, http.Handler) {
	t.Helper()
	stream := strings.Builder{}
	stream.WriteString(
		"apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: large}\nspec:\n  controller: {image: example.org/x:v1}\n",
	)
	var names []string
	for i := range manyKinds {
		group, kind := fmt.Sprintf("g%d.example.org", i%30),
			fmt.Sprintf("%s%c%c", []string{"Bucket", "Topic", "Role"}[i%3], 'a'+i/26%26, 'a'+i%26)
		kind += strings.Repeat("x", i/676)
		names = append(names, kind+" v1 "+group)
		stream.WriteString(publish.Definition(group, kind, "A kind."))
	}
	return names, newHandler(t, []folder.Version{
		webtest.Version(t, "acme/large", "v1.0.0", time.Unix(1e9, 0), stream.String()),
	}, webtest.Options())
}

// shownKinds lists the kinds on the page that are not hidden, in the form of [largePackage].
const shownKinds = `[...document.querySelectorAll(".kindlist li")].filter((li) => li.checkVisibility()).map((li) => li.textContent + " " + li.closest(".kindgroup").querySelector("h3").textContent)`

// TestTheFilterCoversAllKinds filters the kinds of a large package by words of their names and groups: by the server,
// with a form without scripts, and with the script, which shows kinds that the server has hidden. The first page stays
// small.
func TestTheFilterCoversAllKinds(t *testing.T) {
	if testing.Short() {
		t.Skip("the browser needs more than a few seconds")
	}
	names, h := largePackage(t)
	const page = "/p/registry.example.org/acme/large"
	matching := func(query string) []string {
		out := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
			return slices.ContainsFunc(
				strings.Fields(query), func(w string) bool { return !strings.Contains(strings.ToLower(name), strings.ToLower(w)) },
			)
		})
		slices.Sort(out)
		return out
	}
	queries := []string{
		"", "bucket", "BUCKET g7.", "xxx", "topic xx g2", "v1", "none", strings.Fields(names[manyKinds-1])[0], `"><script>`,
	}
	for _, q := range queries {
		d := open(t, h, page+"@v1.0.0/kinds?q="+url.QueryEscape(q))
		var got []string
		rows := 0
		for _, li := range d.elements("li") {
			if attribute(li.Parent, "class") != "kindlist" {
				continue
			}
			rows++
			isHidden := func(a html.Attribute) bool { return a.Key == "hidden" }
			if !slices.ContainsFunc(li.Attr, isHidden) {
				got = append(got, textOf(li)+" "+textOf(li.Parent.PrevSibling))
			}
		}
		slices.Sort(got)
		if want := matching(q); rows != manyKinds || !slices.Equal(got, want) {
			t.Errorf("%q: %d of %d kinds are shown, want %d", q, len(got), rows, len(want))
		}
		if nothing := strings.Contains(d.text, `role="status" hidden`); nothing == (len(got) == 0) {
			t.Errorf("%q: the note about no kind is hidden: %t", q, nothing)
		}
	}
	if size := len(open(t, h, page).text); size > 20<<10 {
		t.Errorf("the first page has %d bytes", size)
	}
	server, b := serveBrowser(t, h)
	for _, noScript := range []bool{true, false} {
		tab := b.Tab(browser.View{Width: 1200, Height: 900, NoScript: noScript})
		for i, q := range []string{"topic xx g2", "none"} {
			tab.Open(server + page)
			tab.Do(chromedp.SendKeys(chromedp.CSS("#kind-filter"), q))
			tab.Follow(chromedp.KeyEvent(kb.Enter))
			if got := browser.Evaluate[[]string](
				tab, shownKinds,
			); !slices.Equal(slices.Sorted(slices.Values(got)), matching(q)) {
				t.Errorf("the form shows %d kinds for %q without scripts (%t), want %d", len(got), q, noScript, len(matching(q)))
			}
			if next := []string{"BUCKET g7.", ""}[i]; !noScript {
				browser.Evaluate[bool](tab, fmt.Sprintf(
					`(() => { const box = document.querySelector("#kind-filter"); box.value = %q; return box.dispatchEvent(new Event("input")); })()`,
					next,
				))
				if got := browser.Evaluate[[]string](
					tab, shownKinds,
				); !slices.Equal(slices.Sorted(slices.Values(got)), matching(next)) {
					t.Errorf("the script shows %d kinds for %q after %q, want %d", len(got), next, q, len(matching(next)))
				}
			}
		}
	}
}
