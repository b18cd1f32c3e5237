package web_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/registry/web/folder"
	"github.com/xpkg-dev/xpkg/internal/registry/web/webtest"
	"github.com/xpkg-dev/xpkg/internal/testing/lane"
)

// TestCompositionsShowWhatTheyCompose follows the links of the Configuration of package webtest.
func TestCompositionsShowWhatTheyCompose(t *testing.T) {
	h := newTestHandler(t)
	const page, kind = harbour + "@v0.4.0/compositions/harbour", harbour + "@v0.4.0/k/platform.acme.example/Harbour"
	for _, path := range []string{harbour, harbour + "@v0.4.0/kinds", kind} {
		open(t, h, path).hasLink(page)
	}
	d := open(t, h, page)
	d.contains("harbour Composition", "Harbour platform.acme.example/v1alpha1",
		"2 steps", "moor", "crossplane-contrib-function-patch-and-transform not in this index",
		"Boat marine.acme.example/v1 as pilot, ferry", "Lighthouse lights.acme.example/v1 as light",
		"rig Function function-rigging", "its Function decides what it composes")
	for _, link := range []string{kind, "/k/marine.acme.example/Boat", "/p/registry.example.org/acme/function-rigging"} {
		d.hasLink(link)
	}
	if strings.Index(d.text, ">moor<") > strings.Index(d.text, ">rig<") {
		t.Error("the steps are not in their order")
	}
	get(t, h, harbour+"@v0.4.0/compositions/none", http.StatusNotFound)
}

// TestCompositionsOfDependentsAreLinked publishes a composite resource and its Composition in two packages.
func TestCompositionsOfDependentsAreLinked(t *testing.T) {
	versions := webtest.Packages(t)
	const core, other = "/k/core.acme.example/Quay", "/p/registry.example.org/acme/quays@v1.0.0/compositions/quay"
	versions = append(versions,
		webtest.Version(t, "acme/core", "v1.0.0",
			time.Unix(1e9, 0), "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata: {name: core}\n---\n"+
				"apiVersion: apiextensions.crossplane.io/v1\nkind: CompositeResourceDefinition\nmetadata: {name: xquays.core.acme.example}\nspec:\n  group: core.acme.example\n"+
				"  names: {kind: XQuay, plural: xquays}\n  claimNames: {kind: Quay, plural: quays}\n"+
				"  versions: [{name: v1, served: true, referenceable: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object}}}}}]\n"),
		webtest.Version(t, "acme/quays",
			"v1.0.0", time.Unix(1e9, 0), "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata: {name: quays}\n"+
				"spec: {dependsOn: [{configuration: registry.example.org/acme/core, version: v1.0.0}]}\n---\n"+
				"apiVersion: apiextensions.crossplane.io/v1\nkind: Composition\nmetadata: {name: quay}\nspec:\n  compositeTypeRef: {apiVersion: core.acme.example/v1, kind: XQuay}\n"+
				"  resources: [{name: a, base: {apiVersion: marine.acme.example/v1, kind: Boat}}]\n"))
	h := newHandler(t, versions, webtest.Options())
	for _, path := range []string{core, "/k/core.acme.example/XQuay"} {
		d := open(t, h, path)
		d.hasLink(other)
		d.contains("quay composes XQuay in 1 step, in registry.example.org/acme/quays")
	}
	d := open(t, h, other)
	d.hasLink("/k/core.acme.example/XQuay")
	d.contains("The Composition has no pipeline", "Boat marine.acme.example/v1 as a")
}

// TestRealCompositionsShowWhatTheyCompose compares the page of each Composition of real packages with its object, which
// is read here in another way. The pages of its composite resource and of the claim link to it.
func TestRealCompositionsShowWhatTheyCompose(t *testing.T) {
	if testing.Short() {
		t.Skip("reads real packages")
	}
	compositions, steps, kinds := 0, 0, 0
	for _, item := range corpusItems(
		t, "configurations", map[bool]string{true: "", false: "configuration-aws"}[lane.IsFull()],
	) {
		for _, v := range readItem(t, item) {
			v.Tag = "v1.0.0"
			h := newHandler(t, []folder.Version{v}, webtest.Options())
			for _, o := range v.Package.Objects {
				if o.GVK.Kind != "Composition" {
					continue
				}
				text, err := o.JSON()
				if err != nil {
					t.Fatal(err)
				}
				var object map[string]any
				if err := json.Unmarshal(text, &object); err != nil {
					t.Fatal(err)
				}
				spec, page := object["spec"].(map[string]any), "/p/"+v.Repository+"@v1.0.0/compositions/"+o.Name
				d := open(t, h, page)
				rest := strings.ReplaceAll(d.text, "<wbr>", "")
				compositions++
				pipeline, _ := spec["pipeline"].([]any)
				for _, s := range pipeline {
					s := s.(map[string]any)
					name, function := ">"+s["step"].(string)+"</h3>", s["functionRef"].(map[string]any)["name"].(string)
					_, after, found := strings.Cut(rest, name)
					if rest, steps = after, steps+1; !found || !strings.Contains(after, function) {
						t.Errorf("%s has not the step %s with %s after the former one", page, s["step"], function)
					}
				}
				shown := textOf(d.root)
				for _, base := range bases(spec) {
					kinds++
					if !strings.Contains(shown, base) {
						t.Errorf("%s does not contain %s", page, base)
					}
				}
				group, _, _ := strings.Cut(spec["compositeTypeRef"].(map[string]any)["apiVersion"].(string), "/")
				kind := "/p/" + v.Repository + "@v1.0.0/k/" + group + "/" +
					spec["compositeTypeRef"].(map[string]any)["kind"].(string)
				if slices.Contains(d.links(), kind) {
					open(t, h, kind).hasLink(page)
				}
			}
		}
	}
	if compositions < 20 || steps < 20 || kinds < 100 {
		t.Errorf("%d Compositions with %d steps and %d resources were read", compositions, steps, kinds)
	}
}

// bases returns the kinds and API versions of all values with the key base below a value.
func bases(value any) (out []string) {
	switch value := value.(type) {
	case map[string]any:
		for key, below := range value {
			base, _ := below.(map[string]any)
			if kind, ok := base["kind"].(string); ok && key == "base" {
				out = append(out, kind+" "+base["apiVersion"].(string))
				continue
			}
			out = append(out, bases(below)...)
		}
	case []any:
		for _, below := range value {
			out = append(out, bases(below)...)
		}
	}
	return out
}
