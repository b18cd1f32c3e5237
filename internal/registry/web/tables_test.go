package web_test

import (
	"net/http"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/testing/browser"
)

// borders lists the cells with a vertical border and without space between it and the text.
const borders = `[...document.querySelectorAll("th, td")].filter((cell) => {
  const style = getComputedStyle(cell);
  return ["Left", "Right"].some((side) => style["border" + side + "Style"] !== "none" && parseFloat(style["padding" + side]) < 4);
}).map((cell) => cell.textContent)`

// TestBordersOfCellsHaveSpace checks the tables of the pages, and a table of the documentation site, which has the
// style sheet of the pages and its own.
func TestBordersOfCellsHaveSpace(t *testing.T) {
	if testing.Short() {
		t.Skip("the browser needs more than a few seconds")
	}
	mux := http.NewServeMux()
	mux.Handle("/", newTestHandler(t))
	mux.HandleFunc("/style.css", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, "assets/style.css") })
	mux.HandleFunc("/site.css", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, "../../../tools/site/assets/site.css")
	})
	mux.HandleFunc("/document", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(`<!doctype html><link rel="stylesheet" href="/style.css"><link rel="stylesheet" href="/site.css"><div class="page"><main class="prose">` +
			`<div class="scroll"><table><thead><tr><th>a</th><th class="right">b</th></tr></thead><tbody><tr><td>c</td><td class="right">d</td></tr></tbody></table></div></main></div>`))
	})
	server, b := serveBrowser(t, mux)
	tab := b.Tab(browser.View{Width: 1200, Height: 900})
	for _, path := range []string{"/document", boats, boats + "@v2.0.0/versions"} {
		tab.Open(server + path)
		if browser.Evaluate[int](tab, `document.querySelectorAll("th").length`) == 0 {
			t.Errorf("%s has no table", path)
		}
		if found := browser.Evaluate[[]string](tab, borders); len(found) > 0 {
			t.Errorf("%s has cells without space at their borders: %q", path, found)
		}
	}
}
