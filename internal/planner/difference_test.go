package planner

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/xpkg-dev/xpkg/pkg/crddiff"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// clone returns a deep copy.
func clone(t testing.TB, p *Plan) *Plan {
	t.Helper()
	raw, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	out := &Plan{}
	if err := json.Unmarshal(raw, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// a spot is a place in a plan that can be changed.
type spot struct {
	path   string
	change func()
}

// spots finds every place in a value: each leaf, and each list and map as a whole.
func spots(path string, v reflect.Value) []spot {
	switch v.Kind() {
	case reflect.String:
		return []spot{{path, func() { v.SetString(v.String() + "x") }}}
	case reflect.Int, reflect.Int64:
		if v.Type() == reflect.TypeFor[crddiff.Class]() {
			return []spot{{path, func() { v.SetInt((v.Int() + 1) % 3) }}}
		}
		return []spot{{path, func() { v.SetInt(v.Int() + 1) }}}
	case reflect.Bool:
		return []spot{{path, func() { v.SetBool(!v.Bool()) }}}
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return append(spots(path, v.Elem()), spot{path + " removed", func() { v.SetZero() }})
	case reflect.Struct:
		var out []spot
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && f.Tag.Get("json") != "-" {
				out = append(out, spots(path+"."+f.Name, v.Field(i))...)
			}
		}
		return out
	case reflect.Map:
		return []spot{{path, func() {
			if v.IsNil() {
				v.Set(reflect.MakeMap(v.Type()))
			}
			v.SetMapIndex(reflect.ValueOf("more"), reflect.ValueOf("x"))
		}}}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			return []spot{{path, func() { v.SetBytes([]byte(`{"spec":{"package":"other"}}`)) }}}
		}
		out := []spot{
			{path + " grown", func() { v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem()))) }},
		}
		if v.Len() > 0 {
			out = append(out, spot{path + " cut", func() { v.Set(v.Slice(0, v.Len()-1)) }})
		}
		for i := range v.Len() {
			out = append(out, spots(fmt.Sprintf("%s[%d]", path, i), v.Index(i))...)
		}
		return out
	}
	panic("a plan has a " + v.Kind().String())
}

// uncompared reports whether Compare ignores a path on purpose.
func uncompared(path string) bool {
	for _, p := range []string{
		".APIVersion", ".Kind", ".KindChanges", ".Permissions.Foreign", ".Policy", ".Warnings", ".Remedy", ".RollsBack",
		".WithoutRuntime", ".Content.Resolved", ".CustomResources[1].Digest", ".Objects.Judgements",
		".Content.Signers", ".OnDelete.Orphan", ".OnDelete.Cascade", ".OnDelete.AtMost",
	} {
		if strings.HasPrefix(path, ".AddedPackages[") && (strings.Contains(path, "].KindChanges") || strings.Contains(path, "].Signers") ||
			strings.Contains(path, "].Objects.Judgements")) || path == p ||
			strings.HasPrefix(path, p+"[") || strings.HasPrefix(path, p+" ") {
			return true
		}
	}
	return false
}

// Every change of a plan is named, in both directions.
func TestMovedNamesEveryChange(t *testing.T) {
	p := whole(t)
	p.Accepts = []string{"boats.acme.example.org/FieldRemoved"}
	p.Kinds = &ActiveKinds{Active: 1, Offered: 2}
	n := len(spots("", reflect.ValueOf(p).Elem()))
	if n < 90 {
		t.Fatalf("a plan has only %d fields", n)
	}
	for i := range n {
		now := clone(t, p)
		s := spots("", reflect.ValueOf(now).Elem())[i]
		s.change()
		there, back := Compare(p, now), Compare(now, p)
		if named := len(there) > 0 && len(back) > 0; named == uncompared(s.path) {
			t.Errorf("%s: %v and %v", s.path, there, back)
		}
		for _, d := range there {
			if d.What == "" || d.Was == "" || d.Is == "" || d.Was == d.Is {
				t.Errorf("%s: it does not say what moved: %+v", s.path, d)
			}
		}
	}
}

// Metadata that users and their tools write to a package is no part of an update.
func TestMovedIgnoresMetadata(t *testing.T) {
	p := whole(t)
	p.Operation = Update
	now := clone(t, p)
	now.Package.Object = json.RawMessage(strings.Replace(
		string(p.Package.Object), `"labels":{`, `"labels":{"argocd.argoproj.io/instance":"a",`, 1,
	))
	if sameJSON(p.Package.Object, now.Package.Object) {
		t.Fatal("nothing was changed")
	}
	if moved := Compare(p, now); moved != nil {
		t.Error(moved)
	}
}

func TestMovedProperties(t *testing.T) {
	p := whole(t)
	rapid.Check(t, func(r *rapid.T) {
		now := clone(t, p)
		for range rapid.IntRange(0, 4).Draw(r, "changes") {
			all := spots("", reflect.ValueOf(now).Elem())
			all[rapid.IntRange(0, len(all)-1).Draw(r, "spot")].change()
		}
		if again := clone(t, now); Compare(now, again) != nil {
			r.Fatalf("a plan has moved from itself: %v", Compare(now, again))
		}
		if Compare(p, now) == nil && now.Objects.Unchanged != p.Objects.Unchanged {
			r.Fatal("a change is not named")
		}
		if len(Compare(p, now)) != len(Compare(now, p)) {
			r.Fatalf("there %v, and back %v", Compare(p, now), Compare(now, p))
		}
	})
}

// The text of each change contains the former and the new value.
func TestDifferencesAsText(t *testing.T) {
	p := whole(t)
	for name, tc := range map[string]struct {
		change func(*Plan)
		want   []string
	}{
		"the cluster": {func(p *Plan) { p.Cluster = "other" }, []string{
			"the cluster was 11111111-2222-3333-4444-555555555555 and is other",
		}},
		"the spec": {func(p *Plan) {
			spec := strings.Replace(
				string(p.Preconditions.Spec), `"revisionHistoryLimit":1`, `"revisionHistoryLimit":7,"commonLabels":{"team":"b"}`, 1,
			)
			p.Preconditions.Spec = json.RawMessage(strings.Replace(spec, `"name":"default"`, `"name":"large"`, 1))
		}, []string{
			`the field commonLabels in the spec of the package was absent and is {"team":"b"}`,
			"the field revisionHistoryLimit in the spec of the package was 1 and is 7",
			"the field runtimeConfigRef.name in the spec of the package was default and is large",
		}},
		"the generation": {func(p *Plan) { p.Preconditions.Generation = 5 }, []string{
			"the generation of the package was 4 and is 5",
		}},
		"the content": {func(p *Plan) { p.Content.Digest = digestA }, []string{
			"the content was " + digestB + " and is " + digestA,
		}},
		"a revision": {func(p *Plan) { p.Preconditions.Revisions = nil }, []string{
			"revision boats-aaaaaaaaaaaa was Active with number 1 and is absent",
		}},
		"another package": {func(p *Plan) { p.Preconditions.Installed[0].Name = "paddle" }, []string{
			"the installed function/paddle was absent and is registry.example.com/row:v1 (" + digestA + ")",
			"the installed function/row was registry.example.com/row:v1 (" + digestA + ") and is absent",
		}},
		"an object": {func(p *Plan) { p.Objects.Changes[1].ResourceVersion = "14" }, []string{
			"the change of CustomResourceDefinition rafts.example.com was release, with UID u3 and resourceVersion 13 and is release, with UID u3 and resourceVersion 14",
		}},
		"an object that is there now": {func(p *Plan) {
			p.Objects.Changes[1] = plan.Change{
				Action: plan.Create, Ref: p.Objects.Changes[1].Ref,
			}
		}, []string{
			"the change of CustomResourceDefinition rafts.example.com was release, with UID u3 and resourceVersion 13 and is create",
		}},
		"a refusal": {func(p *Plan) { p.Objects.Refusals = nil }, []string{
			"the reason for the refusal of CustomResourceDefinition canoes.example.com was it belongs to ProviderRevision/other and is absent",
		}},
		"a dependency": {func(p *Plan) { p.Dependencies[0].State = "satisfied" }, []string{
			"the dependency registry.example.com/water was incompatible registry.example.com/water:v0.9.0 and is satisfied registry.example.com/water:v0.9.0",
		}},
		"custom resources": {func(p *Plan) { p.CustomResources[0].Count = 413 }, []string{
			"the number of custom resources to delete with boats.example.com was 412 and is 413",
		}},
		"no custom resources": {func(p *Plan) { p.CustomResources = p.CustomResources[1:] }, []string{
			"the number of custom resources to delete with boats.example.com was 412 and is 0",
		}},
		"uncounted custom resources": {func(p *Plan) {
			p.CustomResources[0] = CustomResources{CRD: "boats.example.com", Unknown: "the CRD serves no version"}
		}, []string{
			"the number of custom resources to delete with boats.example.com was 412 and is unknown (the CRD serves no version)",
		}},
		"adopted objects": {func(p *Plan) { p.Adoptions = []string{"a", "b"} }, []string{
			"the list of objects that the package may adopt was CustomResourceDefinition/rafts.test and is a, b",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			now := clone(t, p)
			tc.change(now)
			var got []string
			for _, d := range Compare(p, now) {
				got = append(got, d.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if err := MovedError(p, Compare(p, now)); !errors.Is(err, ErrPlanMoved) ||
				!strings.Contains(err.Error(), tc.want[0]) {
				t.Error(err)
			}
		})
	}
	if err := MovedError(p, nil); err != nil {
		t.Error(err)
	}
}
