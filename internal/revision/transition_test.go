package revision

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// A user who activates an older revision gets one write for each revision, and the current revision
// stays inactive.
func TestNextDeactivatesTheCurrentRevisionForOneThatAUserActivates(t *testing.T) {
	p := provider("uid", "registry.example.com/boats:v2")
	p.Name = "boats"
	p.Spec.RevisionActivationPolicy = v1.ManualActivation
	digest := func(c string) string { return "sha256:" + strings.Repeat(c, 64) }
	var all []v1.PackageRevision
	for i, d := range []string{digest("a"), digest("b")} {
		r := Current(p, xpkg.Meta{}, d, Name(p, d), nil, Decision{})
		r.RevisionSpec().Revision, r.RevisionSpec().DesiredState = int64(i+1), v1.RevisionActive
		all = append(all, r)
	}
	got := Next(p, xpkg.Meta{}, digest("b"), all)
	var steps []string
	for _, s := range got.Steps {
		steps = append(steps, fmt.Sprintf("%s %s %d %s", s.Action, s.Revision.GetName(), s.Revision.RevisionSpec().Revision, s.Revision.RevisionSpec().DesiredState))
	}
	want := []string{
		"deactivate " + all[1].GetName() + " 2 Inactive",
		"number " + all[0].GetName() + " 3 Active",
	}
	if diff := cmp.Diff(want, steps); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if got.Current.RevisionSpec().DesiredState != v1.RevisionInactive || got.Active().GetName() != all[0].GetName() {
		t.Errorf("the current revision is %s and %s is active", got.Current.RevisionSpec().DesiredState, got.Active().GetName())
	}
}

// A revision has the content policy of its package, and never one that the content itself claims. The content cannot
// pause it.
func TestRevisionsHaveTheContentPolicyOfTheirPackage(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a", 64)
	meta := xpkg.Meta{Annotations: map[string]string{AnnotationContentPolicy: "Lenient", v1.AnnotationPaused: "true", "other": "x"}}
	for policy, lenient := range map[string]bool{"": false, "Strict": false, "Lenient": true} {
		p := provider("uid", "registry.example.com/boats:v2")
		p.Annotations = map[string]string{AnnotationContentPolicy: policy}
		rev := Current(p, meta, digest, Name(p, digest), nil, Decision{})
		if LenientContent(rev) != lenient || rev.GetAnnotations()["other"] != "x" || v1.IsPaused(rev) {
			t.Errorf("%q: annotations %v", policy, rev.GetAnnotations())
		}
	}
}
