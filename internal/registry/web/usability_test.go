package web_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/xpkg-dev/xpkg/internal/testing/browser"
)

// visited are the pages that the tests in a browser open.
var visited = []string{
	"/", "/search?q=boat", "/search", boats, boats + "@v1.1.0", boats + "@v2.0.0/kinds", boats + "@v2.0.0/versions",
	boats + "@v2.0.0/trust", harbour + "@v0.4.0/graph", harbour + "@v0.4.0/compositions/harbour",
	"/k/marine.acme.example/Boat", "/k/marine.acme.example/Boat/v1beta1", "/k/sailing.example/Wind",
	"/k/marine.acme.example/Berth", "/g/marine.acme.example",
	"/k/marine.acme.example/Boat/v1/fields/spec/forProvider",
	"/diff/registry.example.org/acme/provider-boats/v1.0.0..v2.0.0", "/none",
}

// contrast is a script that returns the texts of the page whose contrast is below the minimum of WCAG AA.
const contrast = `(() => {
  const parse = (c) => { const m = c.match(/[\d.]+/g).map(Number); return m.length < 4 ? [...m, 1] : m; };
  const blend = (top, under) => top.slice(0, 3).map((v, i) => v * top[3] + under[i] * (1 - top[3])).concat(1);
  const luminance = (c) => { const f = c.slice(0, 3).map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * f[0] + 0.7152 * f[1] + 0.0722 * f[2]; };
  const background = (e) => { let layers = []; for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c[3] > 0) layers.push(c); if (c[3] === 1) break; } let out = [255, 255, 255, 1]; while (layers.length) out = blend(layers.pop(), out); return out; };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.textContent.trim(), e = walker.currentNode.parentElement, style = getComputedStyle(e);
    if (!text || !e.checkVisibility({opacityProperty: true, visibilityProperty: true}) || e.closest('.hidden, .skip, svg, option')) continue;
    const size = parseFloat(style.fontSize), large = size >= 24 || size >= 18.66 && Number(style.fontWeight) >= 700;
    const under = background(e), over = blend(parse(style.color), under), a = luminance(over), b = luminance(under);
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < (large ? 3 : 4.5)) found.push(text.slice(0, 40) + ': ' + ratio.toFixed(2));
  }
  return [...new Set(found)];
})()`

// TestTextHasEnoughContrast measures the contrast of all text in both color schemes.
func TestTextHasEnoughContrast(t *testing.T) {
	server, b := browserServer(t)
	for _, dark := range []bool{false, true} {
		tab := b.Tab(browser.View{Width: 1200, Height: 900, Dark: dark})
		for _, path := range visited {
			tab.Open(server + path)
			for _, text := range browser.Evaluate[[]string](tab, contrast) {
				t.Errorf("%s (dark: %t): contrast of %s", path, dark, text)
			}
		}
	}
}

func browserServer(t *testing.T) (string, *browser.Browser) {
	t.Helper()
	if testing.Short() {
		t.Skip("the browser needs more than a few seconds")
	}
	return newServer(t), browser.New(t)
}

// serveBrowser serves a handler for a browser.
func serveBrowser(t *testing.T, h http.Handler) (string, *browser.Browser) {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL, browser.New(t)
}

// TestControlsHaveNames checks the tree that assistive technology reads: every control has a name, and every page has
// its landmarks once.
func TestControlsHaveNames(t *testing.T) {
	server, b := browserServer(t)
	tab := b.Tab(browser.View{Width: 1200, Height: 900})
	controls := []string{
		"link", "button", "searchbox", "textbox", "combobox", "comboboxMenuList", "PopUpButton", "DisclosureTriangle",
		"listbox", "image", "img", "region", "navigation", "complementary",
	}
	for _, path := range visited {
		tab.Open(server + path)
		landmarks := map[string]int{}
		for _, n := range browser.Call(tab, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{}).Nodes {
			if n.Ignored || n.Role == nil {
				continue
			}
			role, name := unquote(n.Role.Value), ""
			if n.Name != nil {
				name = unquote(n.Name.Value)
			}
			landmarks[role]++
			if slices.Contains(controls, role) && strings.TrimSpace(name) == "" {
				t.Errorf("%s has a %s without a name", path, role)
			}
		}
		for _, role := range []string{"main", "banner", "contentinfo", "search"} {
			if landmarks[role] != 1 {
				t.Errorf("%s has %d landmarks %s, want 1: %v", path, landmarks[role], role, landmarks)
			}
		}
	}
}

func unquote(v fmt.Stringer) string { return strings.Trim(v.String(), `"`) }

// TestPhonesNeedNoHorizontalScroll checks the width of pages on small screens.
func TestPhonesNeedNoHorizontalScroll(t *testing.T) {
	server, b := browserServer(t)
	for _, width := range []int64{320, 390} {
		tab := b.Tab(browser.View{Width: width, Height: 800, Phone: true})
		for _, path := range visited {
			tab.Open(server + path)
			if got := browser.Evaluate[int64](tab, "document.documentElement.scrollWidth"); got > width {
				wide := browser.Evaluate[[]string](
					tab,
					`[...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > screen.width + 1 && !e.closest('.scroll, pre, .tabs, table')).slice(0, 5).map(e => e.tagName + '.' + e.className + ': ' + e.textContent.slice(0, 40))`,
				)
				t.Errorf("%s is %d wide on a screen of %d: %q", path, got, width, wide)
			}
		}
	}
}

// TestPagesWorkWithoutJavaScript searches, opens a kind, follows a link to a part of its fields and compares two
// versions without JavaScript.
func TestPagesWorkWithoutJavaScript(t *testing.T) {
	server, b := browserServer(t)
	tab := b.Tab(browser.View{Width: 1200, Height: 900, NoScript: true})
	tab.Open(server)
	tab.Do(chromedp.SendKeys(chromedp.CSS("#q"), "Boat"+kb.Enter), chromedp.WaitVisible(chromedp.CSS(".results")))
	tab.Do(
		chromedp.Click(chromedp.CSS(`.kinds a[href="/k/marine.acme.example/Boat"]`)),
		chromedp.WaitVisible(chromedp.CSS(".tree-of-fields")),
	)
	tab.Do(
		chromedp.Click(chromedp.CSS(`li[id=".spec.forProvider.paint"] summary`)),
		chromedp.WaitVisible(chromedp.CSS(`li[id=".spec.forProvider.paint.coats"]`)),
	)
	tab.Open(server + boats + "@v2.0.0/versions")
	tab.Do(chromedp.Click(chromedp.CSS(`.compare button`)), chromedp.WaitVisible(chromedp.CSS(`.changed`)))
	// The browser's own commands have no address.
	if scripts := slices.DeleteFunc(tab.Scripts(), func(s string) bool { return s == "" }); len(scripts) > 0 {
		t.Errorf("scripts ran: %q", scripts)
	}
}

// TestSuggestionsFollowTheKeyboard types the beginning of a kind and selects a suggestion with the keyboard.
func TestSuggestionsFollowTheKeyboard(t *testing.T) {
	server, b := browserServer(t)
	tab := b.Tab(browser.View{Width: 1200, Height: 900})
	tab.Open(server)
	tab.Do(chromedp.SendKeys(chromedp.CSS("#q"), "boat"))
	browser.Evaluate[bool](
		tab,
		`new Promise((done) => { const wait = () => document.querySelector("#suggestions li") ? done(true) : requestAnimationFrame(wait); wait(); })`,
	)
	if got := browser.Evaluate[string](tab, `document.getElementById("q").getAttribute("aria-expanded")`); got != "true" {
		t.Errorf("aria-expanded is %q", got)
	}
	tab.Do(chromedp.KeyEvent(kb.ArrowDown))
	if got := browser.Evaluate[string](
		tab, `document.getElementById("q").getAttribute("aria-activedescendant")`,
	); got != "suggestion-0" {
		t.Errorf("aria-activedescendant is %q", got)
	}
	tab.Follow(chromedp.KeyEvent(kb.Enter))
	if got := browser.Evaluate[string](tab, "location.pathname"); got != "/k/marine.acme.example/Boat" {
		t.Errorf("the suggestion leads to %s", got)
	}
	if found := append(tab.Violations(), tab.Foreign(server)...); len(found) > 0 {
		t.Errorf("reports or requests: %q", found)
	}
}

// TestOwnPagesHaveNoReports opens every page: nothing is blocked, and nothing is requested from another host.
func TestOwnPagesHaveNoReports(t *testing.T) {
	server, b := browserServer(t)
	tab := b.Tab(browser.View{Width: 1200, Height: 900})
	for _, path := range visited {
		tab.Open(server + path)
		if found := slices.Concat(
			tab.Violations(), tab.Foreign(server), tab.Dialogs(), tab.Scripts("/page.js"),
		); len(found) > 0 {
			t.Errorf("%s: %q", path, found)
		}
	}
}

// TestTheKeyboardReachesEverything moves the focus through a page: it starts at the link to the content, never gets
// lost, and is visible.
func TestTheKeyboardReachesEverything(t *testing.T) {
	server, b := browserServer(t)
	tab := b.Tab(browser.View{Width: 1200, Height: 900})
	tab.Open(server + boats)
	first := ""
	reached := map[string]bool{}
	for range 60 {
		tab.Do(chromedp.KeyEvent(kb.Tab))
		at := browser.Evaluate[string](
			tab,
			`(() => { const e = document.activeElement, s = getComputedStyle(e); return e === document.body ? "" : e.tagName + " " + (e.getAttribute("href") || e.id || e.textContent).trim().slice(0, 60) + (s.outlineStyle === "none" ? " (invisible)" : ""); })()`,
		)
		if first == "" {
			first = at
		}
		reached[at] = true
	}
	if !strings.HasSuffix(first, "#main") {
		t.Errorf("the first stop is %q", first)
	}
	for at := range reached {
		if strings.HasSuffix(at, "(invisible)") {
			t.Errorf("the focus is not visible at %q", at)
		}
	}
	for _, want := range []string{"INPUT q", "SUMMARY Manifest"} {
		if !slices.Contains(slices.Collect(maps.Keys(reached)), want) {
			t.Errorf("the keyboard does not reach %s: %q", want, slices.Sorted(maps.Keys(reached)))
		}
	}
}
