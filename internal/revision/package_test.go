package revision

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

func provider(uid types.UID, ref string) *v1.Provider {
	return &v1.Provider{
		ObjectMeta: metav1.ObjectMeta{Name: "x", UID: uid},
		Spec:       v1.ProviderSpec{PackageSpec: v1.PackageSpec{Package: ref}},
	}
}

func rev(number int64, image, digest string) *v1.ProviderRevision {
	out := &v1.ProviderRevision{}
	out.Spec.Image, out.Spec.Digest, out.Spec.Revision = image, digest, number
	return out
}

// A revision belongs to its package by name; the UID follows that.
func TestRevisionBelongsToItsPackageByName(t *testing.T) {
	p, r := provider("new", "r.test/x:v1"), rev(1, "r.test/x:v1", "sha256:a")
	for name, owners := range map[string][]metav1.OwnerReference{
		"None": nil,
		"Stale": {{
			APIVersion: "pkg.crossplane.io/v1", Kind: "Provider", Name: "x", UID: "old", Controller: new(true),
			BlockOwnerDeletion: new(true),
		}},
		"Plain": {{APIVersion: "pkg.crossplane.io/v1", Kind: "Provider", Name: "x", UID: "new"}},
	} {
		r.OwnerReferences = owners
		if !Own(p, r) || r.OwnerReferences[0].UID != "new" || len(r.OwnerReferences) != 1 ||
			!*r.OwnerReferences[0].Controller {
			t.Errorf("%s: owned by %+v", name, r.OwnerReferences)
		}
		if Own(p, r) {
			t.Errorf("%s: owned once more", name)
		}
	}
}

// A rollback selects the last healthy revision, and not one that was tried since.
func TestRollbackSelectsTheLastHealthyRevision(t *testing.T) {
	var all []v1.PackageRevision
	for i, name := range []string{"a", "b", "c"} {
		r := rev(int64(i+1), "", "")
		r.Name = name
		all = append(all, r)
	}
	for name, tc := range map[string]struct{ last, of, want string }{
		"The one before":           {"b", "c", "b"},
		"After another try":        {"a", "c", "a"},
		"Made active once more":    {"c", "c", ""},
		"Not there any more":       {"gone", "c", "b"},
		"None was":                 {"", "c", "b"},
		"None was, and no earlier": {"", "a", ""},
	} {
		p := provider("a", "")
		p.Status.LastHealthyRevision = tc.last
		if got := Back(p, tc.of, all); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// Only an automatic activation policy activates new revisions.
func TestPolicyOf(t *testing.T) {
	for policy, automatic := range map[v1.RevisionActivationPolicy]bool{
		"": true, v1.AutomaticActivation: true, v1.ManualActivation: false, "manual": false,
	} {
		p := provider("a", "r.test/x:v1")
		p.Spec.RevisionActivationPolicy = policy
		if got := PolicyOf(p).Automatic; got != automatic {
			t.Errorf("%q: %v", policy, got)
		}
	}
}

// The resolved digest of a tag stays valid until the reference changes. Without a
// status, it is taken from the revisions.
func TestResolved(t *testing.T) {
	const image = "mirror.test/x:v1"
	known := provider("a", "r.test/x:v1")
	known.Status.CurrentIdentifier, known.Status.ResolvedPackage, known.Status.ResolvedDigest = "r.test/x:v1", image,
		"sha256:status"
	known.Status.CurrentRevision = "x-1"
	moved := known.DeepCopy()
	moved.Spec.Package = "r.test/x:v2"
	revisions := []v1.PackageRevision{
		rev(2, "r.test/x:v1", "sha256:second"), rev(1, "r.test/x:v1", "sha256:first"), rev(3, "r.test/x:v0", "sha256:other"),
	}
	for name, c := range map[string]struct {
		p     *v1.Provider
		image string
		want  string
	}{
		"Status":         {known, image, "sha256:status"},
		"OtherReference": {moved, image, ""},
		"OtherRewriting": {known, "other.test/x:v1", ""},
		"Restored":       {provider("b", "r.test/x:v1"), image, "sha256:second"},
		"RestoredOther":  {provider("b", "r.test/x:v7"), image, ""},
	} {
		if got := Resolved(c.p, c.image, revisions); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// The latest of several records of an object counts.
func TestWritten(t *testing.T) {
	ref := v1.TypedReference{APIVersion: "v1", Kind: "Thing", Name: "a", UID: "u"}
	older, newer := ref, ref
	older.Generation, newer.Generation = 3, 5
	one, two := rev(1, "", ""), rev(2, "", "")
	one.Status.ObjectRefs, two.Status.ObjectRefs = []v1.TypedReference{newer}, []v1.TypedReference{older}
	want := map[plan.Ref]plan.Written{{APIVersion: "v1", Kind: "Thing", Name: "a"}: {UID: "u", Generation: 5}}
	for _, revisions := range [][]v1.PackageRevision{{one, two}, {two, one}} {
		if diff := cmp.Diff(want, Written(revisions)); diff != "" {
			t.Errorf("written (-want +got):\n%s", diff)
		}
	}
}

// A revision that was healthy and then failed is rolled back to the one that was healthy before it,
// and not to itself or to one that failed in between.
func TestRollbackOfAFailedHealthyRevisionSelectsTheOneBefore(t *testing.T) {
	var all []v1.PackageRevision
	for i, name := range []string{"a", "b", "c"} {
		r := rev(int64(i+1), "", "")
		r.Name = name
		all = append(all, r)
	}
	p := provider("", "")
	p.Status.LastHealthyRevision = "c"
	p.Status.Activation = &v1.Activation{Revision: "c", Healthy: true, Previous: "a"}
	if got := Back(p, "c", all); got != "a" {
		t.Errorf("back to %q, want a", got)
	}
	if got := collect("c", "c", States(all, "c"), PolicyOf(p)); !slices.Equal(got, []string{"b"}) {
		t.Errorf("collected %v, want b: a rollback activates a", got)
	}
}

// A revision keeps the repository from which its content was first installed, also when its package selects a copy of
// the content, and back.
func TestRevisionKeepsItsSource(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a", 64)
	var r v1.PackageRevision
	for _, tc := range []struct{ image, source, recorded string }{
		{"r.test/x:v1", "r.test/x", ""},
		{"r.test/x:v2", "r.test/x", ""},
		{"evil.test/x:v1", "r.test/x", "r.test/x"},
		{"other.test/x:v1", "r.test/x", "r.test/x"},
		{"r.test/x:v1", "r.test/x", "r.test/x"},
	} {
		r = Current(provider("uid", tc.image), xpkg.Meta{}, digest, "x-1", r, Decision{})
		if Source(r) != tc.source || r.GetAnnotations()[AnnotationSource] != tc.recorded {
			t.Errorf("%s: the source is %q, with the record %q", tc.image, Source(r), r.GetAnnotations()[AnnotationSource])
		}
	}
	if got := Source(Current(
		provider("uid", "evil.test/x:v2"), xpkg.Meta{}, digest, "x-2", nil, Decision{},
	)); got != "evil.test/x" {
		t.Errorf("the source of a new revision is %q", got)
	}
}
