package state_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// servedKinds are the kinds of a group by the names of the Providers that hold them.
type servedKinds map[string][]apply.ServedKind

func (s servedKinds) Kinds(context.Context, string) ([]apply.ServedKind, error) {
	var out []apply.ServedKind
	for _, name := range []string{"parts", "other"} {
		out = append(out, s[name]...)
	}
	return out, nil
}

func (s servedKinds) Metadata(_ context.Context, refs []plan.Ref) (map[plan.Ref]plan.Live, error) {
	out := map[plan.Ref]plan.Live{}
	for name, all := range s {
		for _, k := range all {
			for _, ref := range refs {
				if ref.Name == k.Plural+".group.example.org" {
					out[ref] = plan.Live{Owners: []metav1.OwnerReference{{APIVersion: "pkg.crossplane.io/v1", Kind: "Provider", Name: name, Controller: new(true)}}}
				}
			}
		}
	}
	return out, nil
}

// The record of all kinds of a group is completed with the kinds of the recorded packages: their CRDs do not appear at once.
// Another package adds none, and neither does a kind without the required version.
func TestTheRecordOfAllKindsOfAGroupIsCompleted(t *testing.T) {
	kind := func(name, plural, version string) apply.ServedKind {
		return apply.ServedKind{Kind: name, Plural: plural, Versions: []string{version}}
	}
	pkg := &xpkg.Package{Meta: xpkg.Meta{Kind: xpkg.Provider, Kinds: []dependency.KindRef{{Name: "*", Group: "group.example.org", Version: "v1"}}}}
	var recorded []dependency.Dependency
	for _, step := range []struct {
		served servedKinds
		want   []string
	}{
		{servedKinds{"parts": {kind("Oar", "oars", "v1")}}, []string{"Oar.group.example.org/v1"}},
		{servedKinds{"parts": {kind("Boat", "boats", "v1"), kind("Oar", "oars", "v1"), kind("Sail", "sails", "v2")}}, []string{"Oar.group.example.org/v1", "Boat.group.example.org/v1"}},
		{servedKinds{"parts": {kind("Boat", "boats", "v1"), kind("Oar", "oars", "v1")}, "other": {kind("Raft", "rafts", "v1")}}, []string{"Oar.group.example.org/v1", "Boat.group.example.org/v1"}},
	} {
		found, err := state.BindKinds(t.Context(), step.served, pkg, recorded, func(_, name string) string { return "registry.example.com/" + name })
		if err != nil || len(found.Missing) > 0 {
			t.Fatalf("%+v, %v", found, err)
		}
		var got []string
		for _, d := range found.Selected {
			got = append(got, d.CRD)
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		recorded = found.Selected
	}
}
