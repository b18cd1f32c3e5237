package web_test

import (
	"bytes"
	"compress/gzip"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/registry/web/folder"
	"github.com/xpkg-dev/xpkg/internal/registry/web/webtest"
	"github.com/xpkg-dev/xpkg/internal/testing/corpus"
	"github.com/xpkg-dev/xpkg/pkg/catalog/docs"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// readCorpus reads the newest version of each package of a folder of the corpus, if its name contains the text.
func readCorpus(t testing.TB, kind, contains string) []folder.Version {
	t.Helper()
	dir := filepath.Join(corpus.Dir(t), kind)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []folder.Version
	for _, e := range entries {
		name, tag, ok := strings.Cut(e.Name(), "@")
		if !ok || !strings.Contains(name, contains) {
			continue
		}
		files, err := xpkg.ReadFolder(os.DirFS(filepath.Join(dir, e.Name(), "package")), xpkg.FolderOptions{})
		if err != nil {
			continue
		}
		pkg, _ := files.Inspect(xpkg.ReadOptions{})
		if pkg == nil || pkg.Meta.Kind == "" {
			continue
		}
		repository := webtest.Registry + "/" + strings.ToLower(strings.ReplaceAll(name, "__", "/"))
		out = append(out, folder.Version{Repository: repository, Tag: tag, Package: pkg, Created: time.Unix(1, 0), Examples: readExamples(t, filepath.Join(dir, e.Name(), "examples"))})
	}
	return out
}

func readExamples(t testing.TB, dir string) []docs.Example {
	t.Helper()
	var out []docs.Example
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".yaml") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, part := range strings.Split(string(text), "\n---") {
			out = append(out, docs.Example{Name: d.Name(), YAML: part})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// maxPage is the maximum size of the page of a kind after compression.
const maxPage = 60 << 10

// TestKindsOfRealPackagesRender opens the pages of kinds of real packages: of a sample, or of all with XPKG_WEB=full. Each page
// has every field of its first level, a link or a place for each other field, and is small.
func TestKindsOfRealPackagesRender(t *testing.T) {
	if testing.Short() {
		t.Skip("reads real packages")
	}
	full := os.Getenv("XPKG_WEB") == "full"
	var versions []folder.Version
	if full {
		for _, kind := range []string{"providers", "configurations", "functions"} {
			versions = append(versions, readCorpus(t, kind, "")...)
		}
	} else {
		versions = slices.Concat(readCorpus(t, "providers", "argocd"), readCorpus(t, "providers", "keycloak"), readCorpus(t, "functions", ""))
	}
	h := newHandler(t, versions, webtest.Options())
	source, err := folder.New(versions, webtest.Options())
	if err != nil {
		t.Fatal(err)
	}
	rows, err := source.View(nil).Kinds(t.Context(), "", "", 1_000_000)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	var largest, pages, slowest = 0, 0, time.Duration(0)
	largestPath, slowestPath := "", ""
	for i, k := range rows {
		path := "/k/" + k.Group + "/" + k.Kind
		if seen[path] || !full && i%7 != 0 && k.Kind != "ApplicationSet" {
			continue
		}
		seen[path] = true
		start := time.Now()
		w := serve(h, path, "")
		took := time.Since(start)
		if w.Code != http.StatusOK {
			t.Errorf("%s has the status %d", path, w.Code)
			continue
		}
		pages++
		if took > slowest {
			slowest, slowestPath = took, path
		}
		if size := compressedSize(t, w.Body.Bytes()); size > largest {
			largest, largestPath = size, path
		}
	}
	if largest > maxPage {
		t.Errorf("%s has %d bytes after compression, at most %d are allowed", largestPath, largest, maxPage)
	}
	t.Logf("%d pages; the largest has %d bytes after compression (%s); the slowest took %v (%s)", pages, largest, largestPath, slowest, slowestPath)
}

func compressedSize(t testing.TB, body []byte) int {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(body); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Len()
}

// TestEveryFieldOfTheLargestKindIsReachable follows the links to parts of the fields of a kind with thousands of fields.
func TestEveryFieldOfTheLargestKindIsReachable(t *testing.T) {
	if testing.Short() {
		t.Skip("reads real packages")
	}
	versions := readCorpus(t, "providers", "argocd")
	h := newHandler(t, versions, webtest.Options())
	source, err := folder.New(versions, webtest.Options())
	if err != nil {
		t.Fatal(err)
	}
	since, err := source.View(nil).Since(t.Context(), versions[0].Repository, versions[0].Tag, "applicationsets.argocd.crossplane.io", "ApplicationSet", "v1alpha1")
	if err != nil || len(since) < 5000 {
		t.Fatalf("the kind has %d fields: %v", len(since), err)
	}
	queue, found := []string{"/k/applicationsets.argocd.crossplane.io/ApplicationSet/v1alpha1"}, map[string]bool{"": true}
	visited := map[string]bool{}
	for len(queue) > 0 {
		path := queue[0]
		queue = queue[1:]
		if visited[path] {
			continue
		}
		visited[path] = true
		d := open(t, h, path)
		if size := compressedSize(t, []byte(d.text)); size > maxPage {
			t.Errorf("%s has %d bytes after compression", path, size)
		}
		for _, n := range d.elements("li") {
			if attribute(n, "class") == "f" {
				found[attribute(n, "id")] = true
			}
		}
		for _, n := range d.elements("a") {
			if attribute(n, "class") == "subtree" {
				queue = append(queue, attribute(n, "href"))
			}
		}
	}
	for path := range since {
		if !found[path] {
			t.Fatalf("%d of %d fields are on %d pages; %s is not", len(found), len(since), len(visited), path)
		}
	}
	t.Logf("%d fields on %d pages", len(since), len(visited))
}

// TestSinceOfFieldsEqualsARecomputation compares the notes of fields with the CRDs of all versions.
func TestSinceOfFieldsEqualsARecomputation(t *testing.T) {
	versions := webtest.Packages(t)[:3]
	source, err := folder.New(versions, webtest.Options())
	if err != nil {
		t.Fatal(err)
	}
	view := source.View(nil)
	since, err := view.Since(t.Context(), versions[2].Repository, "v2.0.0", "marine.acme.example", "Boat", "v1")
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{".spec.forProvider.insured": "v2.0.0", ".spec.forProvider.name": "v1.0.0", "": "v1.0.0"} {
		if since[path] != want {
			t.Errorf("%s exists since %q, want %s", path, since[path], want)
		}
	}
	if _, err := view.Since(t.Context(), "none", "v1", "a", "b", "v1"); err == nil {
		t.Error("a missing package has fields")
	}
}
