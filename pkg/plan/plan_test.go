package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const pkgV1 = "pkg.crossplane.io/v1"

var (
	crd = Ref{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: "buckets.example.org"}
	pkg = Owner{pkgV1, "Provider", "", "aws", "uid-aws"}
	old = Owner{pkgV1, "ProviderRevision", "", "aws-1", "uid-1"}
	cur = Owner{pkgV1, "ProviderRevision", "", "aws-2", "uid-2"}
	who = Requester{Revision: cur, Package: pkg, Siblings: []string{"aws-1", "aws-2"}}
)

func want(digest string) []Desired { return []Desired{{Ref: crd, Digest: digest}} }

func live(digest string, owners ...metav1.OwnerReference) map[Ref]Live {
	l := Live{Ref: crd, UID: "uid-crd", ResourceVersion: "7", Owners: owners}
	if digest != "" {
		l.Annotations = map[string]string{ContentDigestAnnotation: digest}
	}
	return map[Ref]Live{crd: l}
}

func change(action Action, metadataOnly bool, digest string, owners ...metav1.OwnerReference) Plan {
	c := Change{Action: action, Ref: crd, MetadataOnly: metadataOnly, UID: "uid-crd", ResourceVersion: "7", Owners: owners}
	if action == Create {
		c.UID, c.ResourceVersion = "", ""
	}
	if !metadataOnly {
		c.Annotations = map[string]string{ContentDigestAnnotation: digest}
	}
	return Plan{Changes: []Change{c}}
}

func stale(r metav1.OwnerReference, uid types.UID) metav1.OwnerReference {
	r.UID = uid
	return r
}

func TestEstablish(t *testing.T) {
	foreign := Owner{pkgV1, "ProviderRevision", "", "gcp-1", "uid-gcp"}
	helm := Owner{"example.org/v1", "Release", "", "tools", "uid-helm"}
	cases := map[string]struct {
		live map[Ref]Live
		want Plan
	}{
		"Absent":    {nil, change(Create, false, "d2", pkg.Reference(true))},
		"Unchanged": {live("d2", pkg.Reference(true)), Plan{Unchanged: 1}},
		"NewContent": {
			live("d1", pkg.Reference(true)),
			change(Update, false, "d2", pkg.Reference(true)),
		},
		"RevisionHandsOverInOneWrite": {
			live("d1", old.Reference(true), pkg.Reference(false)),
			change(TakeOver, false, "d2", pkg.Reference(true)),
		},
		"SameContentMovesMetadataOnly": {
			live("d2", old.Reference(true), pkg.Reference(false)),
			change(TakeOver, true, "", pkg.Reference(true)),
		},
		"ReleasedBefore": {
			live("d2", pkg.Reference(false)),
			change(Update, true, "", pkg.Reference(true)),
		},
		"CoreCreatedItFromAManagedResourceDefinition": {
			live("", old.Reference(true), Owner{
				"apiextensions.crossplane.io/v1alpha1", "ManagedResourceDefinition", "", crd.Name, "uid-mrd",
			}.Reference(false)),
			change(TakeOver, false, "d2", pkg.Reference(true)),
		},
		"RestoredFromBackupWithStaleUIDs": {
			live("d2", stale(pkg.Reference(true), "before")),
			change(Update, true, "", pkg.Reference(true)),
		},
		"OwnersOfOthersStay": {
			live("d1", helm.Reference(false), pkg.Reference(true)),
			change(Update, false, "d2", helm.Reference(false), pkg.Reference(true)),
		},
		"AUserCreatedIt": {
			live("", helm.Reference(false)),
			Plan{Refusals: []Refusal{{
				Ref: crd, Cause: NeedsAdoption,
				Reason: "CustomResourceDefinition buckets.example.org exists and belongs to no package",
				Fix:    "review the objects, and run `xpkg approve provider/aws` to let the package adopt them, or delete them",
			}}},
		},
		"AnUninstalledPackageLeftIt": {
			live("d1", helm.Reference(false)),
			change(Update, false, "d2", helm.Reference(false), pkg.Reference(true)),
		},
		"AnotherPackageControlsIt": {
			live("d2", foreign.Reference(true)),
			Plan{Refusals: []Refusal{{
				Ref: crd, Holder: "ProviderRevision/gcp-1",
				Reason: "CustomResourceDefinition buckets.example.org belongs to ProviderRevision/gcp-1",
			}}},
		},
		"SomethingElseControlsIt": {
			live("d2", helm.Reference(true)),
			Plan{Refusals: []Refusal{{
				Ref: crd, Holder: "Release/tools", Reason: "CustomResourceDefinition buckets.example.org belongs to Release/tools",
			}}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Establish(want("d2"), tc.live, nil, who)
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEstablishRevertsChangesOfOtherClients(t *testing.T) {
	ours := []metav1.OwnerReference{pkg.Reference(true)}
	content := change(Correct, false, "d2", ours...)
	cases := map[string]struct {
		live  Live
		known map[Ref]Written
		want  Plan
	}{
		"GenerationIsTheRecorded": {Live{Generation: 3}, map[Ref]Written{crd: {"uid-crd", 3}}, Plan{Unchanged: 1}},
		"GenerationMoved":         {Live{Generation: 4}, map[Ref]Written{crd: {"uid-crd", 3}}, content},
		"RecordedThoughOthersWroteTheSame": {
			Live{Generation: 3, OthersWrote: true}, map[Ref]Written{crd: {"uid-crd", 3}}, Plan{Unchanged: 1},
		},
		"NoRecordAndNobodyElse":   {Live{Generation: 3}, nil, Plan{Unchanged: 1}},
		"NoRecordAndSomebodyElse": {Live{Generation: 3, OthersWrote: true}, nil, content},
		"RecordIsOfAFormerObject": {
			Live{Generation: 3, OthersWrote: true}, map[Ref]Written{crd: {"uid-other", 3}}, content,
		},
		"RecordIsOfAnEarlierVersion": {Live{Generation: 3}, map[Ref]Written{crd: {"uid-crd", 0}}, Plan{Unchanged: 1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := live("d2", ours...)[crd]
			l.Generation, l.OthersWrote = tc.live.Generation, tc.live.OthersWrote
			got := Establish(want("d2"), map[Ref]Live{crd: l}, tc.known, who)
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

// Labels of others stay, ours follow the package, and neither costs a write of
// the content.
func TestEstablishPatchesMetadata(t *testing.T) {
	l := live("d2", pkg.Reference(true))[crd]
	l.Labels = map[string]string{"theirs": "stays", "dropped": "by the package", "kept": "old"}
	l.ManagedLabels = []string{"dropped", "kept"}
	got := Establish(
		[]Desired{{Ref: crd, Digest: "d2", Labels: map[string]string{"kept": "new"}}}, map[Ref]Live{crd: l}, nil, who,
	)
	want := change(Update, true, "", pkg.Reference(true))
	want.Changes[0].Labels, want.Changes[0].RemoveLabels = map[string]string{"kept": "new"}, []string{"dropped"}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
}

func TestUninstall(t *testing.T) {
	helm := Owner{"example.org/v1", "Release", "", "tools", "uid-helm"}
	cases := map[string]struct {
		live map[Ref]Live
		want Plan
	}{
		"SolelyOwnedGoes": {
			live("d2", cur.Reference(true), old.Reference(false), pkg.Reference(false)),
			Plan{Changes: []Change{{Action: Delete, Ref: crd, UID: "uid-crd", ResourceVersion: "7"}}},
		},
		"SharedStays": {
			live("d2", cur.Reference(true), helm.Reference(false)), change(Leave, true, "", helm.Reference(false)),
		},
		"NotOurs":      {live("d2", helm.Reference(true)), Plan{Unchanged: 1}},
		"NobodyOwnsIt": {live("d2"), Plan{Unchanged: 1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Uninstall(tc.live, who), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStages(t *testing.T) {
	p := Plan{Changes: []Change{
		{Ref: Ref{Kind: "ValidatingWebhookConfiguration"}}, {Ref: Ref{Kind: "Composition"}},
		{Ref: Ref{Kind: "CompositeResourceDefinition"}}, {Ref: crd}, {Ref: Ref{Kind: crd.Kind, Name: "other"}},
	}}
	p.sort()
	var got [][]string
	for _, stage := range p.Stages() {
		var kinds []string
		for _, c := range stage {
			kinds = append(kinds, c.Ref.Kind)
		}
		got = append(got, kinds)
	}
	want := [][]string{
		{crd.Kind, crd.Kind}, {"CompositeResourceDefinition"}, {"Composition"}, {"ValidatingWebhookConfiguration"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stages (-want +got):\n%s", diff)
	}
}

// hardening: I-5
func TestEstablishRefusesObjectsInDeletion(t *testing.T) {
	l := live("d2", cur.Reference(true))
	going := l[crd]
	going.Deleting = true
	got := Establish(want("d2"), map[Ref]Live{crd: going}, nil, who)
	if len(got.Refusals) != 1 || len(got.Changes) != 0 {
		t.Errorf("got %+v, want one refusal and no change", got)
	}
}

// hardening: J12
func TestEstablishMergesLabels(t *testing.T) {
	l := live("d1", pkg.Reference(true))
	object := l[crd]
	object.Labels = map[string]string{"theirs": "stays", "dropped": "by the package", "kept": "old"}
	object.ManagedLabels = []string{"dropped", "kept"}
	l[crd] = object
	got := Establish([]Desired{{Ref: crd, Digest: "d2", Labels: map[string]string{"kept": "new"}}}, l, nil, who)
	if diff := cmp.Diff(map[string]string{"theirs": "stays", "kept": "new"}, got.Changes[0].Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
}

func TestDeactivate(t *testing.T) {
	cases := map[string]struct {
		live map[Ref]Live
		want Plan
	}{
		"AbsentIsNeverCreated": {nil, Plan{}},
		"ControllerReleases": {
			live("d2", pkg.Reference(true)),
			change(Release, true, "", pkg.Reference(false)),
		},
		"AlreadyReleased": {live("d2", pkg.Reference(false)), Plan{Unchanged: 1}},
		"RevisionReleases": {
			live("d2", old.Reference(true), pkg.Reference(false)),
			change(Release, true, "", pkg.Reference(false)),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Deactivate([]Ref{crd}, tc.live, who)
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

// hardening: I-4
func TestNoPackageTakesACRDOfTheManagerOrOfCrossplane(t *testing.T) {
	deployment := Owner{"apps/v1", "Deployment", "", "d", "uid-d"}
	for name, tc := range map[string]struct {
		live   Live
		holder string
	}{
		"Manager": {
			Live{Ref: crd, Annotations: map[string]string{ManagerAnnotation: "true", ContentDigestAnnotation: "d1"}},
			"the package manager",
		},
		"ManagerOwned": {Live{
			Ref: crd, Annotations: map[string]string{ManagerAnnotation: "true"},
			Owners: []metav1.OwnerReference{deployment.Reference(false)},
		}, "the package manager"},
		"Crossplane": {Live{Ref: crd, OthersWrote: true, CrossplaneWrote: true}, "Crossplane"},
		"UpstreamPackage": {
			Live{Ref: crd, OthersWrote: true, CrossplaneWrote: true, Owners: []metav1.OwnerReference{pkg.Reference(false)}}, "",
		},
		"UpstreamRevision": {
			Live{Ref: crd, OthersWrote: true, CrossplaneWrote: true, Owners: []metav1.OwnerReference{old.Reference(true)}}, "",
		},
		"WrittenByXPKGOnly": {Live{Ref: crd, Annotations: map[string]string{ContentDigestAnnotation: "d1"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := Establish(want("d2"), map[Ref]Live{crd: tc.live}, nil, who)
			got := ""
			if len(p.Refusals) > 0 {
				got = p.Refusals[0].Holder
			}
			if got != tc.holder {
				t.Errorf("got the holder %q, want %q: %+v", got, tc.holder, p)
			}
		})
	}
}
