package composition

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/xpkg-dev/xpkg/internal/function/protocol"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// functions are functions in this process.
type functions map[string]func(*protocol.Request) *protocol.Response

func (f functions) Call(_ context.Context, name string, r *protocol.Request) (*protocol.Response, error) {
	// Functions cannot change the state of the pipeline except by their responses.
	raw, err := protocol.MarshalRequest(r)
	if err != nil {
		return nil, err
	}
	if r, err = protocol.UnmarshalRequest(raw); err != nil {
		return nil, err
	}
	if r.Meta == nil || r.Meta.Tag == "" {
		return nil, errors.New("the request has no tag")
	}
	if f[name] == nil {
		return nil, errors.New("no such function")
	}
	raw, err = protocol.MarshalResponse(f[name](r))
	if err != nil {
		return nil, err
	}
	return protocol.UnmarshalResponse(raw)
}

// adding returns a function that adds desired resources.
func adding(resources map[string]protocol.Resource) func(*protocol.Request) *protocol.Response {
	return func(r *protocol.Request) *protocol.Response {
		out := &protocol.Response{Desired: r.Desired, Context: r.Context}
		if out.Desired == nil {
			out.Desired = &protocol.State{}
		}
		if out.Desired.Resources == nil {
			out.Desired.Resources = map[string]protocol.Resource{}
		}
		for name, resource := range resources {
			out.Desired.Resources[name] = resource
		}
		return out
	}
}

func boat(fields ...string) map[string]any {
	return parse("apiVersion: acme.example.org/v1\nkind: Boat\n" + strings.Join(fields, "\n")).Object
}

func parse(text string) *unstructured.Unstructured {
	var o map[string]any
	if err := yaml.Unmarshal([]byte(text), &o); err != nil {
		panic(err)
	}
	return &unstructured.Unstructured{Object: o}
}

func steps(names ...string) Composition {
	c := Composition{}
	for _, name := range names {
		s := Step{Step: name}
		s.FunctionRef.Name = name
		c.Spec.Pipeline = append(c.Spec.Pipeline, s)
	}
	return c
}

const fleet = "apiVersion: acme.example.org/v1\nkind: Fleet\nmetadata: {name: north, uid: u1}\nspec: {boats: 2}"

func TestPipelineRendersAsCrossplane(t *testing.T) {
	ready := protocol.Resource{Resource: boat("spec: {length: 3}"), Ready: protocol.ReadyTrue}
	tests := map[string]struct {
		xr       string
		f        functions
		c        Composition
		observed []*unstructured.Unstructured
		want     string
	}{
		"desired state passes from step to step": {
			fleet, functions{"a": adding(map[string]protocol.Resource{"one": ready}), "b": adding(map[string]protocol.Resource{
				"two": {Resource: boat("metadata: {name: fixed}")},
			})}, steps("a", "b"), nil,
			`apiVersion: acme.example.org/v1
kind: Fleet
metadata:
  name: north
status:
  conditions:
  - lastTransitionTime: "2024-01-01T00:00:00Z"
    message: 'Unready resources: two'
    reason: Creating
    status: "False"
    type: Ready
---
apiVersion: acme.example.org/v1
kind: Boat
metadata:
  annotations:
    crossplane.io/composition-resource-name: one
  generateName: north-
  labels:
    crossplane.io/composite: north
  ownerReferences:
  - apiVersion: acme.example.org/v1
    blockOwnerDeletion: true
    controller: true
    kind: Fleet
    name: north
    uid: u1
spec:
  length: 3
---
apiVersion: acme.example.org/v1
kind: Boat
metadata:
  annotations:
    crossplane.io/composition-resource-name: two
  labels:
    crossplane.io/composite: north
  name: fixed
  ownerReferences:
  - apiVersion: acme.example.org/v1
    blockOwnerDeletion: true
    controller: true
    kind: Fleet
    name: north
    uid: u1
`,
		},
		"existing resources keep their names, and claims are labels": {
			"apiVersion: acme.example.org/v1\nkind: Fleet\nmetadata: {name: north-x, namespace: sea, labels: {crossplane.io/composite: north}}\nspec: {claimRef: {name: c, namespace: ns}}",
			functions{"a": adding(map[string]protocol.Resource{"one": ready})}, steps("a"),
			[]*unstructured.Unstructured{parse(
				"apiVersion: acme.example.org/v1\nkind: Boat\nmetadata: {name: north-7, generateName: north-, annotations: {crossplane.io/composition-resource-name: one}}",
			)},
			`apiVersion: acme.example.org/v1
kind: Fleet
metadata:
  name: north-x
  namespace: sea
status:
  conditions:
  - lastTransitionTime: "2024-01-01T00:00:00Z"
    reason: Available
    status: "True"
    type: Ready
---
apiVersion: acme.example.org/v1
kind: Boat
metadata:
  annotations:
    crossplane.io/composition-resource-name: one
  generateName: north-
  labels:
    crossplane.io/claim-name: c
    crossplane.io/claim-namespace: ns
    crossplane.io/composite: north
  name: north-7
  namespace: sea
  ownerReferences:
  - apiVersion: acme.example.org/v1
    blockOwnerDeletion: true
    controller: true
    kind: Fleet
    name: north-x
    uid: ""
spec:
  length: 3
`,
		},
		"conditions and the readiness of the composite resource": {
			fleet, functions{"a": func(*protocol.Request) *protocol.Response {
				return &protocol.Response{
					Desired: &protocol.State{Composite: &protocol.Resource{Ready: protocol.ReadyFalse, Resource: map[string]any{
						"status": map[string]any{"n": 1.5, "conditions": []any{map[string]any{"type": "Old"}, map[string]any{
							"type": "Afloat",
						}}},
					}}},
					Conditions: []protocol.Condition{
						{Type: "Afloat", Status: protocol.ConditionTrue, Reason: "Floats", Message: "m"},
						{Type: "Ready", Status: protocol.ConditionTrue, Reason: "Mine"}, {Type: "New", Reason: "R"},
					},
				}
			}}, steps("a"), nil,
			`apiVersion: acme.example.org/v1
kind: Fleet
metadata:
  name: north
status:
  conditions:
  - type: Old
  - lastTransitionTime: "2024-01-01T00:00:00Z"
    message: m
    reason: Floats
    status: "True"
    type: Afloat
  - lastTransitionTime: "2024-01-01T00:00:00Z"
    reason: Creating
    status: "False"
    type: Ready
  - lastTransitionTime: "2024-01-01T00:00:00Z"
    reason: R
    status: Unknown
    type: New
  "n": 1.5
`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			out, err := Render(t.Context(), test.f, Input{
				Composite: parse(test.xr), Composition: test.c, Observed: test.observed,
			})
			if err != nil {
				t.Fatal(err)
			}
			var text []string
			for _, o := range append([]*unstructured.Unstructured{out.Composite}, out.Composed...) {
				raw, err := yaml.Marshal(o.Object)
				if err != nil {
					t.Fatal(err)
				}
				text = append(text, string(raw))
			}
			if diff := cmp.Diff(test.want, strings.Join(text, "---\n")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestUnreadyResourcesAreNamedAsByCrossplane(t *testing.T) {
	for want, names := range map[string][]string{
		"a": {"a"}, "a, b": {"a", "b"}, "a, b, and c": {"a", "b", "c"}, "a, b, c, and 2 more": {"a", "b", "c", "d", "e"},
	} {
		if got := some(names); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestFunctionsGetWhatTheyRequire checks the loop of requirements, in both fields of the protocol.
func TestFunctionsGetWhatTheyRequire(t *testing.T) {
	c := steps("a")
	c.Spec.Pipeline[0].Requirements.RequiredResources = []Requirement{{
		Name: "first", APIVersion: "v1", Kind: "ConfigMap", ObjectName: "one",
	}}
	var calls []string
	f := functions{"a": func(r *protocol.Request) *protocol.Response {
		var got []string
		for _, name := range []string{"first", "labels", "none"} {
			items, asked := r.RequiredResources[name]
			got = append(got, fmt.Sprintf("%s %t %d", name, asked, len(items.Items)))
		}
		calls = append(
			calls, strings.Join(append(got, fmt.Sprintf("extra %d %v", len(r.ExtraResources["x"].Items), r.Context["n"])), " "),
		)
		n, _ := r.Context["n"].(float64)
		return &protocol.Response{Context: map[string]any{"n": n + 1}, Requirements: &protocol.Requirements{
			Resources: map[string]protocol.Selector{
				"labels": {APIVersion: "v1", Kind: "ConfigMap", MatchLabels: &protocol.MatchLabels{Labels: map[string]string{
					"a": "b",
				}}}, "none": {APIVersion: "v1", Kind: "ConfigMap", MatchName: "missing"},
			},
			ExtraResources: map[string]protocol.Selector{"x": {
				APIVersion: "v1", Kind: "ConfigMap", MatchName: "two", Namespace: "ns",
			}},
		}}
	}}
	out, err := Render(t.Context(),
		f, Input{Composite: parse(fleet), Composition: c, Resources: []*unstructured.Unstructured{
			parse("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one, labels: {a: b}}"),
			parse("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: two, namespace: m}"),
			parse("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: two, namespace: ns, labels: {a: b}}"),
			parse("apiVersion: v1\nkind: Secret\nmetadata: {name: one, labels: {a: b}}"),
		}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"first true 1 labels false 0 none false 0 extra 0 <nil>", "first true 1 labels true 2 none true 0 extra 1 1",
	}
	if diff := cmp.Diff(want, calls); diff != "" || out.Context["n"] != 2.0 {
		t.Error(diff, out.Context)
	}
}

// TestFunctionsGetSchemas checks that a function gets the schemas that its step and its responses require, and learns
// what the caller supports.
func TestFunctionsGetSchemas(t *testing.T) {
	c := steps("a")
	c.Spec.Pipeline[0].Requirements.RequiredSchemas = []SchemaRequirement{{
		Name: "first", SchemaSelector: protocol.SchemaSelector{APIVersion: "acme.example.org/v1", Kind: "Boat"},
	}}
	var calls []string
	f := functions{"a": func(r *protocol.Request) *protocol.Response {
		calls = append(calls, fmt.Sprint(r.RequiredSchemas, r.Meta.Capabilities))
		return &protocol.Response{Requirements: &protocol.Requirements{Schemas: map[string]protocol.SchemaSelector{
			"none": {APIVersion: "v1", Kind: "Secret"}, "again": {APIVersion: "acme.example.org/v1", Kind: "Boat"},
		}}}
	}}
	in := Input{Composite: parse(fleet), Composition: c}
	in.Schemas = func(kind schema.GroupVersionKind) (map[string]any, error) {
		if kind != (schema.GroupVersionKind{Group: "acme.example.org", Version: "v1", Kind: "Boat"}) {
			return nil, nil
		}
		return map[string]any{"type": "object"}, nil
	}
	if _, err := Render(t.Context(), f, in); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"map[first:{map[type:object]}] [1 2 3 4 5]",
		"map[again:{map[type:object]} first:{map[type:object]} none:{map[]}] [1 2 3 4 5]",
	}
	if diff := cmp.Diff(want, calls); diff != "" {
		t.Error(diff)
	}
	in.Schemas = func(schema.GroupVersionKind) (map[string]any, error) { return nil, errors.New("no such schema") }
	if _, err := Render(t.Context(), f, in); !errors.Is(err, ErrCompositionInvalid) {
		t.Errorf("got %v", err)
	}
}

func TestStepsGetContextInputAndCredentials(t *testing.T) {
	c := steps("a", "b")
	c.Spec.Pipeline[1].Input = map[string]any{"kind": "Input"}
	c.Spec.Pipeline[1].Credentials = append(c.Spec.Pipeline[1].Credentials, struct {
		Name      string     `json:"name"`
		Source    string     `json:"source"`
		SecretRef *SecretRef `json:"secretRef"`
	}{"key", "Secret", &SecretRef{"n", "s"}})
	f := functions{"a": func(r *protocol.Request) *protocol.Response {
		if r.Context == nil || r.Input != nil {
			t.Errorf("the first step gets the context %v and the input %v", r.Context, r.Input)
		}
		return &protocol.Response{Context: map[string]any{"from": "a"}, Results: []protocol.Result{{
			Severity: protocol.SeverityNormal, Message: "hello",
		}}}
	}, "b": func(r *protocol.Request) *protocol.Response {
		if r.Context["from"] != "a" || r.Input["kind"] != "Input" ||
			string(r.Credentials["key"].CredentialData.Data["token"]) != "x" {
			t.Errorf("the second step gets %+v", r)
		}
		return &protocol.Response{}
	}}
	in := Input{Composite: parse(fleet), Composition: c, Context: map[string]any{"given": true}, Secrets: []Secret{{
		SecretRef{"n", "s"}, map[string][]byte{"token": []byte("x")},
	}}}
	out, err := Render(t.Context(), f, in)
	if err != nil || out.Context != nil || len(out.Composed) != 0 || len(out.Results) != 1 || out.Results[0].Step != "a" ||
		len(in.Context) != 1 {
		t.Errorf("got %+v, %v", out, err)
	}
}

func TestRenderingsThatCrossplaneRefusesFail(t *testing.T) {
	other := "metadata: {ownerReferences: [{apiVersion: v1, kind: Node, name: one, uid: u9, controller: true}]}"
	one := func(r protocol.Resource) functions {
		return functions{"a": adding(map[string]protocol.Resource{"one": r})}
	}
	named := parse(
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {annotations: {crossplane.io/composition-resource-name: x}}",
	)
	secret := steps("a")
	secret.Spec.Pipeline[0].Credentials = append(secret.Spec.Pipeline[0].Credentials, struct {
		Name      string     `json:"name"`
		Source    string     `json:"source"`
		SecretRef *SecretRef `json:"secretRef"`
	}{"key", "Secret", &SecretRef{"n", "s"}})
	n := 0
	for name, test := range map[string]struct {
		f    functions
		c    Composition
		obs  []*unstructured.Unstructured
		code errcode.Code
		text string
	}{
		"fatal": {functions{"a": func(*protocol.Request) *protocol.Response {
			return &protocol.Response{Results: []protocol.Result{{Severity: protocol.SeverityFatal, Message: "no boats"}}}
		}}, steps("a", "b"), nil, ErrFatalResult, "the function a failed in the step a: no boats"},
		"no kind": {
			one(protocol.Resource{Resource: map[string]any{"apiVersion": "v1"}}), steps("a"), nil, ErrDesiredResource,
			"one has no apiVersion or no kind",
		},
		"no resource": {one(protocol.Resource{}), steps("a"), nil, ErrDesiredResource, "one has no apiVersion"},
		"metadata": {
			one(protocol.Resource{Resource: map[string]any{"apiVersion": "v1", "kind": "A", "metadata": "x"}}), steps("a"), nil,
			ErrDesiredResource, "metadata",
		},
		"another controller": {
			one(protocol.Resource{Resource: boat(other)}), steps("a"), nil, ErrDesiredResource, "controller Node one",
		},
		"unknown function": {functions{}, steps("a"), nil, errcode.Unknown, "step a: no such function"},
		"unstable": {functions{"a": func(*protocol.Request) *protocol.Response {
			n++
			return &protocol.Response{Requirements: &protocol.Requirements{Resources: map[string]protocol.Selector{
				fmt.Sprint(n): {},
			}}}
		}}, steps("a"), nil, ErrRequirements, "after 6 calls"},
		"observed without a name": {
			functions{}, steps("a"), []*unstructured.Unstructured{parse("apiVersion: v1\nkind: ConfigMap")},
			ErrCompositionInvalid, "composition-resource-name",
		},
		"observed twice": {
			functions{}, steps("a"), []*unstructured.Unstructured{named, named}, ErrCompositionInvalid, "two observed resources",
		},
		"missing secret": {functions{}, secret, nil, ErrCompositionInvalid, "secret s in the namespace n"},
	} {
		_, err := Render(t.Context(), test.f, Input{Composite: parse(fleet), Composition: test.c, Observed: test.obs})
		if err == nil || errcode.From(err).Code.Name != test.code.Name || !strings.Contains(err.Error(), test.text) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if n != 6 {
		t.Errorf("a function with other requirements each time is called %d times", n)
	}
}
