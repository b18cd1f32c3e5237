package web_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/xpkg-dev/xpkg/internal/registry/web"
	"github.com/xpkg-dev/xpkg/internal/registry/web/folder"
	"github.com/xpkg-dev/xpkg/internal/registry/web/webtest"
	"github.com/xpkg-dev/xpkg/pkg/catalog/docs"
)

// document is a parsed page.
type document struct {
	t    testing.TB
	path string
	root *html.Node
	text string
}

// get returns a page, which must have the status.
func get(t testing.TB, h http.Handler, path string, status int) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	if w.Code != status {
		t.Fatalf("GET %s = %d, want %d\n%s", path, w.Code, status, w.Body)
	}
	return w
}

func open(t testing.TB, h http.Handler, path string) *document {
	t.Helper()
	body := get(t, h, path, http.StatusOK).Body.String()
	root, err := html.Parse(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return &document{t, path, root, body}
}

// all returns the elements that a function accepts.
func (d *document) all(accept func(*html.Node) bool) []*html.Node {
	var out []*html.Node
	for n := range d.root.Descendants() {
		if n.Type == html.ElementNode && accept(n) {
			out = append(out, n)
		}
	}
	return out
}

func (d *document) elements(names ...string) []*html.Node {
	return d.all(func(n *html.Node) bool { return slices.Contains(names, n.Data) })
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// textOf returns the text of an element with single spaces.
func textOf(n *html.Node) string {
	var out strings.Builder
	for d := range n.Descendants() {
		switch {
		case d.Type == html.TextNode:
			out.WriteString(d.Data)
		case !slices.Contains([]string{"wbr", "span", "code", "a", "strong"}, d.Data):
			out.WriteString(" ")
		}
	}
	return strings.Join(strings.Fields(out.String()), " ")
}

// field returns the text of a field of a kind, and the field itself.
func (d *document) field(path string) (string, *html.Node) {
	d.t.Helper()
	found := d.all(func(n *html.Node) bool { return attribute(n, "id") == path })
	if len(found) != 1 {
		d.t.Fatalf("%s has %d fields %s, want 1", d.path, len(found), path)
	}
	return textOf(found[0]), found[0]
}

// contains fails unless the text of the page contains all parts.
func (d *document) contains(parts ...string) {
	d.t.Helper()
	text := textOf(d.root)
	for _, p := range parts {
		if !strings.Contains(text, p) {
			d.t.Errorf("%s does not contain %q:\n%s", d.path, p, text)
		}
	}
}

// links returns the paths to which the page links.
func (d *document) links() []string {
	var out []string
	for _, n := range d.elements("a", "link", "script", "img") {
		for _, key := range []string{"href", "src"} {
			if v := attribute(n, key); v != "" {
				out = append(out, v)
			}
		}
	}
	return out
}

func (d *document) hasLink(path string) {
	d.t.Helper()
	if !slices.Contains(d.links(), path) {
		d.t.Errorf("%s has no link to %s: %q", d.path, path, d.links())
	}
}

func newTestHandler(t testing.TB) *web.Handler {
	t.Helper()
	return newHandler(t, webtest.Packages(t), webtest.Options())
}

const harbour = "/p/registry.example.org/acme/configuration-harbour"

// TestPagesShowTheirContent has a row for each page.
func TestPagesShowTheirContent(t *testing.T) {
	h := newTestHandler(t)
	for path, want := range map[string]struct{ texts, links []string }{
		"/": {
			[]string{"Recently updated", "3 Providers", "Manages boats, berths and crews", "5 packages, 7 versions, 8 kinds"},
			[]string{"/feed.atom", boats, "/search?type=Provider"},
		},
		"/search?q=boat": {
			[]string{"Results for “boat”", "Kinds 1", "Boat v1, v1beta1", "Acme Marine"},
			[]string{"/k/marine.acme.example/Boat", boats},
		},
		"/search?q=kind:Berth": {[]string{"Berth v1", "and 1 other package"}, []string{"/k/marine.acme.example/Berth"}},
		"/search?q=&type=Function": {
			[]string{"function-rigging", "selected, remove filter"}, []string{"/p/registry.example.org/acme/function-rigging"},
		},
		boats: {
			[]string{
				"Boats v2.0.0", "Provider Boats", "Apache-2.0", ">=v1.20.0",
				"xpkg install provider registry.example.org/acme/provider-boats:v2.0.0",
				"apiVersion: pkg.crossplane.io/v1 kind: Provider metadata: name: acme-provider-boats spec:", "Lock file",
				"0.6–1.2 s", "12–32 MB", "with --kinds used", "A boat at its berth", "Boats can be insured", "secrets"},
			[]string{boats +
				"@v2.0.0/kinds", "/g/marine.acme.example", "https://github.com/acme/provider-boats",
				"https://images.example.org/boat.png",
				boats + "@/feed.atom", "/diff/registry.example.org/acme/provider-boats/v1.1.0..v2.0.0", boats + "@v2.0.0/icon"},
		},
		boats + "@v1.1.0": {
			[]string{
				"This version is yanked (broken)", "Boats without a crew are deleted", "Use v2.0.0 instead",
				"The newest version is v2.0.0",
			},
			[]string{"/diff/registry.example.org/acme/provider-boats/v1.1.0..v2.0.0"},
		},
		boats + "@v2.0.0/kinds":    {[]string{"4 kinds", "Crew"}, []string{boats + "@v2.0.0/k/people.acme.example/Crew"}},
		boats + "@v2.0.0/versions": {[]string{"3 versions", "yanked", "22 Sep 2026"}, []string{boats + "@v1.0.0"}},
		boats + "@v2.0.0/graph": {[]string{"depends on no other package", "Dependents 1", "requires >=v1.0.0"}, []string{
			harbour,
		}},
		boats + "@v2.0.0/trust": {
			[]string{"sha256:", "signs its packages", "release.yml", "xpkg inspect provider-boats.xpkg", "cosign verify"}, nil,
		},
		harbour + "@v0.4.0/graph": {
			[]string{"function-rigging v0.8.2 >=v0.8.0, <v1.0.0", "not in this index"},
			[]string{"/p/registry.example.org/acme/function-rigging"},
		},
		"/k/marine.acme.example/Boat": {
			[]string{
				"Boat v1", "Namespaced", "v1 stored", "v1beta1 deprecated", "boat.yaml valid", "bt", "READY, AGE", "since v1.0.0",
			},
			[]string{"/k/marine.acme.example/Boat/v1beta1", "/schemas/marine.acme.example/boat_v1.json", boats +
				"@v2.0.0/k/marine.acme.example/Boat/crd.yaml"},
		},
		"/k/marine.acme.example/Boat/v1beta1": {
			[]string{"This API version is deprecated", "v1beta1 is removed in version 3"}, nil,
		},
		"/k/marine.acme.example/Berth": {[]string{"Other packages with this kind", "same schema"}, nil},
		"/k/marine.acme.example/Boat/v1/fields/spec/forProvider/sails": {
			[]string{"Boat .spec.forProvider.sails", "reefs", "hemp"}, []string{"#.spec.forProvider.sails%5b%2a%5d.name"},
		},
		"/k/platform.acme.example/Harbour": {[]string{"composite resource", "harbour.yaml valid", "1 to 500"}, nil},
		"/k/sailing.example/Wind": {
			[]string{"Settings form", "Wind of a given force", "Weather", "(Sailing)", "minimum: 0"}, nil,
		},
		"/g/marine.acme.example": {[]string{"3 kinds", "2 packages"}, []string{"/k/marine.acme.example/Boat"}},
		"/diff/registry.example.org/acme/provider-boats/v1.1.0..v2.0.0": {
			[]string{
				"2 breaking", "1 need care", "crews.people.acme.example", ".spec.forProvider.name", "maxLength is stricter", "63",
				"3 → 4 kinds",
			}, nil,
		},
	} {
		t.Run(path, func(t *testing.T) {
			d := open(t, h, path)
			d.contains(want.texts...)
			for _, l := range want.links {
				d.hasLink(l)
			}
		})
	}
}

// TestOnlyValidExamplesAreShown publishes examples that are wrong in one field, of another kind and of another API
// version. A kind without a valid example of its author has a generated one.
func TestOnlyValidExamplesAreShown(t *testing.T) {
	const head, boat = "apiVersion: marine.acme.example/v1\nkind: Boat\nmetadata: {name: wreck, namespace: default}\n",
		"/k/marine.acme.example/Boat"
	wrong := []docs.Example{
		{Name: "wrong-type.yaml", YAML: head + "spec: {forProvider: {name: Wreck, length: long}}\n"},
		{Name: "unknown.yaml", YAML: head + "spec: {keel: 1}\n"},
		{Name: "no-name.yaml", YAML: head + "spec: {forProvider: {}}\n"}, {Name: "no.yaml", YAML: "a: ["},
		{Name: "kind.yaml", YAML: strings.Replace(head, "Boat", "Ship", 1)},
		{Name: "version.yaml", YAML: strings.Replace(head, "/v1", "/v9", 1)},
	}
	for name, others := range map[string][]docs.Example{
		"generated": nil, "boat.yaml valid": webtest.Packages(t)[2].Examples,
	} {
		versions := webtest.Packages(t)
		versions[2].Examples = slices.Concat(wrong, others)
		d := open(t, newHandler(t, versions, webtest.Options()), boat)
		text := strings.ToLower(textOf(d.root))
		if !strings.Contains(text, name) || strings.Contains(text, "generated") != (name == "generated") {
			t.Errorf("the page has no example %q, or another one:\n%s", name, text)
		}
		for _, e := range wrong {
			if strings.Contains(d.text, e.Name) {
				t.Errorf("the page shows %s", e.Name)
			}
		}
	}
}

// TestLongValuesOfDifferencesAreCut replaces many allowed values by others, whose lists the page does not show as a
// whole.
func TestLongValuesOfDifferencesAreCut(t *testing.T) {
	var versions []folder.Version
	for i, tag := range []string{"v1.0.0", "v1.1.0"} {
		values := make([]string, 20_000)
		for j := range values {
			values[j] = fmt.Sprintf("%c%d", 'a'+i, j)
		}
		stream := `apiVersion: meta.pkg.crossplane.io/v1
kind: Provider
metadata: {name: rafts}
spec: {controller: {image: example.org/x:v1}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: rafts.marine.acme.example}
spec:
  group: marine.acme.example
  scope: Cluster
  names: {kind: Raft, plural: rafts, singular: raft, listKind: RaftList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: string, enum: [` + strings.Join(values, ", ") + `]}}}}
`
		versions = append(versions, webtest.Version(t, "acme/provider-rafts", tag, time.Unix(int64(i+1), 0), stream))
	}
	d := open(
		t, newHandler(t, versions, webtest.Options()), "/diff/registry.example.org/acme/provider-rafts/v1.0.0..v1.1.0",
	)
	d.contains("values are no longer allowed", `"a0", "a1", `, `"b0", "b1", `)
	if most := 10_000; len(d.text) > most {
		t.Errorf("the page has %d bytes, at most %d are expected", len(d.text), most)
	}
}

// TestGeneratedExamplesHaveTheFieldThatARuleRequires opens the page of a kind with a rule that requires one of its
// optional fields.
func TestGeneratedExamplesHaveTheFieldThatARuleRequires(t *testing.T) {
	stream := `apiVersion: meta.pkg.crossplane.io/v1
kind: Provider
metadata: {name: rafts}
spec: {controller: {image: example.org/x:v1}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: rafts.marine.acme.example}
spec:
  group: marine.acme.example
  scope: Cluster
  names: {kind: Raft, plural: rafts, singular: raft, listKind: RaftList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [logs]
            properties:
              colour: {type: string}
              logs:
                type: array
                items:
                  type: object
                  properties: {bark: {type: boolean}, wood: {type: string}}
                  x-kubernetes-validations: [{rule: "has(self.wood)", message: wood must be set}]
`
	versions := []folder.Version{webtest.Version(t, "acme/provider-rafts", "v1.0.0", time.Unix(1, 0), stream)}
	text := textOf(open(t, newHandler(t, versions, webtest.Options()), "/k/marine.acme.example/Raft").root)
	if !strings.Contains(text, "wood: example") || strings.Contains(text, "colour: example") {
		t.Errorf("the page has no example with the field that the rule requires, and no other optional one:\n%s", text)
	}
}

// TestFieldsAreDescribed checks the properties of fields.
func TestFieldsAreDescribed(t *testing.T) {
	d := open(t, newTestHandler(t), "/k/marine.acme.example/Boat")
	for path, want := range map[string][]string{
		".spec":                    {"object", "required"},
		".spec.managementPolicies": {"list of strings", `["*"]`, `"LateInitialize"`},
		".spec.forProvider.name": {
			"string required immutable", "1 to 40 characters", "matches ^[A-Z][A-Za-z ]*$", "A boat cannot be renamed.",
			"self == oldSelf",
		},
		".spec.forProvider.length":                 {"number required to create", "2 to 24"},
		".spec.forProvider.insured":                {"boolean since v2.0.0", "Default false"},
		".spec.forProvider.propulsion":             {`One of "sail", "motor", "electric"`},
		".spec.forProvider.colour":                 {"deprecated"},
		".spec.forProvider.sails":                  {"list of objects", "at most 12 items", "items are identified by name"},
		".spec.forProvider.sails[*].area":          {"number required", "square metres"},
		".spec.forProvider.equipment":              {"map of strings"},
		".status.conditions[*].lastTransitionTime": {"string (date-time)"},
	} {
		text, _ := d.field(path)
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s does not contain %q: %s", path, w, text)
			}
		}
	}
	if text, _ := d.field(".spec.forProvider.name"); strings.Contains(text, "since") {
		t.Errorf("a field of the first version has a note: %s", text)
	}
}

// crawl returns every page that can be reached from the start page.
func crawl(t testing.TB, h http.Handler) map[string]*httptest.ResponseRecorder {
	t.Helper()
	pages := map[string]*httptest.ResponseRecorder{}
	queue := []string{"/", "/api/v1/packages", "/api/v1/search?q=boat", "/api/v1/suggest?q=bo", "/search?q=boat"}
	for len(queue) > 0 {
		next := queue[0]
		queue = queue[1:]
		if pages[next] != nil {
			continue
		}
		pages[next] = get(t, h, next, http.StatusOK)
		if !strings.HasPrefix(pages[next].Header().Get("Content-Type"), "text/html") {
			continue
		}
		root, err := html.Parse(strings.NewReader(pages[next].Body.String()))
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range (&document{t, next, root, ""}).links() {
			u, err := url.Parse(l)
			if err != nil {
				t.Fatalf("%s links to %q: %v", next, l, err)
			}
			if u.Host == "" && u.Path != "" {
				u.Fragment = ""
				queue = append(queue, u.String())
			}
		}
	}
	return pages
}

// TestEveryPageIsWellFormed follows every link and checks the structure of each page.
func TestEveryPageIsWellFormed(t *testing.T) {
	pages := crawl(t, newTestHandler(t))
	if len(pages) < 60 {
		t.Errorf("%d pages were reached, want at least 60", len(pages))
	}
	for path, w := range pages {
		checkHeaders(t, path, w)
		if !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
			continue
		}
		root, err := html.Parse(bytes.NewReader(w.Body.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		d := &document{t, path, root, w.Body.String()}
		d.checkStructure()
		d.checkEmpty()
	}
}

func checkHeaders(t testing.TB, path string, w *httptest.ResponseRecorder) {
	t.Helper()
	for key, want := range map[string]string{
		"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin",
	} {
		if got := w.Header().Get(key); got != want {
			t.Errorf("%s has the header %s: %q, want %q", path, key, got, want)
		}
	}
	policy := w.Header().Get("Content-Security-Policy")
	if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") ||
		strings.Contains(policy, "*") {
		t.Errorf("%s has the policy %q", path, policy)
	}
}

// checkStructure checks what assistive technology and the content security policy need.
func (d *document) checkStructure() {
	d.t.Helper()
	for name, want := range map[string]int{"main": 1, "h1": 1, "header": 1, "footer": 1} {
		if got := len(d.elements(name)); got != want {
			d.t.Errorf("%s has %d elements %s, want %d", d.path, got, name, want)
		}
	}
	level := 0
	for _, n := range d.elements("h1", "h2", "h3", "h4", "h5", "h6") {
		if next := int(n.Data[1] - '0'); next > level+1 {
			d.t.Errorf("%s has the heading %q of level %d after level %d", d.path, textOf(n), next, level)
		}
		level = int(n.Data[1] - '0')
		if textOf(n) == "" {
			d.t.Errorf("%s has an empty heading", d.path)
		}
	}
	ids := map[string]int{}
	for _, n := range d.all(func(*html.Node) bool { return true }) {
		if id := attribute(n, "id"); id != "" {
			ids[id]++
		}
		for _, a := range n.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Key == "srcdoc" {
				d.t.Errorf("%s has the attribute %s", d.path, a.Key)
			}
		}
	}
	for id, n := range ids {
		if n > 1 {
			d.t.Errorf("%s has the identifier %q %d times", d.path, id, n)
		}
	}
	if fields, example := strings.Index(d.text, `id="fields"`), strings.Index(d.text, `id="examples"`); fields >= 0 &&
		example > fields {
		d.t.Errorf("%s has the example below the fields", d.path)
	}
	d.checkControls(ids)
}

func (d *document) checkControls(ids map[string]int) {
	d.t.Helper()
	labels := map[string]bool{}
	for _, n := range d.elements("label") {
		labels[attribute(n, "for")] = true
	}
	for _, n := range d.elements("input", "select") {
		if !labels[attribute(n, "id")] && n.Parent.Data != "label" {
			d.t.Errorf("%s has a %s without a label", d.path, n.Data)
		}
	}
	for _, n := range d.elements("script", "style", "iframe", "object", "embed", "base", "form") {
		switch {
		case n.Data == "script" && n.FirstChild == nil && strings.HasPrefix(attribute(n, "src"), "/static/"):
		case n.Data == "form" && strings.HasPrefix(attribute(n, "action"), "/"):
		default:
			d.t.Errorf("%s has the element %s", d.path, n.Data)
		}
	}
	for _, n := range d.elements("a") {
		href := attribute(n, "href")
		external := strings.HasPrefix(href, "http") || strings.HasPrefix(href, "mailto:")
		if external && attribute(n, "rel") != "nofollow noopener ugc" {
			d.t.Errorf("%s links to %s with rel=%q", d.path, href, attribute(n, "rel"))
		}
		if textOf(n) == "" && attribute(n, "aria-label") == "" {
			d.t.Errorf("%s has a link to %s without a name", d.path, href)
		}
		if name, ok := strings.CutPrefix(href, "#"); ok {
			if id, err := url.PathUnescape(name); err != nil || ids[id] != 1 {
				d.t.Errorf("%s links to %q, which is not on the page", d.path, href)
			}
		}
	}
	for _, n := range d.elements("img") {
		if !slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == "alt" }) {
			d.t.Errorf("%s has an image without an alternative text", d.path)
		}
	}
}

// TestScriptIsSmall limits the own JavaScript.
func TestScriptIsSmall(t *testing.T) {
	h := newTestHandler(t)
	for _, n := range open(t, h, "/").elements("script") {
		if size := get(t, h, attribute(n, "src"), http.StatusOK).Body.Len(); size > 10<<10 {
			t.Errorf("the script has %d bytes, at most 10 KiB are allowed", size)
		}
	}
}

// TestUnknownPagesAreNotFound checks paths of missing and malformed pages.
func TestUnknownPagesAreNotFound(t *testing.T) {
	h := newTestHandler(t)
	for _, path := range []string{
		"/x", "/p/", "/p/none", boats + "@v9", boats + "@v2.0.0/none", "/p/registry.example.org/acme",
		"/k/marine.acme.example", "/k/marine.acme.example/None",
		"/k/marine.acme.example/Boat/v9", "/k/marine.acme.example/Boat/v1/fields/none", "/k/marine.acme.example/Boat/v1/none",
		"/g/none", "/g/", "/diff/none/a..b",
		"/diff/registry.example.org/acme/provider-boats/v1.0.0..v9", "/diff/registry.example.org/acme/provider-boats/..",
		"/schemas/marine.acme.example/boat_v9.json",
		"/schemas/marine.acme.example/boat.json", "/static/x/style.css", "/static/../style.css", "/api/v1/none",
		"/api/v2/search", "/api/v1/packages/none", boats + "@v2.0.0/k/a/b",
		"/p/registry.example.org/acme/function-rigging@v0.8.2/icon", "/" + strings.Repeat("a/", 500), "/p/%2e%2e/%2e%2e",
		"/k/%00/%00",
	} {
		if w := get(t, h, path, http.StatusNotFound); w.Header().Get("Content-Security-Policy") == "" {
			t.Errorf("%s has no content security policy", path)
		}
	}
	for path, status := range map[string]int{"/p//x": http.StatusBadRequest, "/search?q=" +
		strings.Repeat("a", 3000): http.StatusBadRequest} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.URL = &url.URL{Path: path, RawPath: path}
		if before, query, ok := strings.Cut(path, "?"); ok {
			r.URL = &url.URL{Path: before, RawQuery: query}
		}
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != status {
			t.Errorf("GET %.40s = %d, want %d", path, w.Code, status)
		}
	}
}

// TestOnlyReadsAreAllowed checks the methods.
func TestOnlyReadsAreAllowed(t *testing.T) {
	h := newTestHandler(t)
	for method, status := range map[string]int{
		http.MethodPost: 405, http.MethodPut: 405, http.MethodDelete: 405, http.MethodOptions: 405, http.MethodHead: 200,
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, "/", nil))
		if w.Code != status || method == http.MethodHead && w.Body.Len() > 0 {
			t.Errorf("%s / = %d with %d bytes, want %d", method, w.Code, w.Body.Len(), status)
		}
	}
}

// TestVersionsAreComparedByAForm checks the redirect of the form without JavaScript.
func TestVersionsAreComparedByAForm(t *testing.T) {
	w := get(
		t, newTestHandler(t), "/diff/registry.example.org/acme/provider-boats?from=v1.0.0&to=v2.0.0", http.StatusFound,
	)
	if to := w.Header().Get("Location"); to != "/diff/registry.example.org/acme/provider-boats/v1.0.0..v2.0.0" {
		t.Errorf("the form leads to %s", to)
	}
}

// TestPagesAreCompressedUnlessTheyReflectTheRequest checks gzip and conditional requests.
func TestPagesAreCompressedUnlessTheyReflectTheRequest(t *testing.T) {
	h := newTestHandler(t)
	request := func(path, tag string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set("Accept-Encoding", "gzip")
		r.Header.Set("If-None-Match", tag)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	page := request(boats, "")
	if page.Header().Get("Content-Encoding") != "gzip" {
		t.Fatal("the page is not compressed")
	}
	z, err := gzip.NewReader(page.Body)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(z); err != nil || !bytes.Contains(text, []byte("</html>")) {
		t.Errorf("the page is incomplete: %v", err)
	}
	if w := request(boats, page.Header().Get("ETag")); w.Code != http.StatusNotModified || w.Body.Len() > 0 {
		t.Errorf("an unchanged page has the status %d and %d bytes", w.Code, w.Body.Len())
	}
	if w := request("/search?q=boat", ""); w.Header().Get("Content-Encoding") != "" {
		t.Error("the page of a search is compressed")
	}
}

// TestPackagesHaveAddressesOfTheirOwn adds packages whose names end like the addresses of parts of other packages.
func TestPackagesHaveAddressesOfTheirOwn(t *testing.T) {
	const yaml = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata: {name: other}\nspec: {}\n"
	parts := []string{
		"k/marine.acme.example/Boat", "kinds", "versions", "dependencies", "graph", "graph.svg", "trust", "icon", "feed.atom",
	}
	suffixes := append([]string{"k/marine.acme.example/boat", "k/x/y/kinds"}, parts[1:]...)
	versions := webtest.Packages(t)
	for _, suffix := range suffixes {
		versions = append(versions, webtest.Version(t, "acme/provider-boats/"+suffix, "v9.0.0", time.Now(), yaml))
	}
	h := newHandler(t, versions, webtest.Options())
	list := get(t, h, "/search?q=&type=Configuration", http.StatusOK).Body.String()
	for _, suffix := range suffixes {
		address := boats + "/" + suffix + "@"
		if !strings.Contains(list, `href="`+address+`"`) {
			t.Errorf("the list of packages has no link to %s", address)
		}
		for _, address := range []string{address, address + "v9.0.0"} {
			if want := strings.TrimPrefix(boats, "/p/") + "/" + suffix +
				":v9.0.0"; !strings.Contains(get(t, h, address, http.StatusOK).Body.String(), want) {
				t.Errorf("%s is no page of %s", address, want)
			}
		}
	}
	for _, part := range parts {
		for _, address := range []string{boats + "@/" + part, boats + "/" + part} {
			if strings.Contains(get(t, h, address, http.StatusOK).Body.String(), "/"+part+":v9.0.0") {
				t.Errorf("%s is a page of another package", address)
			}
		}
	}
}
