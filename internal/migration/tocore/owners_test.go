package tocore

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/migration"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

var crd = plan.Ref{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: "boats.example.org"}

// boats is a Provider with an active and a former revision, which both contain the CRD.
func boats() family {
	p := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "boats", UID: "pkg"}}
	f := family{migration.Package{Package: p}}
	for name, state := range map[string]v1.RevisionState{"boats-1": v1.RevisionInactive, "boats-2": v1.RevisionActive} {
		rev := &v1.ProviderRevision{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)}}
		rev.Spec.DesiredState = state
		rev.Status.ObjectRefs = []v1.TypedReference{{APIVersion: crd.APIVersion, Kind: crd.Kind, Name: crd.Name}}
		f.Revisions = append(f.Revisions, rev)
	}
	return f
}

func ref(kind, name, uid string, controller bool) metav1.OwnerReference {
	r := metav1.OwnerReference{APIVersion: v1.GroupVersion.String(), Kind: kind, Name: name, UID: types.UID(uid)}
	if controller {
		r.Controller, r.BlockOwnerDeletion = new(true), new(true)
	}
	return r
}

func TestOwnersThatCoreGives(t *testing.T) {
	former, active := ref("ProviderRevision", "boats-1", "uid-boats-1", false),
		ref("ProviderRevision", "boats-2", "uid-boats-2", true)
	shared := active
	shared.Controller, shared.BlockOwnerDeletion = nil, nil
	pkg := ref("Provider", "boats", "pkg", false)
	pkg.BlockOwnerDeletion = new(true)
	foreign := ref("Provider", "ships", "other", true)
	cases := map[string]struct {
		owners     func(family, []metav1.OwnerReference) []metav1.OwnerReference
		have, want []metav1.OwnerReference
	}{
		"Object": {
			ownersOfCRD, []metav1.OwnerReference{ref("Provider", "boats", "pkg", true)},
			[]metav1.OwnerReference{former, active, pkg},
		},
		"ObjectOfAnotherPackage": {
			ownersOfCRD, []metav1.OwnerReference{foreign, ref("Provider", "boats", "pkg", false)},
			[]metav1.OwnerReference{foreign, former, shared, pkg},
		},
		"Runtime": {
			family.ownersOfRuntime, []metav1.OwnerReference{active, ref("Provider", "boats", "pkg", false)},
			[]metav1.OwnerReference{active},
		},
		"ServiceAccountOfAFormerRevision": {
			family.ownersOfRuntime, []metav1.OwnerReference{ref("ProviderRevision", "boats-1", "uid-boats-1", true)},
			[]metav1.OwnerReference{ref("ProviderRevision", "boats-1", "uid-boats-1", true)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := tc.owners(boats(), tc.have)
			if !sameOwners(tc.want, got) {
				t.Errorf("owners (-want +got):\n%s", cmp.Diff(tc.want, got))
			}
			if again := tc.owners(boats(), got); !sameOwners(got, again) {
				t.Errorf("owners change again (-first +second):\n%s", cmp.Diff(got, again))
			}
			controllers := 0
			for _, r := range got {
				if flag(r.Controller) {
					controllers++
				}
			}
			if controllers != 1 {
				t.Errorf("%d controllers", controllers)
			}
		})
	}
}

func ownersOfCRD(f family, have []metav1.OwnerReference) []metav1.OwnerReference {
	return f.ownersOfObject(crd, have)
}
