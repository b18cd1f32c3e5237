package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var helm = Owner{APIVersion: "helm.toolkit.fluxcd.io/v2", Kind: "Release", Name: "tools", UID: "uid-helm"}

// adopted returns a live object that the package aws has adopted.
func adopted(digest, by string, owners ...metav1.OwnerReference) map[Ref]Live {
	l := live(digest, owners...)[crd]
	l.Annotations[AdoptedByAnnotation] = by
	return map[Ref]Live{crd: l}
}

// An object of a user is adopted with consent, and gets no owner that would delete it with the package.
func TestAnAdoptedObjectKeepsItsOwners(t *testing.T) {
	consents := who
	consents.Adopts = []string{crd.ObjectName()}
	marked := func(action Action) Plan {
		p := change(action, false, "d2", helm.Reference(false))
		p.Changes[0].Annotations[AdoptedByAnnotation] = "Provider/aws"
		return p
	}
	for name, tc := range map[string]struct {
		who  Requester
		live map[Ref]Live
		want Plan
	}{
		"WithConsent": {consents, live("", helm.Reference(false)), marked(Adopt)},
		"NewContent":  {consents, adopted("d1", "Provider/aws", helm.Reference(false)), marked(Update)},
		"Unchanged":   {who, adopted("d2", "Provider/aws", helm.Reference(false)), Plan{Unchanged: 1}},
		"AdoptedByAnotherOne": {consents, adopted("d2", "Provider/gcp"), Plan{Refusals: []Refusal{
			{Ref: crd, Holder: "Provider/gcp", Reason: "CustomResourceDefinition buckets.example.org belongs to Provider/gcp",
				Fix: "a user let provider/gcp adopt the object: when that package has a version without it, or is uninstalled, return it with `kubectl annotate customresourcedefinition.apiextensions.k8s.io buckets.example.org " +
					"xpkg.dev/adopted-by- xpkg.dev/content-digest- xpkg.dev/ca-bundle-hash-`, and let this package adopt it with --adopt"}}}},
		"ConsentToAnotherThing": {
			Requester{Revision: cur, Package: pkg, Adopts: []string{"CustomResourceDefinition/x"}}, live(""),
			Plan{Refusals: []Refusal{{Ref: crd, Cause: NeedsAdoption}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Establish(want("d2"), tc.live, nil, tc.who)
			ignore := cmpopts.IgnoreFields(Refusal{}, "Fix")
			if name == "ConsentToAnotherThing" {
				ignore = cmpopts.IgnoreFields(Refusal{}, "Fix", "Reason")
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty(), ignore); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

// An uninstall returns adopted objects to their users, and does not delete them.
func TestUninstallReleasesAdoptedObjects(t *testing.T) {
	p := Uninstall(adopted("d2", "Provider/aws"), who)
	if len(p.Changes) != 1 || p.Changes[0].Action != Leave || !p.Changes[0].MetadataOnly {
		t.Fatalf("got %+v", p.Changes)
	}
	if diff := cmp.Diff(
		[]string{AdoptedByAnnotation, ContentDigestAnnotation}, p.Changes[0].RemoveAnnotations,
	); diff != "" {
		t.Errorf("removed annotations (-want +got):\n%s", diff)
	}
	if n := len(p.Releases().Changes); n != 1 {
		t.Errorf("%d releases, want 1", n)
	}
	if p := Uninstall(adopted("d2", "Provider/gcp"), who); len(p.Changes) != 0 || len(p.Releases().Changes) != 0 {
		t.Errorf("an object that another package adopted: %+v", p.Changes)
	}
	if p := Deactivate([]Ref{crd}, adopted("d2", "Provider/aws"), who); len(p.Changes) != 0 {
		t.Errorf("an inactive revision changes the owners: %+v", p.Changes)
	}
}
