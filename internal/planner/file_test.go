package planner

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/install"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/crddiff"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

var update = flag.Bool("update", false, "write the golden files")

// digestA and digestB stand for contents.
const (
	digestA = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	digestB = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

// whole returns a plan with a value in every field.
func whole(t testing.TB) *Plan {
	t.Helper()
	p := v1.NewPackage(v1.ProviderKind)
	p.SetName("boats")
	p.SetLabels(map[string]string{"team": "a"})
	p.PackageSpec().Package = "registry.example.com/boats:v2@" + digestB
	adoptions := []string{"CustomResourceDefinition/rafts.test"}
	revision.AllowAdoption(p, adoptions)
	object, err := written(p)
	if err != nil {
		t.Fatal(err)
	}
	p.PackageSpec().Package = "registry.example.com/boats:v1"
	spec, err := specOf(p)
	if err != nil {
		t.Fatal(err)
	}
	crd := func(name string) plan.Ref {
		return plan.Ref{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: name}
	}
	return &Plan{
		APIVersion: APIVersion, Kind: Kind, Operation: Update, Cluster: "11111111-2222-3333-4444-555555555555",
		Adoptions: adoptions,
		Package: Package{
			Kind: "Provider", Name: "boats", Object: object,
			From: &Version{Reference: "registry.example.com/boats:v1", Digest: digestA},
			To:   &Version{Reference: "registry.example.com/boats:v2@" + digestB, Digest: digestB},
		},
		Content: &Content{Reference: "registry.example.com/boats:v2@" + digestB, Resolved: "mirror.example.com/boats:v2@" +
			digestB, Digest: digestB},
		Revisions: []RevisionChange{
			{Action: DeactivateRevision, Name: "boats-aaaaaaaaaaaa", Number: 1, State: v1.RevisionInactive, Digest: digestA},
			{Action: CreateRevision, Name: "boats-bbbbbbbbbbbb", Number: 2, State: v1.RevisionActive, Digest: digestB},
		},
		Objects: plan.Plan{
			Changes: []plan.Change{
				{
					Action: plan.TakeOver, Ref: crd("boats.example.com"), MetadataOnly: true, UID: "u1", ResourceVersion: "12",
					Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"},
					Owners: []metav1.OwnerReference{{
						APIVersion: "pkg.crossplane.io/v1", Kind: "ProviderRevision", Name: "boats-bbbbbbbbbbbb", UID: "u2",
						Controller: new(true),
					}},
					RemoveLabels: []string{"e"}, RemoveAnnotations: []string{"f"},
				},
				{Action: plan.Release, Ref: crd("rafts.example.com"), MetadataOnly: true, UID: "u3", ResourceVersion: "13"},
			},
			Refusals: []plan.Refusal{{
				Ref: crd("canoes.example.com"), Holder: "ProviderRevision/other", Reason: "it belongs to ProviderRevision/other",
			}},
			Unchanged: 3,
		},
		Findings: []install.Finding{
			{Stage: install.Policy, Code: rbac.ErrPermissionDenied.Name, Reason: "it is denied", Fix: "Change the policy."},
			{Stage: install.Crossplane, Code: xpkg.ErrIncompatible.Name, Reason: "it is made for another Crossplane", Fix: "Install another version."},
		},
		Permissions: &Permissions{
			Added: []rbacv1.PolicyRule{{
				APIGroups: []string{"a"}, Resources: []string{"r"}, ResourceNames: []string{"n"}, NonResourceURLs: []string{"/x"},
				Verbs: []string{"get"},
			}},
			Removed:       []rbacv1.PolicyRule{{APIGroups: []string{"b"}, Resources: []string{"r"}, Verbs: []string{"get"}}},
			NeedsApproval: []rbacv1.PolicyRule{{APIGroups: []string{"c"}, Resources: []string{"r"}, Verbs: []string{"get"}}},
			Foreign:       []rbacv1.PolicyRule{{APIGroups: []string{"d"}, Resources: []string{"r"}, Verbs: []string{"create"}}},
		},
		Dependencies: []Dependency{{
			Package: "registry.example.com/water", Constraint: ">=v1", State: graph.Incompatible,
			Installed: "registry.example.com/water:v0.9.0",
		}},
		AddedPackages: []AddedPackage{
			{Kind: "Provider", Reference: "registry.example.com/wind:v1.0.0", Digest: digestA, RequiredBy: []string{
				"registry.example.com/boats",
			}},
			{Kind: "Provider", Name: "water", From: "registry.example.com/water:v0.9.0", Reference: "registry.example.com/water:v1.0.0", Digest: digestB, RequiredBy: []string{
				"registry.example.com/boats",
			}},
		},
		Upgrades: graph.Upgrade,
		Breaks: []Broken{{
			Kind: "Configuration", Name: "fleet", Requires: "registry.example.com/boats", Constraint: "<v2", Installed: "v2",
		}},
		Orphans: []Orphan{{Kind: "Provider", Name: "oar", Reference: "registry.example.com/oar:v1", Removed: true}},
		CustomResources: []CustomResources{{CRD: "boats.example.com", Count: 412, Digest: digestA}, {
			CRD: "rafts.example.com", Unknown: "they may not be listed",
		}},
		Preconditions: Preconditions{
			UID: "u0", Generation: 4, Spec: spec,
			Revisions: []Revision{{Name: "boats-aaaaaaaaaaaa", UID: "u4", Number: 1, State: v1.RevisionActive, Digest: digestA}},
			Installed: []Installed{{Kind: "Function", Name: "row", Reference: "registry.example.com/row:v1", Digest: digestA}},
		},
		KindChanges: []crddiff.ChangedCRD{{Name: "boats.example.com", Changes: []crddiff.Change{
			{Class: crddiff.Breaking, Type: crddiff.FieldRemoved, Version: "v1", Path: ".spec.sail", Reason: "the field was removed"},
			{Class: crddiff.Care, Type: crddiff.DefaultChanged, Version: "v1", Path: ".spec.size", From: "1", To: "2", Reason: "new objects get another default"},
		}}},
		Warnings: []string{"The tag v2 has moved."},
	}
}

func encode(t testing.TB, p *Plan) []byte {
	t.Helper()
	raw, err := Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestGolden(t *testing.T) {
	p := whole(t)
	file := filepath.Join("testdata", "plan.json")
	got := encode(t, p)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("the file of a plan (-want +got):\n%s", diff)
	}
	back, err := decodeOne(want)
	if err != nil {
		t.Fatal(err)
	}
	if moved := Compare(p, back); moved != nil || back.Digest() != p.Digest() || back.FileName() != p.FileName() {
		t.Errorf("the plan that is read is another one: %v", moved)
	}
	if diff := cmp.Diff(p.Warnings, back.Warnings); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(p.KindChanges, back.KindChanges); diff != "" {
		t.Error(diff)
	}
	if !strings.HasPrefix(p.FileName(), "plan-"+strings.TrimPrefix(p.Digest(), "sha256:")[:12]) {
		t.Errorf("the file is named %s, and its digest is %s", p.FileName(), p.Digest())
	}
}

// A plan is the same with another layout of its JSON, and after an editor has added a byte order mark.
func TestDecodeOtherSpelling(t *testing.T) {
	p := whole(t)
	var fields map[string]any
	if err := json.Unmarshal(encode(t, p), &fields); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	for _, raw := range [][]byte{raw, append([]byte("\xef\xbb\xbf"), raw...)} {
		back, err := decodeOne(raw)
		if err != nil || back.Digest() != p.Digest() {
			t.Errorf("%.20q: %v, %v", raw, back, err)
		}
	}
}

// hardening: L10
func TestDecodeRefuses(t *testing.T) {
	good := string(encode(t, whole(t)))
	sealed := func(edit func(map[string]any)) string {
		var fields map[string]any
		if err := json.Unmarshal([]byte(good), &fields); err != nil {
			t.Fatal(err)
		}
		edit(fields)
		delete(fields, digestField)
		content, err := marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		fields[digestField] = digestOf(content)
		out, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	within := func(fields map[string]any, name string) map[string]any { return fields[name].(map[string]any) }
	for name, tc := range map[string]struct {
		file string
		want errcode.Code
	}{
		"nothing":        {"", ErrPlanInvalid},
		"a list":         {"[]", ErrPlanInvalid},
		"another object": {`{"apiVersion":"v1","kind":"List","digest":"x"}`, ErrPlanInvalid},
		"cut off":        {good[:len(good)/2], ErrPlanInvalid},
		"more behind it": {good + "{}", ErrPlanInvalid},
		"too large":      {strings.Repeat(" ", MaxSize+1), ErrPlanInvalid},
		"no digest": {strings.Replace(good, `,
  "digest": "`+whole(t).Digest()+`"`, "", 1), ErrPlanInvalid},
		"another digest": {strings.Replace(good, whole(t).Digest(), digestA, 1), ErrPlanDamaged},
		"another tag":    {strings.ReplaceAll(good, "boats:v2", "boats:v3"), ErrPlanDamaged},
		"one count":      {strings.Replace(good, "412", "411", 1), ErrPlanDamaged},
		"a field twice": {
			strings.Replace(good, `"kind": "Plan",`, `"kind": "Plan", "kind": "Plan",`, 1), ErrPlanInvalid,
		},
		"an unknown field":     {sealed(func(f map[string]any) { f["more"] = 1 }), ErrPlanInvalid},
		"an unknown operation": {sealed(func(f map[string]any) { f["operation"] = "destroy" }), ErrPlanInvalid},
		"a later version":      {sealed(func(f map[string]any) { f["apiVersion"] = "xpkg.dev/v2" }), ErrPlanInvalid},
		"no content":           {sealed(func(f map[string]any) { delete(f, "content") }), ErrPlanInvalid},
		"no object":            {sealed(func(f map[string]any) { delete(within(f, "package"), "object") }), ErrPlanInvalid},
		"no kind":              {sealed(func(f map[string]any) { delete(within(f, "package"), "kind") }), ErrPlanInvalid},
		"an unknown kind":      {sealed(func(f map[string]any) { within(f, "package")["kind"] = "Secret" }), ErrPlanInvalid},
		"another name":         {sealed(func(f map[string]any) { within(f, "package")["name"] = "ships" }), ErrPlanInvalid},
		"another kind": {
			sealed(func(f map[string]any) { within(f, "package")["kind"] = "Function" }), ErrPlanInvalid,
		},
		"the object of others": {
			sealed(func(f map[string]any) { within(within(f, "package"), "object")["kind"] = "Secret" }), ErrPlanInvalid,
		},
		"an object with more": {
			sealed(func(f map[string]any) { within(within(f, "package"), "object")["data"] = "x" }), ErrPlanInvalid,
		},
		"an uninstall of what?": {sealed(func(f map[string]any) {
			f["operation"] = "uninstall"
			delete(
				f, "preconditions",
			)
		}), ErrPlanInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			if p, err := decodeOne([]byte(tc.file)); !errors.Is(err, tc.want) {
				t.Errorf("got %v and %v, want %s", p, err, tc.want.Name)
			}
		})
	}
}

// unusualContents are plans that no version of xpkg writes and that Decode accepts with their digest: empty lists, and
// numbers and keys in forms that are not canonical.
var unusualContents = []string{
	uninstallOf(
		`"objects":{},"addedPackages":[{"kind":"Provider","reference":"r","digest":"d","requiredBy":[],"objects":{"changes":[],"unchanged":0}}]`,
	),
	uninstallOf(`"objects":{"changes":[],"refusals":null},"warnings":[],"orphans":null`),
	uninstallOf(`"objects":{},"package":{"name":"a","kind":"Provider","object":{"b":-0.0,"a":1.0,"c":1e30,"d":"\ud800"}}`),
}

// uninstallOf returns a plan of an uninstall with the given fields and without a valid digest.
func uninstallOf(fields string) string {
	if !strings.Contains(fields, `"package"`) {
		fields += `,"package":{"kind":"Provider","name":"a"}`
	}
	return `{"kind":"Plan","apiVersion":"xpkg.dev/v1alpha1","digest":"","operation":"uninstall","preconditions":{"uid":"u"},` +
		fields + `}`
}

// decode returns the plan of a file with one.
func decodeOne(raw []byte) (*Plan, error) {
	plans, isList, err := Decode(raw)
	if err != nil || isList {
		return nil, err
	}
	return plans[0], nil
}

// The plans of several packages are read as they were written. A file with two plans of one package, a plan that is
// damaged, and a list whose order was changed are refused.
func TestListOfPlans(t *testing.T) {
	first := whole(t)
	second := &Plan{APIVersion: APIVersion, Kind: Kind, Operation: Uninstall, Package: Package{
		Kind: "Provider", Name: "other",
	}}
	second.Preconditions.UID = "u"
	raw, err := EncodeList([]*Plan{first, second})
	if err != nil {
		t.Fatal(err)
	}
	got, isList, err := Decode(raw)
	if err != nil || !isList || len(got) != 2 || got[0].Digest() != first.Digest() || got[1].Digest() != second.Digest() {
		t.Fatalf("got %d plans, a list: %t, %v", len(got), isList, err)
	}
	if got, isList, err := Decode(encodeList(t)); err != nil || !isList || len(got) != 0 {
		t.Errorf("an empty list: %v, %t, %v", got, isList, err)
	}
	for name, tc := range map[string]struct {
		raw  []byte
		want errcode.Code
	}{
		"changed":   {bytes.Replace(raw, []byte(`"other"`), []byte(`"third"`), 1), ErrPlanDamaged},
		"no digest": {[]byte(`{"apiVersion":"xpkg.dev/v1alpha1","kind":"PlanList","items":[]}`), ErrPlanInvalid},
		"twice":     {encodeList(t, first, first), ErrPlanInvalid},
		"reordered": {bytes.Replace(
			encodeList(t, second, first), digestIn(encodeList(t, second, first)), digestIn(raw), 1,
		), ErrPlanDamaged},
	} {
		if _, _, err := Decode(tc.raw); !errors.Is(err, tc.want) {
			t.Errorf("%s: got %v, want %s", name, err, tc.want.Name)
		}
	}
}

func encodeList(t *testing.T, plans ...*Plan) []byte {
	t.Helper()
	raw, err := EncodeList(plans)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// digestIn returns the digest at the end of a file.
func digestIn(raw []byte) []byte {
	at := bytes.LastIndex(raw, []byte("sha256:"))
	return raw[at : at+len("sha256:")+64]
}

func FuzzDecode(f *testing.F) {
	f.Add(encode(f, whole(f)))
	f.Add([]byte(`{"apiVersion":"xpkg.dev/v1alpha1","kind":"Plan","digest":"sha256:00"}`))
	f.Add([]byte(`{"apiVersion":"xpkg.dev/v1alpha1","kind":"Plan","digest":"","preconditions":{"spec":1e999}}`))
	for _, unusual := range unusualContents {
		f.Add([]byte(unusual))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, err := decodeOne(raw)
		if err != nil {
			if !errors.Is(err, ErrPlanInvalid) && !errors.Is(err, ErrPlanDamaged) {
				t.Fatalf("an unclassified failure: %v", err)
			}
			// The fuzzer cannot produce a valid digest, so the content is parsed without it as
			// well.
			content, _, _, err := splitDigest(raw)
			if err != nil {
				return
			}
			if p, err = parse(content); err != nil {
				return
			}
		}
		first := encode(t, p)
		back, err := decodeOne(first)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		if back.Digest() != p.Digest() {
			t.Fatalf("what was read is another plan:\n%s\n%s", first, encode(t, back))
		}
		if moved := Compare(p, back); moved != nil {
			t.Fatalf("what was read has moved: %v", moved)
		}
	})
}
