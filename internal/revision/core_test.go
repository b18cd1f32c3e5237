package revision

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// The revision that Crossplane core created for the content and the current spec of a package keeps its name. Any other
// content, or another choice of the package, has a new revision, and the way back leads to the revision of core.
func TestRevisionOfCoreKeepsItsName(t *testing.T) {
	digits, other := strings.Repeat("a", 64), "sha256:"+strings.Repeat("b", 64)
	sum := sha256.Sum256(fmt.Appendf(nil, "%s|%d", digits, 7))
	for version, name := range map[string]string{
		"2.4": oci.FriendlyID("boats", hex.EncodeToString(sum[:])),
		"2.3": "boats-" + digits[:12],
	} {
		t.Run(version, func(t *testing.T) {
			p := provider("uid", "registry.example.com/boats:v1")
			p.Name, p.Generation = "boats", 7
			digest := "sha256:" + digits
			core := &v1.ProviderRevision{}
			core.Name, core.Spec.Image, core.Spec.DesiredState, core.Spec.Revision = name, p.Spec.Package, v1.RevisionActive, 3
			core.Finalizers = []string{v1.FinalizerRevision, "example.org/other"}
			existing := []v1.PackageRevision{core}
			if got := Name(p, other, existing); got == name {
				t.Errorf("other content has the revision of core")
			}
			moved := p.DeepCopy()
			moved.Spec.Package = "registry.example.com/boats:v2"
			if got := Name(moved, digest, existing); got == name {
				t.Errorf("another reference has the revision of core")
			}

			next := Next(p, xpkg.Meta{}, digest, existing)
			if len(next.Steps) != 1 || next.Current.GetName() != name || next.Activate != name || next.Number != 3 {
				t.Fatalf("steps %+v, current %s, activates %s %d", next.Steps, next.Current.GetName(), next.Activate, next.Number)
			}
			if got := next.Current.GetFinalizers(); len(got) != 1 || got[0] != "example.org/other" {
				t.Errorf("finalizers %v", got)
			}
			// Generations of the package have no further effect on the name, and its choices have.
			p.Generation = 8
			existing = next.After
			if got := Next(p, xpkg.Meta{}, digest, existing); len(got.Steps) != 0 {
				t.Errorf("the adopted revision is written again: %+v", got.Steps)
			}
			p.Spec.CommonLabels = map[string]string{"team": "a"}
			if got := Name(p, digest, existing); got == name {
				t.Errorf("another choice has the revision of core")
			}
			p.Spec.CommonLabels = nil
			if got := Name(p, digest, existing); got != name {
				t.Errorf("the former choice has the revision %s, want %s", got, name)
			}
		})
	}
}

// A revision of this manager is found by its own name only.
func TestRevisionsOfTheManagerAreNotTakenForOthers(t *testing.T) {
	p := provider("uid", "registry.example.com/boats:v1")
	p.Name = "boats"
	digest := "sha256:" + strings.Repeat("a", 64)
	rev := Current(p, xpkg.Meta{}, digest, "boats-"+strings.Repeat("a", 12), nil, Decision{})
	delete(rev.GetAnnotations(), AnnotationKey)
	if got := Name(p, digest, []v1.PackageRevision{rev}); got == rev.GetName() {
		t.Errorf("a revision with a digest is taken for one of core")
	}
}

// A package that requests the names of core gets a revision with the name that core computes, and keeps it without the
// request. Both revisions have the same program.
func TestRevisionGetsTheNameOfCore(t *testing.T) {
	digits := strings.Repeat("a", 64)
	digest := "sha256:" + digits
	sum := sha256.Sum256(fmt.Appendf(nil, "%s|%d", digits, 7))
	for names, want := range map[string]string{
		NamesOfCore:          oci.FriendlyID("boats", hex.EncodeToString(sum[:])),
		NamesOfCoreBefore2_4: "boats-" + digits[:12],
	} {
		t.Run(names, func(t *testing.T) {
			p := provider("uid", "registry.example.com/boats:v1")
			p.Name, p.Generation = "boats", 7
			first := Next(p, xpkg.Meta{}, digest, nil).After
			former := first[0].GetName()
			p.Annotations = map[string]string{AnnotationNames: names}
			next := Next(p, xpkg.Meta{}, digest, first)
			if next.Activate != want || next.Number != 2 || len(next.Deactivate) != 1 || next.Deactivate[0] != former {
				t.Fatalf("activates %s %d, deactivates %v; want %s", next.Activate, next.Number, next.Deactivate, want)
			}
			if !SameProgram(first[0], next.Current) {
				t.Error("the revisions have different programs")
			}
			if again := Next(p, xpkg.Meta{}, digest, next.After); len(again.Steps) != 0 {
				t.Errorf("further steps %+v", again.Steps)
			}
			p.Annotations = nil
			if got := Name(p, digest, next.After); got != want {
				t.Errorf("without the request: %s, want %s", got, want)
			}
			other := next.Current.DeepCopyObject().(v1.PackageRevision)
			other.RuntimeSpec().RuntimeConfigRef = &v1.RuntimeConfigReference{Name: "other"}
			if SameProgram(first[0], other) {
				t.Error("revisions with other configurations have the same program")
			}
		})
	}
}
