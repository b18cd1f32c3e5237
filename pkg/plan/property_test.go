package plan

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// after returns the cluster as it is when p has been carried out.
func after(p Plan, before map[Ref]Live) map[Ref]Live {
	out := map[Ref]Live{}
	for ref, l := range before {
		out[ref] = l
	}
	for _, c := range p.Changes {
		l := out[c.Ref]
		l.Ref, l.UID, l.Owners = c.Ref, types.UID("uid-"+c.Ref.Name), c.Owners
		if c.MetadataOnly {
			l.Labels, l.Annotations = patched(l.Labels, c.Labels, c.RemoveLabels),
				patched(l.Annotations, c.Annotations, c.RemoveAnnotations)
		} else {
			l.Labels, l.Annotations, l.OthersWrote = c.Labels, c.Annotations, false
			l.Generation++
		}
		l.ManagedLabels, l.ManagedAnnotations = slices.Sorted(maps.Keys(l.Labels)), slices.Sorted(maps.Keys(l.Annotations))
		out[c.Ref] = l
	}
	return out
}

// patched returns a map after a merge patch.
func patched(m, put map[string]string, remove []string) map[string]string {
	out := maps.Clone(m)
	for k, v := range put {
		if out == nil {
			out = map[string]string{}
		}
		out[k] = v
	}
	for _, k := range remove {
		delete(out, k)
	}
	return out
}

// recorded returns the status record of the revision after a plan: the generations
// of the live objects.
func recorded(live map[Ref]Live) map[Ref]Written {
	out := map[Ref]Written{}
	for ref, l := range live {
		out[ref] = Written{l.UID, l.Generation}
	}
	return out
}

func refGen() *rapid.Generator[Ref] {
	return rapid.Custom(func(t *rapid.T) Ref {
		return Ref{
			APIVersion: crd.APIVersion, Kind: crd.Kind,
			Name: fmt.Sprintf("things%d.example.org", rapid.IntRange(0, 5).Draw(t, "object")),
		}
	})
}

func ownersGen() *rapid.Generator[[]metav1.OwnerReference] {
	names := []string{"aws-1", "aws-2", "aws-3"}
	return rapid.Custom(func(t *rapid.T) []metav1.OwnerReference {
		var refs []metav1.OwnerReference
		controlled := false
		for _, n := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 3, rapid.ID).Draw(t, "owners") {
			control := !controlled && rapid.Bool().Draw(t, "control")
			controlled = controlled || control
			uid := types.UID(rapid.SampledFrom([]string{"now", "before"}).Draw(t, "uid"))
			refs = append(refs, Owner{pkgV1, "ProviderRevision", "", n, uid}.Reference(control))
		}
		if rapid.Bool().Draw(t, "package") {
			refs = append(refs, Owner{
				pkgV1, "Provider", "", "aws", types.UID(rapid.SampledFrom([]string{string(pkg.UID), "before"}).Draw(t, "uid")),
			}.
				Reference(!controlled && rapid.Bool().Draw(t, "control")))
		}
		if rapid.Bool().Draw(t, "foreign") {
			refs = append(refs, helm.Reference(false))
		}
		return refs
	})
}

func labelsGen() *rapid.Generator[map[string]string] {
	return rapid.MapOf(rapid.SampledFrom([]string{"app", "team"}), rapid.SampledFrom([]string{"one", "two"}))
}

func knownGen() *rapid.Generator[map[Ref]Written] {
	return rapid.Custom(func(t *rapid.T) map[Ref]Written {
		out := map[Ref]Written{}
		for _, ref := range rapid.SliceOfDistinct(refGen(), rapid.ID).Draw(t, "known") {
			out[ref] = Written{"u", rapid.Int64Range(0, 3).Draw(t, "generation")}
		}
		return out
	})
}

func liveGen() *rapid.Generator[map[Ref]Live] {
	return rapid.Custom(func(t *rapid.T) map[Ref]Live {
		out := map[Ref]Live{}
		for _, ref := range rapid.SliceOfDistinct(refGen(), rapid.ID).Draw(t, "live") {
			out[ref] = Live{Ref: ref, UID: "u", ResourceVersion: "1", Owners: ownersGen().Draw(t, "refs"),
				Generation: rapid.Int64Range(1, 3).Draw(t, "generation"), OthersWrote: rapid.Bool().Draw(t, "others wrote"),
				Labels: labelsGen().Draw(t, "labels"), ManagedLabels: []string{"app", "team"},
				Annotations: map[string]string{ContentDigestAnnotation: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "digest")}}
		}
		return out
	})
}

// keepsForeignOwners checks that an object has lost no owner but revisions of its package.
func keepsForeignOwners(t *rapid.T, before, after Live) {
	for _, r := range before.Owners {
		if r.Kind == "Release" &&
			!slices.ContainsFunc(after.Owners, func(o metav1.OwnerReference) bool { return o.Name == r.Name }) {
			t.Fatalf("%s lost its owner %s", after.Ref.Name, r.Name)
		}
	}
}

// From any initial state, one plan reaches the desired state: a second plan changes
// nothing, the package is the only controller of each object, no owner reference of others
// is lost, and another revision of the package changes nothing.
func TestEstablishConverges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := liveGen().Draw(t, "before")
		var desired []Desired
		for _, ref := range rapid.SliceOfDistinct(refGen(), rapid.ID).Draw(t, "desired") {
			desired = append(desired, Desired{
				Ref: ref, Digest: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "digest"), Labels: labelsGen().Draw(t, "labels"),
			})
		}
		w := Requester{Revision: Owner{pkgV1, "ProviderRevision", "", "aws-2", "now"}, Package: pkg, Siblings: []string{
			"aws-1", "aws-2", "aws-3",
		}}
		p := Establish(desired, before, knownGen().Draw(t, "known"), w)
		if len(p.Refusals) > 0 {
			t.Fatalf("refused among revisions of one package: %+v", p.Refusals)
		}
		then := after(p, before)
		if again := Establish(desired, then, recorded(then), w); len(again.Changes) > 0 {
			t.Fatalf("the second plan still changes %+v", again.Changes)
		}
		w.Revision = Owner{pkgV1, "ProviderRevision", "", "aws-3", "now"}
		if next := Establish(desired, then, recorded(then), w); len(next.Changes) > 0 {
			t.Fatalf("another revision with the same content changes %+v", next.Changes)
		}
		for _, d := range desired {
			l := then[d.Ref]
			n := 0
			for _, r := range l.Owners {
				if isController(r) {
					n++
				}
			}
			for k, v := range d.Labels {
				if l.Labels[k] != v {
					t.Fatalf("%s has the labels %v, want %v", d.Ref.Name, l.Labels, d.Labels)
				}
			}
			if l.Annotations[ContentDigestAnnotation] != d.Digest {
				t.Fatalf("%s has the content %v", d.Ref.Name, l.Annotations)
			}
			if n != 1 || !pkg.Is(*controller(l.Owners)) {
				t.Fatalf("%s has %d controllers: %+v", d.Ref.Name, n, l.Owners)
			}
			keepsForeignOwners(t, before[d.Ref], l)
		}
	})
}

// Deactivating ends the control of every object, and keeps the package and all foreign owners.
func TestDeactivateConvergesAndKeepsOwners(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := liveGen().Draw(t, "before")
		var refs []Ref
		for ref := range before {
			refs = append(refs, ref)
		}
		w := Requester{Revision: Owner{pkgV1, "ProviderRevision", "", "aws-2", "now"}, Package: pkg, Siblings: []string{
			"aws-1", "aws-2", "aws-3",
		}}
		then := after(Deactivate(refs, before, w), before)
		if again := Deactivate(refs, then, w); len(again.Changes) > 0 {
			t.Fatalf("the second plan still changes %+v", again.Changes)
		}
		for ref, l := range then {
			if controller(l.Owners) != nil || !w.owns(l) {
				t.Fatalf("the owners of %s are %+v", ref.Name, l.Owners)
			}
			keepsForeignOwners(t, before[ref], l)
		}
	})
}

// An object that is settled without its managed fields is one that Establish does not change with them, and a plan
// settles its objects.
func TestSettledObjectsNeedNoWrite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		live, known := liveGen().Draw(t, "live"), knownGen().Draw(t, "known")
		w := Requester{Revision: Owner{pkgV1, "ProviderRevision", "", "aws-2", "now"}, Package: pkg, Siblings: []string{
			"aws-1", "aws-2", "aws-3",
		}}
		for ref, l := range live {
			d := Desired{
				Ref: ref, Digest: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "digest"),
				Labels: labelsGen().Draw(t, "desired labels"),
			}
			l.Deleting, l.CrossplaneWrote = rapid.Bool().Draw(t, "deleting"), l.OthersWrote &&
				rapid.Bool().Draw(t, "Crossplane wrote")
			watched := l
			watched.OthersWrote, watched.CrossplaneWrote, watched.ManagedLabels, watched.ManagedAnnotations = false, false, nil,
				nil
			p := Establish([]Desired{d}, map[Ref]Live{ref: l}, known, w)
			if IsSettled(d, watched, known, w) && p.Unchanged != 1 {
				t.Fatalf("%+v is settled, and the plan is %+v", l, p)
			}
			if len(p.Refusals) > 0 || p.Unchanged == 1 || p.Changes[0].MetadataOnly {
				continue
			}
			then := after(p, map[Ref]Live{ref: l})
			written := then[ref]
			written.ManagedLabels, written.ManagedAnnotations = nil, nil
			if len(l.Labels) == 0 && !IsSettled(d, written, recorded(then), w) {
				t.Fatalf("%+v was written by %+v, and is not settled", written, p)
			}
		}
	})
}
