package comptest

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/xpkg-dev/xpkg/internal/composition"
	"github.com/xpkg-dev/xpkg/internal/function/protocol"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

const head = "apiVersion: meta.dev.upbound.io/v1alpha1\nkind: CompositionTest\nmetadata: {name: a}\n"

func parsed(t *testing.T, text string) map[string]any {
	t.Helper()
	docs, err := xpkg.Split([]byte(text), "x.yaml", xpkg.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	var o map[string]any
	if err := docs[0].Decode(&o); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestReadRefusesByName(t *testing.T) {
	const xr = "spec:\n  xrPath: xr.yaml\n"
	for text, want := range map[string]string{
		head + "spec: {}\n":                                                            "has no composite resource",
		head + xr + "  xr: {kind: A}\n":                                                "has spec.xr and spec.xrPath",
		head + xr + "  timeoutSeconds: 0\n":                                            "spec.timeoutSeconds below 1",
		head + xr + "  timeoutSeconds: soon\n":                                         "cannot be read",
		head + xr + "  xrs: a\n":                                                       `unknown field "spec.xrs"`,
		head + xr + "  observedResources: [a.yaml]\n":                                  "cannot be read",
		head + xr + "  assertResources: [{kind: A}]\n":                                 "no apiVersion or no kind in spec.assertResources[0]",
		head + xr + "  assertResources: [{apiVersion: v1, kind: A, (a): 1}]\n":         `the expression "(a)"`,
		head + xr + "  assertResources: [{apiVersion: v1, kind: A, b: [{~.a: 1}]}]\n":  `"~.a" in spec.assertResources[0].b[0]`,
		head + xr + "  absentResources: [{apiVersion: v1, kind: A, b: (length(c))}]\n": `"(length(c))" in spec.absentResources[0].b`,
		strings.Replace(head, "name: a", "name: ../a", 1) + xr:                         "has no valid name",
		strings.Replace(head, "v1alpha1", "v9", 1) + xr:                                "v9 is not known",
	} {
		docs, err := xpkg.Split([]byte(text), "x.yaml", xpkg.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		cases, err := Read(docs[0])
		if err == nil || !strings.Contains(err.Error(), want) || errcode.From(err).Code.Name != "TestInvalid" || len(cases) > 0 {
			t.Errorf("%s\ngot %v and %v, want %q", text, cases, err, want)
		}
	}
}

func TestReadIgnoresOtherDocuments(t *testing.T) {
	for _, text := range []string{
		"a", "[1]", "null", "kind: CompositionTest\napiVersion: v1\n", "items: [1]\n",
		"apiVersion: meta.dev.upbound.io/v1alpha1\nkind: Project\n", "kind: [a]\n",
	} {
		docs, err := xpkg.Split([]byte(text), "x.yaml", xpkg.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range docs {
			if cases, err := Read(d); err != nil || len(cases) > 0 {
				t.Errorf("%q: got %v and %v", text, cases, err)
			}
		}
	}
}

func TestAssertComparesAsUpDoes(t *testing.T) {
	rendered := []map[string]any{
		parsed(t, "{apiVersion: v1, kind: A, metadata: {name: a}, spec: {x: 1, list: [{k: a, m: 1}, {k: b}], f: 1.0}}"),
		parsed(t, "{apiVersion: v1, kind: A, metadata: {name: b, namespace: n}, spec: {x: 2}}"),
	}
	for want, differences := range map[string][]string{
		"spec: {x: 2}":                            nil,
		"spec: {list: [{k: a}, {k: b}]}":          nil,
		"spec: {f: 1}":                            nil,
		"metadata: {namespace: n}":                nil,
		"spec: {y: null}":                         nil,
		"metadata: {name: a}\nspec: {list: [{}]}": {`A a: spec.list: want 1 element, got 2: [{"k":"a","m":1},{"k":"b"}]`},
		"metadata: {name: a}\nspec: {list: {a: 1}}": {
			`A a: spec.list: want {"a":1}, got [{"k":"a","m":1},{"k":"b"}]`,
		},
		"metadata: {name: a}\nspec: {x: null}":    {"A a: spec.x: want nothing, got 1"},
		"metadata: {name: a}\nspec: {x: \"1\"}":   {`A a: spec.x: want "1", got 1`},
		"metadata: {name: c}":                     {"A c: is not rendered; rendered: A a of v1, A b of v1"},
		"metadata: {name: b}\nspec: {a.b/c: [1]}": {"A b: spec[a.b/c]: want [1], got nothing"},
	} {
		s := Spec{AssertResources: []map[string]any{parsed(t, "apiVersion: v1\nkind: A\n"+want)}}
		var got []string
		for _, d := range s.Assert(rendered) {
			got = append(got, d.String())
		}
		if !reflect.DeepEqual(got, differences) {
			t.Errorf("%s: got %q, want %q", want, got, differences)
		}
	}
	s := Spec{AbsentResources: []map[string]any{parsed(t, "{apiVersion: v1, kind: A, spec: {x: 2}}")}}
	if got := fmt.Sprint(s.Assert(rendered)); got != "[A b: is rendered, and must be absent]" {
		t.Errorf("got %s", got)
	}
}

func TestDiffFindsEveryDifference(t *testing.T) {
	a, b := parsed(t, "{kind: A, x: {y: 1, z: 2}}"), parsed(t, "{kind: A, x: {y: 1}, w: []}")
	if got, want := fmt.Sprint(Diff([]map[string]any{a, a}, []map[string]any{b})),
		"[A: x.z: want 2, got nothing A: w: want nothing, got [] A: is expected, and is not rendered]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := Diff([]map[string]any{a}, []map[string]any{a}); len(got) > 0 {
		t.Errorf("got %v", got)
	}
}

func TestCoverageNamesWhatNoCallExercises(t *testing.T) {
	text, err := yaml.YAMLToJSON([]byte(`
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: c}
spec:
  compositeTypeRef: {apiVersion: a.org/v1, kind: A}
  mode: Pipeline
  pipeline:
  - step: patch
    functionRef: {name: pt}
    input:
      apiVersion: pt.fn.crossplane.io/v1beta1
      kind: Resources
      patchSets:
      - name: set
        patches: [{fromFieldPath: "spec.list[*].a"}]
      environment:
        patches: [{type: ToCompositeFieldPath, fromFieldPath: zone}]
      resources:
      - name: one
        patches:
        - {fromFieldPath: spec.a}
        - {fromFieldPath: spec.b}
        - {type: PatchSet, patchSetName: set}
        - {type: ToCompositeFieldPath, fromFieldPath: status.id}
        - {type: FromEnvironmentFieldPath, fromFieldPath: zone}
        - type: CombineFromComposite
          combine: {variables: [{fromFieldPath: spec.a}, {fromFieldPath: spec.c}]}
      - name: two
        patches: [{fromFieldPath: spec.z}]
  - step: never
    functionRef: {name: x}
`))
	if err != nil {
		t.Fatal(err)
	}
	of, err := composition.Parse(text, "x")
	if err != nil {
		t.Fatal(err)
	}
	var c Coverage
	c.Add(of)
	c.Add(of)
	c.Called(of, of.Spec.Pipeline[0], &protocol.Request{
		Observed: &protocol.State{
			Composite: &protocol.Resource{Resource: parsed(t, "spec: {a: 1, list: [{a: 1}]}")},
			Resources: map[string]protocol.Resource{"one": {Resource: parsed(t, "status: {id: 1}")}},
		},
		Context: map[string]any{environmentKey: map[string]any{"zone": "a"}},
	}, &protocol.Response{Desired: &protocol.State{Resources: map[string]protocol.Resource{"one": {}}}})
	want := CoverageReport{Exercised: 7, Total: 12, Missing: []string{
		"c: step patch, resource one, patches[1] from spec.b",
		"c: step patch, resource one, patches[5] from spec.a and spec.c",
		"c: step patch, resource two", "c: step never",
	}}
	if got := c.Report(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// FuzzRead proves that every document is read, or refused with a code, and that its assertions can be compared.
func FuzzRead(f *testing.F) {
	f.Add([]byte(head + "spec: {xrPath: a, assertResources: [{apiVersion: v1, kind: A, a: [1, {b: c}]}], context: [{a: 1}]}"))
	f.Add([]byte("items: [{apiVersion: meta.dev.upbound.io/v1alpha1, kind: E2ETest}]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		docs, err := xpkg.Split(text, "x.yaml", xpkg.Limits{})
		if err != nil {
			return
		}
		for _, d := range docs {
			cases, err := Read(d)
			if err != nil && !errcode.Known(err) {
				t.Errorf("an error without a code: %v", err)
			}
			for _, c := range cases {
				if c.Skipped == "" && c.Timeout() <= 0 {
					t.Errorf("the timeout is %v", c.Timeout())
				}
				if found := c.Assert(c.AssertResources); len(found) > 0 && len(c.AbsentResources) == 0 {
					t.Errorf("an object differs from itself: %v", found)
				}
				if found := Diff(c.AssertResources, c.AssertResources); len(found) > 0 {
					t.Errorf("objects differ from themselves: %v", found)
				}
			}
		}
	})
}
