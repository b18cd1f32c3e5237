package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The objects of an inactive revision keep the package as an owner, also if a backup
// has lost or changed the owners; objects of other packages do not get it.
func TestDeactivateKeepsThePackage(t *testing.T) {
	ref := Ref{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: "things.example.org"}
	who := Requester{
		Revision: Owner{APIVersion: "pkg.crossplane.io/v1", Kind: "ProviderRevision", Name: "x-1", UID: "new-revision"},
		Package:  Owner{APIVersion: "pkg.crossplane.io/v1", Kind: "Provider", Name: "x", UID: "new-package"},
		Siblings: []string{"x-1", "x-2"},
	}
	old := func(o Owner, control bool) metav1.OwnerReference {
		r := o.Reference(control)
		r.UID = "old"
		return r
	}
	sibling := Owner{APIVersion: "pkg.crossplane.io/v1", Kind: "ProviderRevision", Name: "x-2", UID: "other"}
	stranger := Owner{APIVersion: "pkg.crossplane.io/v1", Kind: "ProviderRevision", Name: "y-1", UID: "stranger"}
	ours := map[string]string{ContentDigestAnnotation: "sha256:1"}
	owned := []metav1.OwnerReference{who.Package.Reference(false)}
	for name, c := range map[string]struct{ live, want []metav1.OwnerReference }{
		"Lost":             {nil, owned},
		"Stale":            {[]metav1.OwnerReference{old(who.Package, false)}, owned},
		"Controlled":       {[]metav1.OwnerReference{who.Package.Reference(true)}, owned},
		"RestoredRevision": {[]metav1.OwnerReference{old(who.Revision, true)}, owned},
		"Sibling": {
			[]metav1.OwnerReference{sibling.Reference(true), stranger.Reference(false)},
			[]metav1.OwnerReference{stranger.Reference(false), who.Package.Reference(false)},
		},
		"Owned":    {[]metav1.OwnerReference{sibling.Reference(false), who.Package.Reference(false)}, nil},
		"Stranger": {[]metav1.OwnerReference{stranger.Reference(true)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := Deactivate([]Ref{ref}, map[Ref]Live{ref: {Ref: ref, Owners: c.live, Annotations: ours}}, who)
			if c.want == nil {
				if len(p.Changes) > 0 || p.Unchanged != 1 {
					t.Errorf("the plan is %+v", p)
				}
				return
			}
			if len(p.Changes) != 1 {
				t.Fatalf("the plan is %+v", p)
			}
			if diff := cmp.Diff(c.want, p.Changes[0].Owners); diff != "" {
				t.Errorf("owners (-want +got):\n%s", diff)
			}
			again := Deactivate([]Ref{ref}, map[Ref]Live{ref: {Ref: ref, Owners: c.want, Annotations: ours}}, who)
			if len(again.Changes) > 0 || again.Unchanged != 1 {
				t.Errorf("the plan after that is %+v", again)
			}
		})
	}
}

// An object that a person made before there was any package is not given to a
// revision that was never active: it would be removed with the package.
//
// hardening: I-13
func TestDeactivateKeepsObjectsOfUsers(t *testing.T) {
	ref := Ref{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: "things.example.org"}
	who := Requester{
		Revision: Owner{APIVersion: "pkg.crossplane.io/v1", Kind: "ProviderRevision", Name: "x-1", UID: "revision"},
		Package:  Owner{APIVersion: "pkg.crossplane.io/v1", Kind: "Provider", Name: "x", UID: "package"},
		Siblings: []string{"x-1"},
	}
	team := metav1.OwnerReference{APIVersion: "example.org/v1", Kind: "Team", Name: "a", UID: "team"}
	for name, c := range map[string]struct {
		owners []metav1.OwnerReference
		left   bool
	}{
		"nobody's":      {nil, true},
		"a team's":      {[]metav1.OwnerReference{team}, true},
		"the package's": {[]metav1.OwnerReference{who.Package.Reference(true)}, false},
	} {
		p := Deactivate([]Ref{ref}, map[Ref]Live{ref: {Ref: ref, Owners: c.owners}}, who)
		if left := len(p.Changes) == 0 && p.Unchanged == 1; left != c.left {
			t.Errorf("%s: the plan is %+v", name, p)
		}
	}
}
