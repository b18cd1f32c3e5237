package orphans

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// While a package may still be rolled back or forward, the dependencies of all of its revisions count.
func TestAPackageRequiresTheDependenciesOfEveryRevisionThatMayRun(t *testing.T) {
	digest := func(name string) string { return oci.DigestOf([]byte(name)).String() }
	revision := func(name string, state v1.RevisionState) v1.PackageRevision {
		rev := v1.NewPackage(v1.ProviderKind).NewRevision()
		rev.SetName(name)
		rev.RevisionSpec().DesiredState, rev.RevisionSpec().Digest = state, digest(name)
		return rev
	}
	one, oneOff := revision("one", v1.RevisionActive), revision("one", v1.RevisionInactive)
	two, twoOff := revision("two", v1.RevisionActive), revision("two", v1.RevisionInactive)
	for name, tc := range map[string]struct {
		revisions []v1.PackageRevision
		how       func(*v1.Provider)
		want      string
		rollback  bool
	}{
		"settled, with a history":     {[]v1.PackageRevision{oneOff, two}, func(*v1.Provider) {}, "two", false},
		"healthy, may be rolled back": {[]v1.PackageRevision{oneOff, two}, func(*v1.Provider) {}, "one two", true},
		"not healthy yet": {
			[]v1.PackageRevision{oneOff, two}, func(p *v1.Provider) { p.Status.Activation.Healthy = false }, "one two", false,
		},
		"without a recorded activation": {
			[]v1.PackageRevision{oneOff, two}, func(p *v1.Provider) { p.Status.Activation = nil }, "one two", false,
		},
		"another one was healthy": {
			[]v1.PackageRevision{oneOff, two}, func(p *v1.Provider) { p.Status.Activation.Revision = "one" }, "one two", false,
		},
		"two are active": {[]v1.PackageRevision{one, two}, func(*v1.Provider) {}, "one two", false},
		"none is":        {[]v1.PackageRevision{oneOff, twoOff}, func(*v1.Provider) {}, "one two", false},
		"rolled back": {
			[]v1.PackageRevision{one, twoOff}, func(p *v1.Provider) { p.Status.Rollback = &v1.Rollback{} }, "one two", false,
		},
		"a person activates": {
			[]v1.PackageRevision{one, twoOff}, func(p *v1.Provider) { p.Status.Activation.Revision = "one" }, "one two", false,
		},
		"the spec has changed": {
			[]v1.PackageRevision{oneOff, two}, func(p *v1.Provider) { p.Generation++ }, "one two", false,
		},
		"it requests content not yet read": {
			[]v1.PackageRevision{oneOff, two}, func(p *v1.Provider) { p.Spec.Package = "registry.example.com/a:v9" }, " one two",
			false,
		},
		"its revision is still to be made": {[]v1.PackageRevision{oneOff}, func(*v1.Provider) {}, "one two", false},
		"there are none yet":               {nil, func(p *v1.Provider) { p.Status = v1.ProviderStatus{} }, "", false},
		"it goes": {
			[]v1.PackageRevision{oneOff, two},
			func(p *v1.Provider) { p.DeletionTimestamp = new(metav1.NewTime(time.Unix(1, 0))) }, "one two", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := &v1.Provider{}
			p.Generation, p.Spec.Package = 1, "registry.example.com/a:v2"
			p.Status.ObservedGeneration, p.Status.CurrentIdentifier, p.Status.ResolvedDigest = 1, p.Spec.Package, digest("two")
			p.Status.Activation = &v1.Activation{Revision: "two", Healthy: true}
			tc.how(p)
			names := map[string]string{digest("one"): "one", digest("two"): "two"}
			var got []string
			for _, i := range requiredContents(p, tc.revisions, tc.rollback) {
				got = append(got, names[i.digest])
			}
			slices.Sort(got)
			if text := strings.Join(slices.Compact(got), " "); text != tc.want {
				t.Errorf("got %q, want %q", text, tc.want)
			}
		})
	}
}
