package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// link is the target of a link in Markdown.
var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// Every link from one document to another leads somewhere, and so does its anchor.
func TestLinks(t *testing.T) {
	root := filepath.Join("..", "..")
	checked := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != root {
			return skip(d, err)
		}
		if d.IsDir() || filepath.Ext(path) != ".md" {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range link.FindAllStringSubmatch(string(content), -1) {
			target := strings.ReplaceAll(m[1], "\n", "")
			if strings.Contains(target, "://") {
				continue
			}
			checked++
			checkLink(t, path, target)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if checked == 0 {
		t.Error("no document has a link: the test looks in the wrong place")
	}
}

func skip(d fs.DirEntry, err error) error {
	if err == nil && d.IsDir() {
		return fs.SkipDir
	}
	return err
}

func checkLink(t *testing.T, from, target string) {
	t.Helper()
	file, anchor, _ := strings.Cut(target, "#")
	path := from
	if file != "" {
		path = filepath.Join(filepath.Dir(from), filepath.FromSlash(file))
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("%s links to %s: %v", from, target, err)
		return
	}
	if anchor == "" {
		return
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Errorf("%s links to %s: %v", from, target, err)
		return
	}
	for line := range strings.Lines(string(content)) {
		if title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") &&
			anchorOf(title) == anchor {
			return
		}
	}
	t.Errorf("%s links to %s, and there is no such heading", from, target)
}

// notAnchor are the characters that an anchor drops from a heading.
var notAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

// anchorOf returns the anchor that code hosts generate for a heading.
func anchorOf(title string) string {
	plain := notAnchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), "")
	return strings.ReplaceAll(plain, " ", "-")
}

// The README links every guide.
func TestReadmeNamesEveryPage(t *testing.T) {
	root := filepath.Join("..", "..")
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"guides", "reference"} {
		pages, err := filepath.Glob(filepath.Join(root, "docs", folder, "*.md"))
		if err != nil || len(pages) == 0 {
			t.Fatal(pages, err)
		}
		for _, page := range pages {
			if name := "docs/" + folder + "/" + filepath.Base(page); !strings.Contains(string(readme), "("+name+")") {
				t.Errorf("README.md does not link to %s", name)
			}
		}
	}
}
