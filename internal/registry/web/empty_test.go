package web_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/xpkg-dev/xpkg/internal/registry/web"
	"github.com/xpkg-dev/xpkg/internal/registry/web/folder"
	"github.com/xpkg-dev/xpkg/internal/registry/web/webtest"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// bare are packages that have nothing but a type, and one whose only version is removed.
func bare(t *testing.T) (http.Handler, []string) {
	t.Helper()
	var versions []folder.Version
	var paths []string
	for _, kind := range []string{"Provider", "Configuration", "Function"} {
		stream := "apiVersion: meta.pkg.crossplane.io/v1\nkind: " + kind + "\nmetadata: {name: bare}\nspec: {}\n"
		name := "acme/" + strings.ToLower(kind) + "-bare"
		versions = append(versions, webtest.Version(t, name, "v1.0.0", time.Unix(1e9, 0), stream))
		for _, part := range []string{"", "/kinds", "/versions", "/graph", "/trust"} {
			paths = append(paths, "/p/registry.example.org/"+name+"@v1.0.0"+part)
		}
		paths = append(paths, "/diff/registry.example.org/"+name+"/v1.0.0..v1.0.0")
	}
	options := webtest.Options()
	facts := catalog.Failed(webtest.Registry+
		"/acme/gone", "v1.0.0", oci.Digest{}, time.Unix(1e9, 0), catalog.IndexError{Code: "X", Message: "It is gone."})
	facts.Version.Error, facts.Version.Status = nil, &catalog.Status{State: catalog.Removed}
	options.Removed = []catalog.Facts{facts}
	return newHandler(t, versions, options), append(
		paths, "/", "/search", "/p/registry.example.org/acme/gone", "/search?q=none", "/search?type=Nothing",
		"/search?q=bare&type=Nothing",
	)
}

// TestEmptyListsSayWhyAndWhatToDo opens the pages of an empty index and of packages without anything. No list is empty
// and no section is only a heading. Each note instead of a list has a sentence, and a link or a command to continue
// with.
func TestEmptyListsSayWhyAndWhatToDo(t *testing.T) {
	bareHandler, barePaths := bare(t)
	empty, err := folder.New(nil, webtest.Options())
	if err != nil {
		t.Fatal(err)
	}
	for _, login := range []string{"", "/login"} {
		h, err := web.New(empty, web.Options{Login: login})
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{
			"/", "/search", "/search?q=none", "/search?type=Provider", "/search?q=none&group=a.example.org",
		} {
			d := open(t, h, path)
			d.checkEmpty()
			if hasLogin := slices.Contains(d.links(), login); login != "" && !strings.Contains(path, "?") && !hasLogin {
				t.Errorf("%s does not lead to the login", path)
			}
			d.contains([]string{"There are no packages", "No package and no kind"}[min(strings.Count(path, "?"), 1)])
		}
	}
	notes := 0
	for _, path := range barePaths {
		notes += open(t, bareHandler, path).checkEmpty()
	}
	if notes < 20 {
		t.Errorf("the pages have %d notes", notes)
	}
}

// checkEmpty checks the lists of a page, and returns the number of notes that stand for one.
func (d *document) checkEmpty() (notes int) {
	d.t.Helper()
	for _, n := range d.elements("ul", "ol", "dl", "tbody", "select", "section", "main") {
		var heading string
		rows := 0
		for c := range n.ChildNodes() {
			if c.Type == html.ElementNode && strings.HasPrefix(c.Data, "h") {
				heading += textOf(c)
			} else if c.Type == html.ElementNode {
				rows++
			}
		}
		if rows == 0 || strings.TrimSpace(textOf(n)) == heading {
			d.t.Errorf("%s has an empty %s %s%s", d.path, n.Data, attribute(n, "class"), heading)
		}
	}
	for _, n := range d.all(func(n *html.Node) bool {
		return attribute(n, "class") == "empty" || strings.HasSuffix(attribute(n, "class"), " none")
	}) {
		next := slices.ContainsFunc(
			slices.Collect(n.Descendants()), func(c *html.Node) bool { return c.Data == "a" || c.Data == "code" },
		)
		if notes++; len(textOf(n)) < 40 || !next {
			d.t.Errorf("%s does not say enough: %q", d.path, textOf(n))
		}
	}
	return notes
}
