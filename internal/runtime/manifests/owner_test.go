package manifests

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xpkg-dev/xpkg/pkg/plan"
)

func TestHold(t *testing.T) {
	who, other := owner("Provider", "aws"), owner("Provider", "gcp")
	want := []metav1.OwnerReference{who.Revision.Reference(true), who.Package.Reference(false)}
	sibling := plan.Owner{APIVersion: "pkg.crossplane.io/v1", Kind: "ProviderRevision", Name: "aws-ba9876543210", UID: "sibling"}
	collected := sibling
	collected.Name = "aws-cccccccccccc"
	release := metav1.OwnerReference{APIVersion: "example.org/v1", Kind: "Release", Name: "tools", UID: "helm"}
	stale := func(r metav1.OwnerReference, uid types.UID) metav1.OwnerReference { r.UID = uid; return r }
	beta := func(r metav1.OwnerReference) metav1.OwnerReference {
		r.APIVersion = "pkg.crossplane.io/v1beta1"
		return r
	}
	refs := func(r ...metav1.OwnerReference) []metav1.OwnerReference { return r }

	cases := map[string]struct {
		live   []metav1.OwnerReference
		owners []metav1.OwnerReference
		holder string
	}{
		"Nobody":                   {nil, want, ""},
		"Ours":                     {want, want, ""},
		"OfASibling":               {refs(sibling.Reference(true)), want, ""},
		"OfASiblingAndThePackage":  {refs(sibling.Reference(true), who.Package.Reference(false)), want, ""},
		"OfARevisionThatIsGone":    {refs(collected.Reference(true), who.Package.Reference(false)), want, ""},
		"Restored":                 {refs(stale(want[0], "before"), stale(want[1], "before")), want, ""},
		"OfAnOlderVersion":         {refs(beta(want[0])), want, ""},
		"TwoControllers":           {refs(sibling.Reference(true), want[0]), want, ""},
		"OwnersOfOthersStay":       {refs(release, want[0]), refs(release, want[0], want[1]), ""},
		"OfAnotherPackage":         {refs(other.Revision.Reference(true), other.Package.Reference(false)), nil, "ProviderRevision/gcp-0123456789ab"},
		"SharedWithAnotherPackage": {refs(other.Revision.Reference(true), other.Package.Reference(false), who.Package.Reference(false)), nil, "ProviderRevision/gcp-0123456789ab"},
		"TheOtherPackageIsGone":    {refs(who.Package.Reference(false)), want, ""},
		"OfSomethingElse":          {refs(stale(metav1.OwnerReference{Kind: "Release", Name: "tools", Controller: new(true)}, "helm")), nil, "Release/tools"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			owners, holder := Hold(tc.live, who, want)
			if diff := cmp.Diff(tc.owners, owners); diff != "" || holder != tc.holder {
				t.Errorf("holder %q, want %q; owners (-want +got):\n%s", holder, tc.holder, diff)
			}
			if holder == "" {
				again, _ := Hold(owners, who, want)
				if diff := cmp.Diff(owners, again); diff != "" {
					t.Errorf("held a second time (-first +second):\n%s", diff)
				}
			}
		})
	}
}

// Two packages that share an object converge, in either order of reconciliation.
func TestSharedOwnersConverge(t *testing.T) {
	a, b := owner("Provider", "aws"), owner("Provider", "gcp")
	step := func(live []metav1.OwnerReference, who plan.Requester) []metav1.OwnerReference {
		owners, holder := Hold(live, who, []metav1.OwnerReference{who.Revision.Reference(true), who.Package.Reference(false)})
		if holder != "" {
			return Join(live, who)
		}
		return owners
	}
	rest := step(step(nil, a), b)
	for range 3 {
		for _, who := range []plan.Requester{a, b} {
			next := step(rest, who)
			if !EqualOwners(rest, next) {
				t.Fatalf("%s changes the owners:\n%s", who.Package.Name, cmp.Diff(rest, next))
			}
		}
	}
}
