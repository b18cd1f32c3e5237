package planner

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// succeeding returns a package with an old revision for the content A and a newer one for
// the content B, of which one is active.
func succeeding(active string, how func(v1.Package)) (v1.Package, []v1.PackageRevision) {
	p := v1.NewPackage(v1.ProviderKind)
	p.SetName("boats")
	p.SetGeneration(3)
	p.PackageSpec().Package = "registry.example.com/boats:v1"
	if how != nil {
		how(p)
	}
	var all []v1.PackageRevision
	for i, digest := range []string{digestA, digestB} {
		rev := revision.Current(p, xpkg.Meta{}, digest, named12(p, digest), nil, revision.Decision{})
		rev.RevisionSpec().Revision, rev.RevisionSpec().DesiredState = int64(i+1), v1.RevisionInactive
		if digest == active {
			rev.RevisionSpec().DesiredState = v1.RevisionActive
		}
		all = append(all, rev)
	}
	if active == digestA {
		all[0].RevisionSpec().Revision = 3 // It was brought back.
	}
	return p, all
}

func named12(p v1.Package, digest string) string {
	return oci.FriendlyID(p.GetName(), revision.Key(p, digest))
}

// Which revisions are written follows from the same rules as in the manager.
func TestNext(t *testing.T) {
	rolledBack := func(p v1.Package) {
		p.PackageStatus().Rollback = &v1.Rollback{From: named12(p, digestB), To: named12(p, digestA), Generation: 3}
	}
	manual := func(p v1.Package) { p.PackageSpec().RevisionActivationPolicy = v1.ManualActivation }
	const digestC = "sha256:cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"
	for name, tc := range map[string]struct {
		active, content string
		how             func(v1.Package)
		change          func(v1.Package)
		want            []string
		note            string
	}{
		"as it is": {digestB, digestB, nil, nil, nil, ""},
		"back":     {digestB, digestA, nil, nil, []string{"deactivate B 2 Inactive", "activate A 3 Active"}, ""},
		"new": {
			digestB, digestC, nil, nil, []string{"deactivate B 2 Inactive", "create C 3 Active", "collect A 1 Inactive"}, "",
		},
		"new, and manual":  {digestB, digestC, manual, nil, []string{"create C 0 Inactive"}, "Manual"},
		"back, and manual": {digestB, digestA, manual, nil, nil, "Manual"},
		"a flag": {
			digestB, digestB, nil, func(p v1.Package) { p.PackageSpec().SkipDependencyResolution = true },
			[]string{"update B 2 Active"}, "",
		},
		"rolled back": {digestA, digestB, rolledBack, nil, nil, "rolled back from"},
		"rolled back, and the spec changes": {digestA, digestB, rolledBack, func(p v1.Package) { p.SetGeneration(4) },
			[]string{"deactivate A 3 Inactive", "activate B 4 Active"}, ""},
		"rolled back, and other content": {
			digestA, digestC, rolledBack, nil, []string{"deactivate A 3 Inactive", "create C 4 Active", "collect B 2 Inactive"},
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, all := succeeding(tc.active, tc.how)
			names := strings.NewReplacer(named12(p, digestA), "A", named12(p, digestB), "B", named12(p, digestC), "C")
			if tc.change != nil {
				tc.change(p)
			}
			n := revision.Next(p, xpkg.Meta{}, tc.content, all)
			var got []string
			for _, c := range revisionChanges(n) {
				got = append(got, names.Replace(fmt.Sprintf("%s %s %d %s", c.Action, c.Name, c.Number, c.State)))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			said := strings.Join(notes(p, n, &Plan{}), " ")
			if tc.note == "" && said != "" || !strings.Contains(said, tc.note) {
				t.Errorf("notes: %q, want %q", said, tc.note)
			}
		})
	}
}

// A note names objects that are installed after the others.
func TestNoteNamesObjectsThatAreInstalledLater(t *testing.T) {
	p, all := succeeding(digestB, func(v1.Package) {})
	hook := plan.Ref{
		APIVersion: "admissionregistration.k8s.io/v1", Kind: "MutatingWebhookConfiguration", Name: "crossplane-provider-p",
	}
	for action, want := range map[plan.Action]string{
		plan.Create: "Webhook configurations are created once", plan.Update: "",
	} {
		out := &Plan{Objects: plan.Plan{Changes: []plan.Change{{Action: action, Ref: hook}}}}
		said := strings.Join(notes(p, revision.Next(p, xpkg.Meta{}, digestB, all), out), " ")
		if !strings.Contains(said, want) || want == "" && said != "" {
			t.Errorf("%s: %q", action, said)
		}
	}
}

// An operation that does not show its plan prints the warnings that do not describe its usual course.
func TestUnusualWarnings(t *testing.T) {
	p, all := succeeding(digestB, func(p v1.Package) { p.SetAnnotations(map[string]string{v1.AnnotationPaused: "true"}) })
	hook := plan.Ref{
		APIVersion: "admissionregistration.k8s.io/v1", Kind: "MutatingWebhookConfiguration", Name: "crossplane-provider-p",
	}
	out := &Plan{Objects: plan.Plan{Changes: []plan.Change{{Action: plan.Create, Ref: hook}}}}
	out.warn("The conversion webhook does not run.")
	out.warn(notes(p, revision.Next(p, xpkg.Meta{}, digestB, all), out)...)
	got := out.UnusualWarnings()
	if len(out.Warnings) != 3 || len(got) != 2 || got[0] != "The conversion webhook does not run." ||
		!strings.Contains(got[1], "is paused") {
		t.Errorf("got %q of %q", got, out.Warnings)
	}
}

// Notes report that the package is paused or is being deleted.
func TestNotes(t *testing.T) {
	for annotated, want := range map[string]string{"true": "paused", "false": ""} {
		p, all := succeeding(digestB, func(p v1.Package) {
			p.SetAnnotations(map[string]string{
				v1.AnnotationPaused: annotated,
			})
		})
		said := strings.Join(notes(p, revision.Next(p, xpkg.Meta{}, digestB, all), &Plan{}), " ")
		if !strings.Contains(said, want) || want == "" && said != "" {
			t.Errorf("paused %s: %q", annotated, said)
		}
	}
}
