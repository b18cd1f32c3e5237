package export_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/xpkg-dev/xpkg/internal/registry/web"
	"github.com/xpkg-dev/xpkg/internal/registry/web/export"
	"github.com/xpkg-dev/xpkg/internal/registry/web/folder"
	"github.com/xpkg-dev/xpkg/internal/registry/web/webtest"
	"github.com/xpkg-dev/xpkg/internal/testing/browser"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/archive"
)

// write exports the packages of package webtest, and returns the folder.
func write(t *testing.T) string { return writeVersions(t, webtest.Packages(t), webtest.Options()) }

// writeVersions exports packages, and returns the folder.
func writeVersions(t *testing.T, versions []folder.Version, options folder.Options) string {
	t.Helper()
	source, err := folder.New(versions, options)
	if err != nil {
		t.Fatal(err)
	}
	h, err := web.New(source, web.Options{Name: "Acme packages", Static: true})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	result, err := export.Write(t.Context(), h, root, nil)
	if err != nil {
		t.Fatal(err)
	}
	if result.Files < 30 || result.Bytes == 0 {
		t.Errorf("result %+v", result)
	}
	return dir
}

// TestAnInterruptedExportHasNoStartPage ends an export after each of its first files, and on a folder that cannot be
// written.
func TestAnInterruptedExportHasNoStartPage(t *testing.T) {
	source, err := folder.New(webtest.Packages(t), webtest.Options())
	if err != nil {
		t.Fatal(err)
	}
	h, err := web.New(source, web.Options{Name: "Acme packages", Static: true})
	if err != nil {
		t.Fatal(err)
	}
	for after := range 5 {
		dir := t.TempDir()
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		_, err = export.Write(ctx, h, root, func(done, _ int) {
			if done > after {
				cancel()
			}
		})
		cancel()
		if !errors.Is(err, context.Canceled) || exists(filepath.Join(dir, export.StartPage)) {
			t.Errorf("after %d files: %v, and the folder has the start page", after, err)
		}
		_ = root.Close()
		if _, err := export.Write(t.Context(), h, root, nil); !errors.Is(err, archive.ErrCannotWrite) {
			t.Errorf("a folder that cannot be written: %v", err)
		}
	}
}

// TestEveryLinkLeadsToAFile follows every link of every page.
func TestEveryLinkLeadsToAFile(t *testing.T) {
	checkLinks(t, write(t))
}

// TestContentOfFormerVersionsHasNoDeadLinks exports kinds and API versions that the newest version does not have,
// removed versions, and packages whose versions are all excluded.
func TestContentOfFormerVersionsHasNoDeadLinks(t *testing.T) {
	day := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	version := func(name, tag string, state catalog.State, definitions ...string) folder.Version {
		v := webtest.Version(t,
			"acme/"+name, tag, day, "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: "+name+
				"}\nspec:\n  controller: {image: example.org/x:v1}\n"+strings.Join(definitions, ""))
		if state != "" {
			v.Status = &catalog.Status{State: state, Reason: catalog.Broken, Since: day}
		}
		return v
	}
	raft, ferry := publish.Definition("a.example.org", "Raft", "A raft."),
		publish.Definition("a.example.org", "Ferry", "A ferry.")
	renamed := strings.ReplaceAll(raft, "name: v1\n", "name: v2\n")
	if renamed == raft {
		t.Fatal("the API version of the definition has another form")
	}
	checkLinks(t, writeVersions(t, []folder.Version{
		version("provider-rafts", "v1.0.0", "", raft, ferry), version("provider-rafts", "v1.1.0", catalog.Removed, raft),
		version("provider-rafts", "v1.2.0", "", renamed),
		version("provider-rafts", "v1.3.0-rc.1", "", renamed, publish.Definition("a.example.org", "Tug", "A tug.")),
		version("provider-tugs", "v1.0.0", catalog.Yanked, publish.Definition("b.example.org", "Tug", "A tug.")),
		version("provider-tugs", "v1.1.0", catalog.Yanked),
		version("provider-gone", "v1.0.0", catalog.Removed, publish.Definition("c.example.org", "Gone", "Nothing.")),
	}, webtest.Options()))
}

// The pages show what an index states beside the content of its versions: the owners of API groups, and the versions
// that were deleted.
func TestPagesHaveOwnersAndDeletedVersions(t *testing.T) {
	options := webtest.Options()
	options.Owners = []catalog.GroupOwner{{Group: "marine.acme.example", Owner: webtest.Registry + "/acme"}}
	for _, repository := range []string{"provider-boats", "provider-gone"} {
		options.Removed = append(options.Removed,
			catalog.Facts{Repository: webtest.Registry + "/acme/" + repository, Version: catalog.Version{
				Tag: "v9.9.9", Digest: oci.DigestOf([]byte(repository)),
				Status: &catalog.Status{State: catalog.Removed, Reason: catalog.Licence, Message: "not ours"},
			}})
	}
	dir := writeVersions(t, webtest.Packages(t), options)
	checkLinks(t, dir)
	packages := filepath.Join(dir, "p", webtest.Registry, "acme")
	for file, want := range map[string]string{
		filepath.Join(dir, "g", "marine.acme.example", "index.html"):               "configuration of the index",
		filepath.Join(packages, "provider-boats@v2.0.0", "versions", "index.html"): "not ours",
		filepath.Join(packages, "provider-gone", "index.html"):                     "not ours",
		filepath.Join(packages, "provider-gone@", "feed.atom"):                     "not ours",
	} {
		if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s lacks %q: %v", file, want, err)
		}
	}
	for _, name := range []string{"provider-boats@v9.9.9", "provider-gone@v9.9.9"} {
		if exists(filepath.Join(packages, name)) {
			t.Errorf("%s has pages", name)
		}
	}
}

// A package has a link to its replacement if the index has it: any publisher can name one that it does not have.
func TestPagesOfReplacedPackages(t *testing.T) {
	packages := webtest.Packages(t)
	replaced := map[string]string{}
	for i, replacement := range []string{
		"v1.0.0", "v2.0.0", webtest.Registry + "/acme/provider-boats", webtest.Registry + "/acme/provider-boats:v1.0.0",
		webtest.Registry + "/acme/provider-boats:v7.0.0",
		"registry.example.com/acme/ships", "ships", "localhost:5000/ships:v1.0.0", "../../x", "javascript:alert(1)",
	} {
		name := fmt.Sprintf("provider-replaced-%d", i)
		v := webtest.Version(t, "acme/"+name,
			"v1.0.0", time.Unix(1e9, 0), "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: "+name+
				"}\nspec:\n  controller: {image: example.org/x:v1}\n")
		v.Status = &catalog.Status{
			State: catalog.Deprecated, Reason: catalog.Renamed, ReplacedBy: replacement, Since: time.Unix(1e9, 0),
		}
		packages, replaced[name] = append(packages, v), replacement
	}
	dir := writeVersions(t, packages, webtest.Options())
	checkLinks(t, dir)
	linked := 0
	for name, replacement := range replaced {
		text, err := os.ReadFile(filepath.Join(dir, "p", webtest.Registry, "acme", name, "index.html"))
		if err != nil || !strings.Contains(string(text), "Use <code>"+replacement+"</code> instead") &&
			!strings.Contains(string(text), ">"+replacement+"</a> instead") {
			t.Errorf("the page of %s does not name %s: %v", name, replacement, err)
		}
		if strings.Count(string(text), `role="note"`) != 1 || !strings.Contains(string(text), "This package is deprecated") {
			t.Errorf("the page of %s does not state in one banner that the package is deprecated", name)
		}
		if strings.Contains(string(text), ">"+replacement+"</a>") {
			linked++
		}
	}
	if linked != 3 {
		t.Errorf("%d replacements have a link, want 3", linked)
	}
}

// checkLinks follows every link of every page, feed and graph in a folder.
func checkLinks(t *testing.T, dir string) {
	t.Helper()
	pages := 0
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		isPage := strings.HasSuffix(name, ".html")
		if err != nil || d.IsDir() || !isPage && !strings.HasSuffix(name, ".atom") && filepath.Base(name) != "graph.svg" {
			return err
		}
		if isPage {
			pages++
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if isPage && !strings.Contains(string(text), `<meta http-equiv="Content-Security-Policy"`) {
			t.Errorf("%s states no content security policy", name)
		}
		for _, l := range links(t, string(text)) {
			u, err := url.Parse(l)
			if err != nil {
				t.Fatalf("%s links to %q: %v", name, l, err)
			}
			if u.Host != "" || u.Scheme != "" || u.Path == "" {
				continue
			}
			if strings.HasPrefix(u.Path, "/") {
				t.Errorf("%s has the absolute link %s", name, l)
			}
			if target := filepath.Join(filepath.Dir(name), filepath.FromSlash(u.Path)); !exists(target) {
				t.Errorf("%s links to %s, which is no file", name, l)
			}
		}
		return nil
	})
	if err != nil || pages < 20 {
		t.Errorf("%d pages: %v", pages, err)
	}
}

func links(t *testing.T, text string) []string {
	t.Helper()
	var out []string
	z := html.NewTokenizer(strings.NewReader(text))
	for z.Next() != html.ErrorToken {
		for _, a := range z.Token().Attr {
			if a.Key == "href" || a.Key == "src" || a.Key == "action" {
				out = append(out, a.Val)
			}
		}
	}
	return out
}

func exists(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular()
}

// TestExportsAreReproducible compares two exports.
func TestExportsAreReproducible(t *testing.T) {
	a, b := write(t), write(t)
	err := filepath.WalkDir(a, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(a, name)
		if err != nil {
			return err
		}
		first, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		second, err := os.ReadFile(filepath.Join(b, rel))
		if err != nil || string(first) != string(second) {
			t.Errorf("%s differs: %v", rel, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestFilesWorkWithoutAServer opens files in a browser and follows links.
func TestFilesWorkWithoutAServer(t *testing.T) {
	if testing.Short() {
		t.Skip("the browser needs more than a few seconds")
	}
	dir := write(t)
	tab := browser.New(t).Tab(browser.View{Width: 1200, Height: 900})
	for _, file := range []string{
		"index.html", "search/index.html", "k/marine.acme.example/Boat/index.html",
		"p/registry.example.org/acme/provider-boats@v2.0.0/index.html",
	} {
		tab.Open("file://" + path.Join(filepath.ToSlash(dir), file))
		if color := browser.Evaluate[string](
			tab, `getComputedStyle(document.querySelector(".top")).borderBottomStyle`,
		); color != "solid" {
			t.Errorf("%s has no style", file)
		}
		if requests := tab.Foreign("file:///"); len(requests) > 0 {
			t.Errorf("%s requested %q", file, requests)
		}
		if found := append(tab.Violations(), tab.Dialogs()...); len(found) > 0 {
			t.Errorf("%s: %q", file, found)
		}
	}
}
