// Package site tests the documentation site, which `make site` writes.
package site

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// build writes the site into a temporary folder.
func build(t *testing.T) fs.FS {
	t.Helper()
	if testing.Short() {
		t.Skip("compiles Hugo: skipped with -short")
	}
	folder := t.TempDir()
	out, err := exec.CommandContext(
		t.Context(), "go", "tool", "hugo", "--panicOnWarning", "--quiet", "--destination", folder,
	).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return os.DirFS(folder)
}

// page is a page of the site: the targets of its links, pictures, styles and scripts, and its anchors.
type page struct {
	targets []string
	anchors map[string]bool
}

func read(t *testing.T, site fs.FS, name string) page {
	t.Helper()
	content, err := fs.ReadFile(site, name)
	if err != nil {
		t.Fatal(err)
	}
	root, err := html.Parse(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	p := page{anchors: map[string]bool{}}
	for n := range root.Descendants() {
		for _, a := range n.Attr {
			switch a.Key {
			case "href", "src":
				p.targets = append(p.targets, a.Val)
			case "id":
				if p.anchors[a.Val] {
					t.Errorf("%s has two elements with the ID %s", name, a.Val)
				}
				p.anchors[a.Val] = true
			case "style":
				t.Errorf("%s has an inline style, which the content security policy forbids", name)
			}
			if strings.HasPrefix(a.Key, "on") {
				t.Errorf("%s has the inline script %s", name, a.Key)
			}
		}
	}
	return p
}

// Each link of the site leads to an existing file and anchor, so the site works in any folder and without a network.
func TestEachLinkOfTheSiteLeadsSomewhere(t *testing.T) {
	site := build(t)
	pages := map[string]page{}
	err := fs.WalkDir(site, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && path.Ext(name) == ".html" {
			pages[name] = read(t, site, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(pages) < 40 {
		t.Fatalf("the site has %d pages", len(pages))
	}
	for name, p := range pages {
		for _, target := range p.targets {
			u, err := url.Parse(target)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if u.Scheme != "" {
				if u.Scheme != "https" {
					t.Errorf("%s links to %s", name, target)
				}
				continue
			}
			file := name
			if u.Path != "" {
				file = path.Join(path.Dir(name), u.Path)
			}
			if _, err := fs.Stat(site, file); err != nil {
				t.Errorf("%s links to %s: %v", name, target, err)
			} else if other, ok := pages[file]; ok && u.Fragment != "" && !other.anchors[u.Fragment] {
				t.Errorf("%s links to %s, and there is no such heading", name, target)
			}
		}
	}
	checkSearch(t, site, pages)
}

// checkSearch checks that the index of the search has an entry with text for each page, and anchors that exist.
func checkSearch(t *testing.T, site fs.FS, pages map[string]page) {
	t.Helper()
	raw, err := fs.ReadFile(site, "search-index.js")
	if err != nil {
		t.Fatal(err)
	}
	text, ok := strings.CutPrefix(strings.TrimSpace(string(raw)), "window.searchIndex = ")
	if !ok {
		t.Fatalf("search-index.js starts with %.40q", raw)
	}
	text = strings.TrimSuffix(text, ",\n];") + "]"
	var entries []struct {
		Title, URL, Text string
		Headings         []struct{ ID, Title string }
	}
	if err := json.Unmarshal([]byte(text), &entries); err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		p, ok := pages[e.URL]
		if !ok || e.Title == "" || len(e.Text) < 100 {
			t.Errorf("the entry %q of %q has %d bytes", e.Title, e.URL, len(e.Text))
		}
		for _, h := range e.Headings {
			if !p.anchors[h.ID] || h.Title == "" {
				t.Errorf("%s has no heading %q with the title %q", e.URL, h.ID, h.Title)
			}
		}
	}
	if len(entries) != len(pages)-1 {
		t.Errorf("%d entries for %d pages and the start page", len(entries), len(pages)-1)
	}
}

// Each page with more than three headings lists all of them as its contents.
func TestLongPagesHaveContents(t *testing.T) {
	site := build(t)
	long := 0
	err := fs.WalkDir(site, ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || path.Ext(name) != ".html" {
			return err
		}
		content, err := fs.ReadFile(site, name)
		if err != nil {
			return err
		}
		root, err := html.Parse(bytes.NewReader(content))
		if err != nil {
			return err
		}
		var headings, contents []string
		for n := range root.Descendants() {
			for _, a := range n.Attr {
				switch {
				case a.Key == "id" && (n.Data == "h2" || n.Data == "h3"):
					headings = append(headings, "#"+a.Val)
				case a.Key == "href" && n.Data == "a" && isContents(n):
					contents = append(contents, a.Val)
				}
			}
		}
		if len(headings) <= 3 {
			headings = nil
		} else {
			long++
		}
		if !slices.Equal(headings, contents) {
			t.Errorf("%s has the headings %q and the contents %q", name, headings, contents)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if long < 20 {
		t.Errorf("%d pages have contents", long)
	}
}

// isContents reports whether an element is in the list of the contents of a page.
func isContents(n *html.Node) bool {
	for p := range n.Ancestors() {
		if slices.Contains(p.Attr, html.Attribute{Key: "class", Val: "contents"}) {
			return true
		}
	}
	return false
}

// The menu lists every document.
func TestMenuListsEveryDocument(t *testing.T) {
	menu, err := os.ReadFile("data/menu.yaml")
	if err != nil {
		t.Fatal(err)
	}
	docs := filepath.Join("..", "..", "docs")
	err = filepath.WalkDir(docs, func(name string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".md" {
			return err
		}
		relative, err := filepath.Rel(docs, name)
		if entry := "- " + strings.TrimSuffix(filepath.ToSlash(relative), ".md") +
			"\n"; strings.Count(string(menu), entry) != 1 {
			t.Errorf("tools/site/data/menu.yaml does not contain docs/%s once", relative)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
