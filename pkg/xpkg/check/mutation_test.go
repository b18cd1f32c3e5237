package check_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/xpkg-dev/xpkg/internal/crdvalidation"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/check"
)

// validDefinitions are definitions without findings, by the kind of their package.
var validDefinitions = map[string]string{
	"CRD": `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: things.example.org},
spec: {group: example.org, scope: Namespaced, names: {kind: Thing, plural: things}, versions: ` + someVersions("storage"),
	"XRD v1": `{apiVersion: apiextensions.crossplane.io/v1, kind: CompositeResourceDefinition, metadata: {name: xthings.example.org},
spec: {group: example.org, names: {kind: XThing, plural: xthings}, claimNames: {kind: Thing, plural: things}, versions: ` + someVersions("referenceable"),
	"XRD v2": `{apiVersion: apiextensions.crossplane.io/v2, kind: CompositeResourceDefinition, metadata: {name: things.example.org},
spec: {group: example.org, scope: Cluster, names: {kind: Thing, plural: things}, versions: ` + someVersions("referenceable"),
	"MRD": `{apiVersion: apiextensions.crossplane.io/v1alpha1, kind: ManagedResourceDefinition, metadata: {name: things.example.org},
spec: {group: example.org, scope: Cluster, names: {kind: Thing, plural: things}, versions: ` + someVersions("storage"),
}

func someVersions(storage string) string {
	version := `{name: %s, served: true, %s: %t, additionalPrinterColumns: [{name: A, type: string, jsonPath: .spec.a}],
schema: {openAPIV3Schema: {type: object, properties: {
  spec: {type: object, required: [name%d], properties: {
    name%[4]d: {type: string, minLength: 1}, list: {type: array, items: {type: object, properties: {x: {type: integer, maximum: 5}}}},
    map: {type: object, additionalProperties: {type: string}}, deep: {type: object, properties: {b: {type: object, properties: {c: {type: boolean}}}}}}},
  status: {type: object, properties: {s: {type: string}}}}}}}`
	return fmt.Sprintf("["+version+", ", "v1", storage, true, 1) + fmt.Sprintf(version+"]}}", "v2", storage, false, 2)
}

// A mutation makes one mistake in a definition, and returns the path at which a finding is required.
type mutation func(r *rand.Rand, definition map[string]any) string

var mutations = map[string]mutation{
	"a value of the wrong type": func(r *rand.Rand, d map[string]any) string {
		wrong := []struct {
			keyword string
			value   any
		}{
			{"minLength", "one"}, {"required", "message"}, {"description", []any{"a"}}, {"enum", "a"}, {"maximum", "big"},
			{"type", 5},
			{"x-kubernetes-preserve-unknown-fields", "sure"}, {"format", true}, {"allOf", map[string]any{}}, {"minItems", 1.5},
			{"x-kubernetes-validations", "self == 1"}, {"nullable", "no"},
		}
		at := pick(r, schemaNodes(d))
		w := pick(r, wrong)
		at.node[w.keyword] = w.value
		return at.path + "." + w.keyword
	},
	"a misspelt keyword": func(r *rand.Rand, d map[string]any) string {
		at := pick(r, schemaNodes(d))
		keyword := pick(r, []string{"minLenght", "discription", "defualt", "itms", "requird", "Pattern"})
		at.node[keyword] = "a"
		return at.path + "." + keyword
	},
	"a misspelt field": func(r *rand.Rand, d map[string]any) string {
		spec := d["spec"].(map[string]any)
		if r.IntN(2) == 0 {
			spec["gruop"] = "a"
			return "spec.gruop"
		}
		version := spec["versions"].([]any)[1].(map[string]any)
		version["schemas"] = map[string]any{}
		return "spec.versions[1].schemas"
	},
	"a required field that is no property": func(r *rand.Rand, d map[string]any) string {
		nodes := slices.DeleteFunc(schemaNodes(d), func(n schemaNode) bool { return n.node["properties"] == nil })
		at := pick(r, nodes)
		required, _ := at.node["required"].([]any)
		at.node["required"] = append(required, "absent")
		return fmt.Sprintf("%s.required[%d]", at.path, len(required))
	},
	"a keyword that the API server refuses": func(r *rand.Rand, d map[string]any) string {
		nodes := slices.DeleteFunc(schemaNodes(d), func(n schemaNode) bool { return n.node["type"] != "string" })
		at := pick(r, nodes)
		at.node["pattern"] = "["
		return at.path + ".pattern"
	},
	"no served version": func(_ *rand.Rand, d map[string]any) string {
		for _, v := range d["spec"].(map[string]any)["versions"].([]any) {
			v.(map[string]any)["served"] = false
		}
		return "spec.versions"
	},
	"a duplicate version": func(_ *rand.Rand, d map[string]any) string {
		d["spec"].(map[string]any)["versions"].([]any)[1].(map[string]any)["name"] = "v1"
		return "spec.versions[1].name"
	},
	"two storage versions": func(_ *rand.Rand, d map[string]any) string {
		version := d["spec"].(map[string]any)["versions"].([]any)[1].(map[string]any)
		for _, flag := range []string{"storage", "referenceable"} {
			if version[flag] != nil {
				version[flag] = true
			}
		}
		return "spec.versions"
	},
}

// schemaNode is a schema below the root of a version.
type schemaNode struct {
	path string
	node map[string]any
}

// schemaNodes returns the schemas of a definition in a fixed order, without the roots and the types of spec and status,
// which Crossplane sets.
func schemaNodes(d map[string]any) []schemaNode {
	var out []schemaNode
	var walk func(path string, node map[string]any, depth int)
	walk = func(path string, node map[string]any, depth int) {
		if depth > 1 {
			out = append(out, schemaNode{path, node})
		}
		properties, _ := node["properties"].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			if child, ok := properties[name].(map[string]any); ok {
				walk(path+".properties["+name+"]", child, depth+1)
			}
		}
		for _, keyword := range []string{"items", "additionalProperties"} {
			if child, ok := node[keyword].(map[string]any); ok {
				walk(path+"."+keyword, child, depth+1)
			}
		}
	}
	for i, v := range d["spec"].(map[string]any)["versions"].([]any) {
		root := v.(map[string]any)["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
		walk(fmt.Sprintf("spec.versions[%d].schema.openAPIV3Schema", i), root, 0)
	}
	return out
}

func pick[T any](r *rand.Rand, all []T) T { return all[r.IntN(len(all))] }

// Each mistake in a definition has a finding in its line, also beside another mistake.
func TestEachMistakeInADefinitionIsFoundInItsLine(t *testing.T) {
	rounds := 20
	if testing.Short() {
		rounds = 8
	}
	names := slices.Sorted(maps.Keys(mutations))
	for kind, text := range validDefinitions {
		t.Run(kind, func(t *testing.T) {
			if found, _ := checkDefinition(t, decode(t, text)); len(found) > 0 {
				t.Fatalf("without a mistake: %v", found)
			}
			for i, first := range names {
				for _, second := range append([]string{""}, names[i+1:]...) {
					for seed := range rounds {
						r := rand.New(rand.NewPCG(uint64(seed), uint64(len(first))))
						d := decode(t, text)
						paths := []string{mutations[first](r, d)}
						if second != "" {
							paths = append(paths, mutations[second](r, d))
						}
						found, line := checkDefinition(t, d)
						for _, path := range paths {
							if !slices.ContainsFunc(found, func(f xpkg.Finding) bool { return f.Line == line(path) }) {
								t.Fatalf(
									"%s and %q: no finding at %s in line %d:\n%v\n%s", first, second, path, line(path), found, encode(t, d),
								)
							}
						}
					}
				}
			}
		})
	}
}

// A definition that serves no version is an error: the manager refuses it. The CRD of the input of a Function is never
// installed.
func TestADefinitionThatServesNoVersionIsAnError(t *testing.T) {
	for kind, text := range validDefinitions {
		d := decode(t, text)
		for _, v := range d["spec"].(map[string]any)["versions"].([]any) {
			v.(map[string]any)["served"] = false
		}
		found, line := checkDefinition(t, d)
		if len(found) != 1 || found[0].Code.Name != check.ErrUnserved.Name || found[0].Severity != xpkg.Error ||
			found[0].Line != line("spec.versions") {
			t.Errorf("%s: got %v", kind, found)
		}
		if kind != "CRD" {
			continue
		}
		pkg, err := xpkg.Read(
			[]byte(strings.Replace(completeMeta, "kind: Provider", "kind: Function", 1)+encode(t, d)), xpkg.ReadOptions{},
		)
		if err != nil {
			t.Fatal(err)
		}
		found = check.Package(pkg, check.Options{Policy: xpkg.PolicyBuild(), CRDs: crdvalidation.ValidateCRD})
		if slices.ContainsFunc(found, func(f xpkg.Finding) bool { return f.Code.Name == check.ErrUnserved.Name }) {
			t.Errorf("a Function: got %v", found)
		}
	}
}

// A misspelt keyword has the suggestion of the right one.
func TestUnknownFieldsNameTheRightOne(t *testing.T) {
	for _, text := range validDefinitions {
		d := decode(t, text)
		nodes := schemaNodes(d)
		nodes[0].node["minLenght"] = 1
		d["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)["schemas"] = map[string]any{}
		found, _ := checkDefinition(t, d)
		if text := fmt.Sprint(found); !strings.Contains(text, `minLenght: is unknown, did you mean "minLength"`) ||
			!strings.Contains(text, `schemas: is unknown, did you mean "schema"`) {
			t.Errorf("got %s", text)
		}
	}
}

func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	var d map[string]any
	if err := yaml.Unmarshal([]byte(text), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func encode(t *testing.T, d map[string]any) string {
	t.Helper()
	text, err := yaml.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// checkDefinition returns the findings of a package with one definition, and the lines of its fields.
func checkDefinition(t *testing.T, d map[string]any) ([]xpkg.Finding, func(path string) int) {
	t.Helper()
	kind := "Configuration"
	if d["kind"] != "CompositeResourceDefinition" {
		kind = "Provider"
	}
	pkg, err := xpkg.Read(
		[]byte(strings.Replace(completeMeta, "kind: Provider", "kind: "+kind, 1)+encode(t, d)), xpkg.ReadOptions{},
	)
	if err != nil {
		t.Fatal(err)
	}
	found := check.Package(pkg, check.Options{Policy: xpkg.PolicyBuild(), CRDs: crdvalidation.ValidateCRD})
	doc := pkg.Objects[0].Document
	return found, func(path string) int { return doc.Line + doc.FieldLine(path) - 1 }
}
