package graph

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

const (
	definitions = "apiextensions.k8s.io/v1"
	composites  = "apiextensions.crossplane.io/v1"
)

func typed(apiVersion, kind, name string, uid types.UID) v1.TypedReference {
	return v1.TypedReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: uid}
}

func TestOwned(t *testing.T) {
	crdB, crdA := typed(definitions, "CustomResourceDefinition", "b", "1"),
		typed(definitions, "CustomResourceDefinition", "a", "2")
	composition := typed(composites, "Composition", "c", "3")
	webhook := typed("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "w", "")
	for name, tc := range map[string]struct {
		refs []v1.TypedReference
		want []v1beta1.LockOwned
	}{
		"nothing": {nil, nil},
		"kinds and names in order, whatever the order was": {
			[]v1.TypedReference{crdB, composition, crdA},
			[]v1beta1.LockOwned{
				{APIVersion: composites, Kind: "Composition", Count: 1, Names: []string{"c"}},
				{APIVersion: definitions, Kind: "CustomResourceDefinition", Count: 2, Names: []string{"a", "b"}},
			},
		},
		"in the middle of an install": {
			[]v1.TypedReference{crdA, typed(definitions, "CustomResourceDefinition", "d", "")}, nil,
		},
		"webhooks wait for a program": {
			[]v1.TypedReference{webhook, crdA},
			[]v1beta1.LockOwned{{APIVersion: definitions, Kind: "CustomResourceDefinition", Count: 1, Names: []string{"a"}}},
		},
		"webhooks of a program": {
			[]v1.TypedReference{typed(webhook.APIVersion, webhook.Kind, "w", "4")},
			[]v1beta1.LockOwned{{APIVersion: webhook.APIVersion, Kind: webhook.Kind, Count: 1, Names: []string{"w"}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			rev := v1.NewPackage(v1.ProviderKind).NewRevision()
			rev.RevisionStatus().ObjectRefs = tc.refs
			if diff := cmp.Diff(tc.want, OwnedObjects(rev)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.refs, rev.RevisionStatus().ObjectRefs); diff != "" {
				t.Errorf("the revision has changed (-want +got):\n%s", diff)
			}
		})
	}
}

// entry is one of the Lock with some kinds of object, each with a number of names.
func entry(name string, counts ...int) v1beta1.LockPackage {
	out := v1beta1.LockPackage{Name: name, Kind: new("Provider"), Source: "registry.example.com/" +
		name, Version: "v1.0.0", Dependencies: []v1beta1.Dependency{}}
	for i, n := range counts {
		o := v1beta1.LockOwned{APIVersion: definitions, Kind: fmt.Sprintf("Kind%d", i), Count: int64(n)}
		for j := range n {
			o.Names = append(o.Names, fmt.Sprintf("name-%05d.%d.of.%s.example.com", j, i, name))
		}
		out.Owns = append(out.Owns, o)
	}
	return out
}

// ownersText returns the number of names of each kind for each entry, and their
// total.
func ownersText(packages []v1beta1.LockPackage) (out string) {
	for _, p := range packages {
		out += p.Name
		for _, o := range p.Owns {
			out += fmt.Sprintf(" %d/%d", len(o.Names), o.Count)
		}
		out += "; "
	}
	return out
}

func TestFit(t *testing.T) {
	for name, tc := range map[string]struct {
		packages []v1beta1.LockPackage
		limit    int
		want     string
	}{
		"there is room": {[]v1beta1.LockPackage{entry("a", 3, 2), entry("b", 4)}, 1 << 20, "a 3/3 2/2; b 4/4; "},
		"ten thousand fit": {
			[]v1beta1.LockPackage{entry("a", 9000), entry("b", 1000)}, 1 << 20, "a 9000/9000; b 1000/1000; ",
		},
		"the longest list goes": {
			[]v1beta1.LockPackage{entry("a", 300, 20), entry("b", 40)}, 4 << 10, "a 0/300 20/20; b 40/40; ",
		},
		"and then the next one": {
			[]v1beta1.LockPackage{entry("a", 30, 20), entry("b", 40)}, 1700, "a 0/30 20/20; b 0/40; ",
		},
		"nothing but the entries": {[]v1beta1.LockPackage{entry("a", 3, 2), entry("b", 4)}, 10, "a; b; "},
		"of equals the first":     {[]v1beta1.LockPackage{entry("a", 50), entry("b", 50)}, 2600, "a 0/50; b 50/50; "},
	} {
		t.Run(name, func(t *testing.T) {
			TrimOwned(tc.packages, tc.limit)
			if got := ownersText(tc.packages); got != tc.want {
				t.Errorf("got %s (%d bytes), want %s", got, sizeOf(tc.packages), tc.want)
			}
		})
	}
}

// Whatever there is, the result is within the limit unless there is nothing left to
// leave out, no more is left out than it takes, and counts are true.
func TestFitProperties(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var packages []v1beta1.LockPackage
		var counts [][]int
		for i := range rapid.IntRange(0, 5).Draw(r, "packages") {
			n := rapid.SliceOfN(rapid.IntRange(1, 30), 0, 3).Draw(r, "counts")
			counts = append(counts, n)
			packages = append(packages, entry(fmt.Sprintf("p%d", i), n...))
		}
		limit := rapid.IntRange(0, 8000).Draw(r, "limit")
		TrimOwned(packages, limit)
		raw, err := json.Marshal(packages)
		if err != nil {
			r.Fatal(err)
		}
		left, smallest := 0, 0
		for i, p := range packages {
			for j, o := range p.Owns {
				left++
				switch {
				case o.Count != int64(counts[i][j]):
					r.Fatalf("there are %d and not %d", counts[i][j], o.Count)
				case o.Names == nil:
					if size := sizeOf(entry(p.Name, counts[i]...).Owns[j].Names); smallest == 0 || size < smallest {
						smallest = size
					}
				}
			}
		}
		if len(raw) > limit && left > 0 {
			r.Fatalf("%d bytes are more than %d, and something can be left out", len(raw), limit)
		}
		if smallest > 0 && len(raw)+smallest+len(`,"names":`) <= limit {
			r.Fatalf("%d bytes of %d: names of %d bytes were omitted without need", len(raw), limit, smallest)
		}
	})
}

func TestExplainSwitchNamesTheAnnotation(t *testing.T) {
	p := &v1.Configuration{}
	p.SetName("plat")
	SetKindProviders(p, []dependency.Dependency{{
		Package: "registry.example.com/kites", Constraint: ">=v1.0.0", CRD: "kites.sky.example.org",
	}})
	crd := func(name string) plan.Ref {
		return plan.Ref{APIVersion: "apiextensions.k8s.io/v1", Kind: plan.DefinitionKind, Name: name}
	}
	holders := plan.Holders{}
	holders.Take("Provider/kites", []plan.Ref{crd("kites.sky.example.org"), crd("ropes.land.example.org")})
	refusals := append(holders.Take("registry.example.com/kites", []plan.Ref{
		crd("kites.sky.example.org"), crd("ropes.land.example.org"),
	}),
		holders.Take("registry.example.com/other", []plan.Ref{crd("kites.sky.example.org")})...)
	ExplainSwitch(p, refusals)
	for i, want := range []string{
		"to let configuration/plat use the kinds of Provider/kites, run `kubectl annotate configurations.pkg.crossplane.io plat xpkg.dev/kind-providers-`",
		"", "",
	} {
		if refusals[i].Fix != want {
			t.Errorf("the fix of %s is %q, want %q", refusals[i].Reason, refusals[i].Fix, want)
		}
	}
}

func TestHolders(t *testing.T) {
	crd := func(name string) plan.Ref {
		return plan.Ref{APIVersion: definitions, Kind: "CustomResourceDefinition", Name: name}
	}
	owns := []v1beta1.LockOwned{{APIVersion: definitions, Kind: "CustomResourceDefinition", Count: 1, Names: []string{
		"a",
	}}}
	cut := []v1beta1.LockOwned{{APIVersion: definitions, Kind: "CustomResourceDefinition", Count: 1}}
	one, bare, large := entry("one"), entry("bare"), entry("large")
	one.Owns, large.Owns = owns, cut
	for name, tc := range map[string]struct {
		lock  []v1beta1.LockPackage
		but   string
		known bool
		want  int
	}{
		"no entries":                            {nil, "", false, 0},
		"an older manager":                      {[]v1beta1.LockPackage{bare}, "", false, 0},
		"one holds it":                          {[]v1beta1.LockPackage{bare, one}, "", true, 1},
		"one that does not count has it":        {[]v1beta1.LockPackage{bare, one}, "one", true, 0},
		"there are more than could be recorded": {[]v1beta1.LockPackage{large, one}, "", false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			holders, known := Holders(tc.lock, map[string]string{"one": "Provider/one-package"}, map[string]bool{tc.but: true})
			refusals := holders.Take("other", []plan.Ref{crd("a"), crd("free")})
			if known != tc.known || len(refusals) != tc.want {
				t.Errorf("known is %v, and refused is %v", known, refusals)
			}
			for _, r := range refusals {
				if r.Holder != "Provider/one-package" {
					t.Errorf("got %+v", r)
				}
			}
		})
	}
}
