package web_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"html"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/xpkg-dev/xpkg/internal/crdvalidation"
	"github.com/xpkg-dev/xpkg/internal/registry/web"
	"github.com/xpkg-dev/xpkg/internal/registry/web/folder"
	"github.com/xpkg-dev/xpkg/internal/registry/web/webtest"
	"github.com/xpkg-dev/xpkg/internal/testing/corpus"
	"github.com/xpkg-dev/xpkg/internal/testing/lane"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/catalog/docs"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// readCorpus reads all packages of a folder of the corpus whose names contain the text.
func readCorpus(t testing.TB, kind, contains string) []folder.Version {
	t.Helper()
	var out []folder.Version
	for _, item := range corpusItems(t, kind, contains) {
		out = append(out, readItem(t, item)...)
	}
	return out
}

// corpusItems returns the folders of the corpus whose names contain the text.
func corpusItems(t testing.TB, kind, contains string) []string {
	t.Helper()
	items, err := filepath.Glob(filepath.Join(corpus.Dir(t), kind, "*"+contains+"*@*"))
	if err != nil || len(items) == 0 {
		t.Fatalf("no %s %s in the corpus: %v", kind, contains, err)
	}
	return items
}

// metadata stands for the metadata of a Provider whose folder has a template for it.
const metadata = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: provider}\nspec: {controller: {image: example.org/x:v1}}\n"

// readTemplate reads all CRDs of a Provider that is published as one package for each of its services.
func readTemplate(t testing.TB, dir string) *xpkg.Package {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "crds", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var stream bytes.Buffer
	stream.WriteString(metadata)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		stream.WriteString("\n---\n")
		stream.Write(text)
	}
	pkg, err := xpkg.Read(stream.Bytes(), xpkg.ReadOptions{})
	if err != nil {
		t.Fatalf("%s: %v", dir, err)
	}
	return pkg
}

// notInPackages are files beside the objects of some providers, which are not in the packages that are built from them.
var notInPackages = []string{"kustomize/*"}

// readItem reads the packages in a folder of the corpus: usually one, below it or in its folder package.
func readItem(t testing.TB, item string) []folder.Version {
	t.Helper()
	name, tag, _ := strings.Cut(filepath.Base(item), "@")
	var out []folder.Version
	err := filepath.WalkDir(item, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		dir := filepath.Dir(path)
		var pkg *xpkg.Package
		switch d.Name() {
		case "crossplane.yaml", "upbound.yaml":
			pkg = readPackage(dir)
		case "crossplane.yaml.tmpl":
			pkg = readTemplate(t, dir)
		}
		if pkg == nil {
			return nil
		}
		below, err := filepath.Rel(item, dir)
		if err != nil {
			return err
		}
		repository := strings.ToLower(webtest.Registry + "/" + strings.ReplaceAll(name, "__", "/"))
		if below != "." && below != "package" {
			repository += "/" + strings.ToLower(filepath.Base(dir))
		}
		out = append(out, folder.Version{
			Repository: repository, Tag: tag, Package: pkg, Created: time.Unix(1, 0),
			Examples: readExamples(t, filepath.Join(item, "examples")),
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// readPackage reads a folder with a package; nil if it cannot be read.
func readPackage(dir string) *xpkg.Package {
	files, err := xpkg.ReadFolder(os.DirFS(dir), xpkg.FolderOptions{ExamplesRoot: "examples", Ignore: notInPackages})
	if err != nil {
		return nil
	}
	pkg, _ := files.Inspect(xpkg.ReadOptions{})
	if pkg == nil || pkg.Meta.Kind == "" {
		return nil
	}
	return pkg
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

// TestKindsOfRealPackagesRender opens the pages of kinds of real packages in all served versions: of a sample, or of
// every kind of every version of every package in the corpus in the full lane. Each page is small, and the code of the
// API server accepts each example on it. A kind that several packages or versions define is opened once.
func TestKindsOfRealPackagesRender(t *testing.T) {
	if testing.Short() {
		t.Skip("reads real packages")
	}
	var items []string
	if lane.IsFull() {
		for _, kind := range []string{"providers", "configurations", "functions"} {
			items = append(items, corpusItems(t, kind, "")...)
		}
	} else {
		items = slices.Concat(
			corpusItems(t, "providers", "argocd"), corpusItems(t, "providers", "keycloak"), corpusItems(t, "functions", ""),
		)
	}
	o := opened{seen: map[string]bool{}}
	for _, item := range items {
		for _, v := range readItem(t, item) {
			o.kindsOf(t, v)
		}
	}
	if o.largest > maxPage {
		t.Errorf("%s has %d bytes after compression, at most %d are allowed", o.largestPath, o.largest, maxPage)
	}
	if lane.IsFull() && len(o.seen) < 4587 {
		t.Errorf("the pages of %d kinds were opened, and the corpus has at least 4,587", len(o.seen))
	}
	if lost := o.pages - o.withExample; lane.IsFull() && lost > mostWithoutExample {
		t.Errorf("%d pages have no example: %v", lost, o.without)
	}
	percent := 100 * o.withExample / max(o.pages, 1)
	if percent < leastExamples {
		t.Errorf("%d of %d pages have an example, at least %d %% should", o.withExample, o.pages, leastExamples)
	}
	t.Attr("examples-percent", strconv.Itoa(percent))
	t.Logf("%d examples on %d pages, without one: %v", o.withExample, o.pages, o.without)
	t.Logf("%d pages of %d kinds; the largest has %d bytes after compression (%s); the slowest took %v (%s), or %v for the first page of a package (%s)",
		o.pages, len(o.seen), o.largest, o.largestPath, o.warm, o.warmPath, o.cold, o.coldPath)
	t.Attr("kinds", strconv.Itoa(len(o.seen)))
	t.Attr("largest-bytes", strconv.Itoa(o.largest))
	t.Attr("warm-ms", strconv.FormatInt(o.warm.Milliseconds(), 10))
	t.Attr("cold-ms", strconv.FormatInt(o.cold.Milliseconds(), 10))
}

// mostWithoutExample is the number of pages of the corpus without an example: the schemas of two kinds require a field
// that they do not define.
const mostWithoutExample = 2

// leastExamples is the percentage of the pages of real kinds that have an example, which most packages do not contain.
const leastExamples = 80

// opened are the kinds whose pages were opened.
type opened struct {
	seen                            map[string]bool
	pages, largest, withExample     int
	without                         []string
	warm, cold                      time.Duration
	largestPath, warmPath, coldPath string
}

// kindsOf opens the pages of the kinds of a version that no former version has. The first page also reads the
// documentation of the version.
func (o *opened) kindsOf(t *testing.T, v folder.Version) {
	t.Helper()
	v.Tag = "v1.0.0" // Some tags of the corpus are commits, and the kinds of the newest version have pages.
	source, err := folder.New([]folder.Version{v}, webtest.Options())
	if err != nil {
		t.Fatalf("%s: %v", v.Repository, err)
	}
	rows, err := source.View(nil).Kinds(t.Context(), "", "", 1_000_000)
	if err != nil {
		t.Fatal(err)
	}
	h := newHandler(t, []folder.Version{v}, webtest.Options())
	schemas := schemasOf(t, v.Package)
	isFirst := true
	for i, k := range rows {
		path := "/k/" + k.Group + "/" + k.Kind
		if o.seen[path] || !lane.IsFull() && i%7 != 0 && k.Kind != "ApplicationSet" {
			continue
		}
		o.seen[path] = true
		for _, version := range k.Served {
			body := o.open(t, h, path+"/"+version, isFirst)
			o.examples(t, body, path+"/"+version, schemas)
			isFirst = false
		}
	}
}

// schemasOf returns the schemas of a package, from its objects as they are installed.
func schemasOf(t *testing.T, pkg *xpkg.Package) *crdvalidation.Schemas {
	t.Helper()
	out := &crdvalidation.Schemas{}
	for _, o := range pkg.Objects {
		text, err := o.JSON()
		if err != nil {
			t.Fatal(err)
		}
		switch o.GVK.Kind {
		case "CustomResourceDefinition":
			err = out.AddCRD(text, "the package")
		case "CompositeResourceDefinition":
			err = out.AddXRD(text, "the package")
		}
		if err != nil {
			t.Fatalf("%s: %v", o.Name, err)
		}
	}
	return out
}

var (
	shownExample = regexp.MustCompile(`(?s)<div class="example">.*?<pre[^>]*><code>(.*?)</code></pre>`)
	htmlTag      = regexp.MustCompile(`<[^>]*>`)
)

// examples validates the examples of a page with the path /k/GROUP/KIND/VERSION.
func (o *opened) examples(t *testing.T, body, path string, schemas *crdvalidation.Schemas) {
	t.Helper()
	found := shownExample.FindAllStringSubmatch(body, -1)
	if len(found) == 0 {
		o.without = append(o.without, path)
		return
	}
	o.withExample++
	for _, m := range found {
		text := html.UnescapeString(htmlTag.ReplaceAllString(m[1], ""))
		raw, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v\n%s", path, err, text)
		}
		var object map[string]any
		if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &object); err != nil {
			t.Fatal(err)
		}
		group, version, _ := strings.Cut(fmt.Sprint(object["apiVersion"]), "/")
		if want := fmt.Sprintf("/k/%s/%s/%s", group, object["kind"], version); want != path {
			t.Errorf("%s has an example of %s", path, want)
		}
		if problems := schemas.Validate(t.Context(), object); len(problems) > 0 {
			t.Errorf("%s: %v\n%s", path, problems, text)
		}
	}
}

func (o *opened) open(t *testing.T, h http.Handler, path string, isFirst bool) (body string) {
	t.Helper()
	start := time.Now()
	w := serve(h, path, "")
	took := time.Since(start)
	if w.Code != http.StatusOK {
		t.Errorf("%s has the status %d", path, w.Code)
		return ""
	}
	o.pages++
	slowest, slowestPath := &o.warm, &o.warmPath
	if isFirst {
		slowest, slowestPath = &o.cold, &o.coldPath
	}
	if took > *slowest {
		*slowest, *slowestPath = took, path
	}
	if size := compressedSize(t, w.Body.Bytes()); size > o.largest {
		o.largest, o.largestPath = size, path
	}
	return w.Body.String()
}

// upgrade is a pair of versions of a package in the corpus, with the kinds that another program found to be added and
// removed.
type upgrade struct {
	From, To       string
	Added, Removed []string
}

// TestUpgradesOfRealPackagesRender opens the pages of differences of the pairs of versions in the corpus: of small
// packages, or of all pairs in the full lane. Each page counts the kinds that are known to be added and removed.
func TestUpgradesOfRealPackagesRender(t *testing.T) {
	if testing.Short() {
		t.Skip("reads real packages")
	}
	text, err := os.ReadFile(filepath.Join(corpus.Dir(t), "upgrades.json"))
	if err != nil {
		t.Fatal(err)
	}
	var upgrades []upgrade
	if err := json.Unmarshal(text, &upgrades); err != nil {
		t.Fatal(err)
	}
	small := regexp.MustCompile("/provider-(sql|helm|kubernetes|nop)@")
	// largest is the release of the largest provider.
	const largest = "crossplane-contrib__provider-upjet-aws@v2.5.0"
	pages := 0
	var warm, cold, slowest time.Duration
	for _, u := range upgrades {
		if !lane.IsFull() && !small.MatchString(strings.ReplaceAll(u.From, "__", "/")) {
			continue
		}
		first, second := u.open(t)
		pages, slowest, warm = pages+1, max(slowest, first), max(warm, second)
		if filepath.Base(u.From) == largest {
			cold = first
		}
	}
	if want := map[bool]int{false: 19, true: 53}[lane.IsFull()]; pages != want {
		t.Errorf("%d pairs were compared, want %d", pages, want)
	}
	if lane.IsFull() && cold == 0 {
		t.Errorf("%s is not among the pairs", largest)
	}
	t.Logf(
		"%d pairs; the page of the largest release took %v, the slowest %v, and %v the second time", pages, cold, slowest,
		warm,
	)
	t.Attr("pairs", strconv.Itoa(pages))
	t.Attr("warm-ms", strconv.FormatInt(warm.Milliseconds(), 10))
	t.Attr("cold-ms", strconv.FormatInt(cold.Milliseconds(), 10))
}

// open opens the page of the differences twice, and returns the times.
func (u *upgrade) open(t *testing.T) (cold, warm time.Duration) {
	t.Helper()
	var versions []folder.Version
	for _, item := range []string{u.From, u.To} {
		read := readItem(t, filepath.Join(corpus.Dir(t), item))
		if len(read) != 1 {
			t.Fatalf("%s has %d packages", item, len(read))
		}
		versions = append(versions, read[0])
	}
	path := "/diff/" + versions[0].Repository + "/" + versions[0].Tag + ".." + versions[1].Tag
	h := newHandler(t, versions, webtest.Options())
	var times [2]time.Duration
	for i := range times {
		start := time.Now()
		w := serve(h, path, "")
		times[i] = time.Since(start)
		if w.Code != http.StatusOK {
			t.Errorf("%s has the status %d", path, w.Code)
			return times[0], times[1]
		}
		open(t, h, path).checkSeverity()
		for heading, kinds := range map[string][]string{"Added": u.Added, "Removed": u.Removed} {
			want := fmt.Sprintf(">%s kinds <span class=\"total\">%d</span>", heading, len(kinds))
			if strings.Contains(w.Body.String(), ">"+heading+" kinds <") != (len(kinds) > 0) ||
				len(kinds) > 0 && !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s does not contain %d %s kinds", path, len(kinds), strings.ToLower(heading))
			}
		}
	}
	return times[0], times[1]
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

// TestEveryFieldOfTheLargestKindIsReachable follows the links to parts of the fields of a kind with thousands of
// fields.
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
	since, err := source.View(nil).Since(
		t.Context(), versions[0].Repository, versions[0].Tag, "applicationsets.argocd.crossplane.io", "ApplicationSet",
		"v1alpha1",
	)
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
	for path, want := range map[string]string{
		".spec.forProvider.insured": "v2.0.0", ".spec.forProvider.name": "v1.0.0", "": "v1.0.0",
	} {
		if since[path] != want {
			t.Errorf("%s exists since %q, want %s", path, since[path], want)
		}
	}
	if _, err := view.Since(t.Context(), "none", "v1", "a", "b", "v1"); err == nil {
		t.Error("a missing package has fields")
	}
}

// TestSinceOfRealFieldsEqualsARecomputation compares the notes of the fields of real packages with the schemas of all
// their versions, which are read here in another way. In the full lane, it reads more packages.
func TestSinceOfRealFieldsEqualsARecomputation(t *testing.T) {
	if testing.Short() {
		t.Skip("reads real packages")
	}
	names := []string{"provider-sql", "provider-helm", "provider-kubernetes", "provider-http"}
	if lane.IsFull() {
		names = append(
			names, "provider-keycloak", "provider-mongodbatlas", "provider-vault", "provider-upjet-azuread",
			"crossplane-provider-grafana",
		)
	}
	total := 0
	for _, name := range names {
		versions := readCorpus(t, "providers", "__"+name)
		source, err := folder.New(versions, webtest.Options())
		if err != nil {
			t.Fatal(err)
		}
		view := source.View(nil)
		p, h, err := view.Package(t.Context(), versions[0].Repository)
		if err != nil {
			t.Fatal(err)
		}
		kinds, err := view.Kinds(t.Context(), "", "", 1_000_000)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range kinds {
			for _, apiVersion := range k.Served {
				got, err := view.Since(t.Context(), p.Repository, p.Latest, k.Group, k.Kind, apiVersion)
				if err != nil {
					t.Fatal(err)
				}
				total += len(got)
				if diff := cmp.Diff(sinceOf(t, view, p.Latest, h, k, apiVersion), got); diff != "" {
					t.Errorf("%s.%s/%s (-want +got):\n%s", k.Kind, k.Group, apiVersion, diff)
				}
			}
		}
	}
	t.Logf("%d fields", total)
	t.Attr("fields", strconv.Itoa(total))
}

// sinceOf returns the first version of the package since which each field of an API version has existed in all
// versions.
func sinceOf(
	t *testing.T, view web.View, latest string, h catalog.History, k catalog.Kind, apiVersion string,
) map[string]string {
	t.Helper()
	since := map[string]string{}
	for _, v := range h.Versions {
		var now map[string]bool
		if documented, err := view.Kind(t.Context(), k.Repository, v.Tag, k.Group, k.Kind); err == nil {
			now = pathsOf(t, documented.CRD, apiVersion)
		}
		maps.DeleteFunc(since, func(path, _ string) bool { return !now[path] })
		for path := range now {
			if since[path] == "" {
				since[path] = v.Tag
			}
		}
		if v.Tag == latest {
			break
		}
	}
	return since
}

// pathsOf returns the paths of all fields of an API version of a CRD.
func pathsOf(t *testing.T, crd []byte, apiVersion string) map[string]bool {
	t.Helper()
	var d struct {
		Spec struct {
			Versions []struct {
				Name   string
				Schema struct{ OpenAPIV3Schema map[string]any }
			}
		}
	}
	if err := json.Unmarshal(crd, &d); err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, v := range d.Spec.Versions {
		if v.Name == apiVersion {
			addPaths(out, v.Schema.OpenAPIV3Schema, "")
		}
	}
	return out
}

// addPaths adds the paths of a schema. The items of a list or map are no field of their own.
func addPaths(out map[string]bool, schema map[string]any, path string) {
	if !strings.HasSuffix(path, "[*]") {
		out[path] = true
	}
	properties, _ := schema["properties"].(map[string]any)
	for name, child := range properties {
		if child, ok := child.(map[string]any); ok {
			addPaths(out, child, path+"."+name)
		}
	}
	for key, suffix := range map[string]string{"items": "[*]", "additionalProperties": "[*]"} {
		if child, ok := schema[key].(map[string]any); ok {
			addPaths(out, child, path+suffix)
		}
	}
}
