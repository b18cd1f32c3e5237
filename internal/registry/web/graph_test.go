package web_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/registry/web/folder"
	"github.com/xpkg-dev/xpkg/internal/registry/web/webtest"
	"github.com/xpkg-dev/xpkg/internal/testing/browser"
)

// outside lists the labels of a graph that leave their boxes, and the boxes without a title, in three kinds of letters.
const outside = `(() => {
  const graph = document.querySelector("svg.graph"), found = [];
  for (const font of ["", "serif", "monospace"]) {
    if (font) graph.style.fontFamily = font;
    for (const box of graph.querySelectorAll(".box")) {
      const rect = box.querySelector("rect").getBBox(), title = box.querySelector("title").textContent;
      if (!title) found.push("a box has no title");
      for (const label of box.querySelectorAll("text")) {
        const at = label.getBBox();
        if (at.x < rect.x + 4 || at.x + label.getComputedTextLength() > rect.x + rect.width - 4 || at.y < rect.y || at.y + at.height > rect.y + rect.height)
          found.push(font + ": " + label.textContent + " (" + title + "): " + label.getComputedTextLength() + " of " + rect.width);
      }
    }
  }
  return found;
})()`

// TestLabelsOfGraphsAreInTheirBoxes measures the labels of random names and constraints in a browser: on the page, and
// in the picture alone, which has no style sheet.
func TestLabelsOfGraphsAreInTheirBoxes(t *testing.T) {
	if testing.Short() {
		t.Skip("the browser needs more than a few seconds")
	}
	random := rand.New(rand.NewPCG(5, 6))
	name := func(letters string, most int) string {
		var out strings.Builder
		for range 1 + random.IntN(most) {
			out.WriteByte(letters[random.IntN(len(letters))])
		}
		return out.String()
	}
	var dependencies strings.Builder
	for i := range 60 {
		letters := []string{"mw", "il", "abcdefghijklmnopqrstuvwxyz0123456789-", "configuration-aws-"}[i%4]
		constraint := strings.Repeat(">=v1."+name("0123456789", 3)+".0 ", 1+random.IntN(9)) + ">=v1.0.0-" + name("MWabc", 1+i)
		fmt.Fprintf(
			&dependencies, "  - {provider: %s/acme/a%s%d, version: %q}\n", webtest.Registry, name(letters, 80), i, constraint,
		)
	}
	stream := "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata: {name: wide}\nspec:\n  dependsOn:\n" +
		dependencies.String()
	h := newHandler(
		t, []folder.Version{webtest.Version(t, "acme/wide", "v1.0.0", time.Unix(1e9, 0), stream)}, webtest.Options(),
	)
	server, b := serveBrowser(t, h)
	tab := b.Tab(browser.View{Width: 1200, Height: 900})
	for _, path := range []string{
		"/p/registry.example.org/acme/wide@v1.0.0/graph", "/p/registry.example.org/acme/wide@v1.0.0/graph.svg",
	} {
		tab.Open(server + path)
		if n := browser.Evaluate[int](tab, `document.querySelectorAll("svg.graph .box text").length`); n != 2*61 {
			t.Errorf("%s has %d labels", path, n)
		}
		for _, label := range browser.Evaluate[[]string](tab, outside) {
			t.Errorf("%s: %s", path, label)
		}
	}
}
