package manifests

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// The owners of an existing object decide whether a package may write it, and which ones the object has after that.
func TestClaim(t *testing.T) {
	who, other := owner("Provider", "aws"), owner("Provider", "gcp")
	function := owner("Function", "aws")
	want := []metav1.OwnerReference{who.Revision.Reference(true), who.Package.Reference(false)}
	sibling := plan.Owner{
		APIVersion: "pkg.crossplane.io/v1", Kind: "ProviderRevision", Name: "aws-ba9876543210", UID: "sibling",
	}
	collected := sibling
	collected.Name = "aws-cccccccccccc"
	release := metav1.OwnerReference{APIVersion: "example.org/v1", Kind: "Release", Name: "tools", UID: "helm"}
	controls := func(r metav1.OwnerReference) metav1.OwnerReference { r.Controller = new(true); return r }
	stale := func(r metav1.OwnerReference, uid types.UID) metav1.OwnerReference { r.UID = uid; return r }
	beta := func(r metav1.OwnerReference) metav1.OwnerReference {
		r.APIVersion = "pkg.crossplane.io/v1beta1"
		return r
	}
	refs := func(r ...metav1.OwnerReference) []metav1.OwnerReference { return r }

	cases := map[string]struct {
		live []metav1.OwnerReference
		// made reports that xpkg wrote the object.
		made   bool
		owners []metav1.OwnerReference
		holder string
	}{
		"OfAUser":                 {nil, false, nil, ""},
		"OfAUserWithAnOwner":      {refs(release), false, nil, ""},
		"WithoutOwners":           {nil, true, want, ""},
		"Ours":                    {want, true, want, ""},
		"OfOurPackage":            {want[1:], false, want, ""},
		"OfASibling":              {refs(sibling.Reference(true)), false, want, ""},
		"OfASiblingAndThePackage": {refs(sibling.Reference(true), who.Package.Reference(false)), true, want, ""},
		"OfARevisionThatIsGone":   {refs(collected.Reference(true), who.Package.Reference(false)), true, want, ""},
		"Restored":                {refs(stale(want[0], "before"), stale(want[1], "before")), true, want, ""},
		"OfAnOlderVersion":        {refs(beta(want[0])), true, want, ""},
		"TwoControllers":          {refs(sibling.Reference(true), want[0]), true, want, ""},
		"OwnersOfOthersStay":      {refs(release, want[0]), true, refs(release, want[0], want[1]), ""},
		"OfAnotherRevision":       {refs(other.Revision.Reference(true)), true, nil, "ProviderRevision/gcp-0123456789ab"},
		"OfAnotherPackage": {
			refs(other.Revision.Reference(true), other.Package.Reference(false)), true, nil, "ProviderRevision/gcp-0123456789ab",
		},
		"OfAFunctionWithOurName": {
			refs(function.Revision.Reference(true), function.Package.Reference(false)), true, nil,
			"FunctionRevision/aws-0123456789ab",
		},
		"SharedWithAnotherPackage": {
			refs(other.Revision.Reference(true), other.Package.Reference(false), who.Package.Reference(false)), true, nil,
			"ProviderRevision/gcp-0123456789ab",
		},
		"BetweenOtherRevisions": {refs(other.Package.Reference(false)), true, nil, "Provider/gcp"},
		"BetweenRevisionsOfBoth": {
			refs(who.Package.Reference(false), other.Package.Reference(false)), true, nil, "Provider/gcp",
		},
		"TheOtherPackageIsGone": {refs(who.Package.Reference(false)), true, want, ""},
		"TwoDifferentControllers": {
			refs(want[0], other.Revision.Reference(true)), true, nil, "ProviderRevision/gcp-0123456789ab",
		},
		"OfARelease":      {refs(controls(release)), false, nil, "Release/tools"},
		"TakenByARelease": {refs(controls(release), want[1]), true, nil, "Release/tools"},
		"OfAReplicaSet": {
			refs(metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "x", Controller: new(true)}), false, nil,
			"ReplicaSet/x",
		},
	}
	for _, kind := range []metav1.Object{
		&appsv1.Deployment{}, &corev1.Service{}, &corev1.ServiceAccount{}, &corev1.Secret{}, &discoveryv1.EndpointSlice{},
	} {
		for name, tc := range cases {
			t.Run(fmt.Sprintf("%T/%s", kind, name), func(t *testing.T) {
				kind.SetOwnerReferences(tc.live)
				kind.SetAnnotations(nil)
				if tc.made {
					kind.SetAnnotations(map[string]string{plan.ContentDigestAnnotation: "x"})
				}
				ours, ref := Claim(kind, who)
				holder := ""
				if ref != nil {
					holder = ref.Kind + "/" + ref.Name
				}
				if ours != (tc.owners != nil) || holder != tc.holder {
					t.Fatalf("ours %t, holder %q; want %t, %q", ours, holder, tc.owners != nil, tc.holder)
				}
				if !ours {
					return
				}
				owners := Hold(tc.live, who, want)
				if diff := cmp.Diff(tc.owners, owners); diff != "" {
					t.Errorf("owners (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(owners, Hold(owners, who, want)); diff != "" {
					t.Errorf("held a second time (-first +second):\n%s", diff)
				}
			})
		}
	}
}
