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
					out[ref] = plan.Live{Owners: []metav1.OwnerReference{{
						APIVersion: "pkg.crossplane.io/v1", Kind: "Provider", Name: name, Controller: new(true),
					}}}
				}
			}
		}
	}
	return out, nil
}

// The record of all kinds of a group is completed with the kinds of the recorded packages: their CRDs do not appear at
// once. Another package adds none, and neither does a kind without the required version.
func TestTheRecordOfAllKindsOfAGroupIsCompleted(t *testing.T) {
	kind := func(name, plural, version string) apply.ServedKind {
		return apply.ServedKind{Kind: name, Plural: plural, Versions: []string{version}}
	}
	pkg := &xpkg.Package{Meta: xpkg.Meta{Kind: xpkg.Provider, Kinds: []dependency.KindRef{{
		Name: "*", Group: "group.example.org", Version: "v1",
	}}}}
	var recorded []dependency.Dependency
	for _, step := range []struct {
		served servedKinds
		want   []string
	}{
		{servedKinds{"parts": {kind("Oar", "oars", "v1")}}, []string{"Oar.group.example.org/v1"}},
		{servedKinds{"parts": {
			kind("Boat", "boats", "v1"), kind("Oar", "oars", "v1"), kind("Sail", "sails", "v2"),
		}}, []string{"Oar.group.example.org/v1", "Boat.group.example.org/v1"}},
		{servedKinds{"parts": {kind("Boat", "boats", "v1"), kind("Oar", "oars", "v1")}, "other": {
			kind("Raft", "rafts", "v1"),
		}}, []string{"Oar.group.example.org/v1", "Boat.group.example.org/v1"}},
	} {
		found, err := state.BindKinds(
			t.Context(), step.served, pkg, recorded, func(_, name string) string { return "registry.example.com/" + name },
		)
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

// ownedKind is a kind whose CRD, and the XRD or MRD from which it was created, have owners.
type ownedKind struct{ crd, definition []metav1.OwnerReference }

func (ownedKind) Kinds(context.Context, string) ([]apply.ServedKind, error) {
	return []apply.ServedKind{{Kind: "Boat", Plural: "boats", Versions: []string{"v1"}}}, nil
}

func (o ownedKind) Metadata(_ context.Context, refs []plan.Ref) (map[plan.Ref]plan.Live, error) {
	owners := o.crd
	if refs[0].Kind != "CustomResourceDefinition" {
		owners = o.definition
	}
	return map[plan.Ref]plan.Live{refs[0]: {Owners: owners}}, nil
}

// A package that owns a CRD without controlling it has released it: it does not provide the kind.
func TestTheHolderOfAKindIsThePackageThatControlsItsCRD(t *testing.T) {
	owner := func(apiVersion, kind, name string, controls bool) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, Controller: new(controls)}
	}
	pkg := func(name string, controls bool) metav1.OwnerReference {
		return owner("pkg.crossplane.io/v1", "Provider", name, controls)
	}
	xrd := owner("apiextensions.crossplane.io/v2", "CompositeResourceDefinition", "boats.group.example.org", true)
	mrd := owner("apiextensions.crossplane.io/v1alpha1", "ManagedResourceDefinition", "boats.group.example.org", true)
	type owners = []metav1.OwnerReference
	for name, tt := range map[string]struct {
		kind     ownedKind
		want     string
		released bool
	}{
		"no owner":            {kind: ownedKind{}},
		"an object of a user": {kind: ownedKind{crd: owners{owner("v1", "ConfigMap", "mine", true)}}},
		"a package":           {kind: ownedKind{crd: owners{pkg("parts", true)}}, want: "Provider/parts"},
		"a package beside a former one": {
			kind: ownedKind{crd: owners{pkg("old", false), pkg("parts", true)}}, want: "Provider/parts",
		},
		"a former package":    {kind: ownedKind{crd: owners{pkg("parts", false)}}, released: true},
		"two former packages": {kind: ownedKind{crd: owners{pkg("parts", false), pkg("other", false)}}, released: true},
		"a package whose revision controls it": {
			kind: ownedKind{crd: owners{
				pkg("parts", false), owner("pkg.crossplane.io/v1", "ProviderRevision", "parts-1", true),
			}}, want: "Provider/parts",
		},
		"the XRD of a package": {
			kind: ownedKind{crd: owners{xrd}, definition: owners{pkg("parts", true)}}, want: "Provider/parts",
		},
		"the MRD of a package": {
			kind: ownedKind{crd: owners{mrd}, definition: owners{pkg("parts", true)}}, want: "Provider/parts",
		},
		"the XRD of a former package": {
			kind: ownedKind{crd: owners{xrd}, definition: owners{pkg("parts", false)}}, released: true,
		},
		"the XRD of a user": {kind: ownedKind{crd: owners{xrd}}},
	} {
		t.Run(name, func(t *testing.T) {
			boat := dependency.KindRef{Name: "Boat", Group: "group.example.org"}
			held, err := state.FindKinds(t.Context(), tt.kind, boat)
			if err != nil || len(held) != 1 {
				t.Fatalf("%+v, %v", held, err)
			}
			got := ""
			if held[0].PackageName != "" {
				got = held[0].PackageKind + "/" + held[0].PackageName
			}
			if got != tt.want || held[0].Released != tt.released {
				t.Errorf("holder %q, released %t, want %q, %t", got, held[0].Released, tt.want, tt.released)
			}
			needs := &xpkg.Package{Meta: xpkg.Meta{Kind: xpkg.Configuration, Kinds: []dependency.KindRef{boat}}}
			bound, err := state.BindKinds(t.Context(), tt.kind, needs, nil, func(_, name string) string { return name })
			if err != nil || (len(bound.Missing) > 0) != tt.released {
				t.Errorf("bound %+v, %v", bound, err)
			}
			recorded := []dependency.Dependency{{Package: "parts", CRD: boat.String()}}
			released, err := state.ReleasedKinds(t.Context(), tt.kind, recorded)
			if err != nil || (len(released) > 0) != tt.released {
				t.Errorf("released are %+v, %v", released, err)
			}
		})
	}
}
