package revision

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
		r := Current(p, xpkg.Meta{}, d, Name(p, d, nil), nil, Decision{})
		r.RevisionSpec().Revision, r.RevisionSpec().DesiredState = int64(i+1), v1.RevisionActive
		all = append(all, r)
	}
	got := Next(p, xpkg.Meta{}, digest("b"), all)
	var steps []string
	for _, s := range got.Steps {
		steps = append(steps, fmt.Sprintf(
			"%s %s %d %s", s.Action, s.Revision.GetName(), s.Revision.RevisionSpec().Revision,
			s.Revision.RevisionSpec().DesiredState,
		))
	}
	want := []string{
		"deactivate " + all[1].GetName() + " 2 Inactive",
		"number " + all[0].GetName() + " 3 Active",
	}
	if diff := cmp.Diff(want, steps); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if got.Current.RevisionSpec().DesiredState != v1.RevisionInactive || got.Active().GetName() != all[0].GetName() {
		t.Errorf(
			"the current revision is %s and %s is active", got.Current.RevisionSpec().DesiredState, got.Active().GetName(),
		)
	}
}

// A revision has the content policy of its package, and never one that the content itself claims. The content cannot
// pause it.
func TestRevisionsHaveTheContentPolicyOfTheirPackage(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a", 64)
	meta := xpkg.Meta{Annotations: map[string]string{
		AnnotationContentPolicy: "Lenient", v1.AnnotationPaused: "true", "other": "x",
	}}
	for policy, lenient := range map[string]bool{"": false, "Strict": false, "Lenient": true} {
		p := provider("uid", "registry.example.com/boats:v2")
		p.Annotations = map[string]string{AnnotationContentPolicy: policy}
		rev := Current(p, meta, digest, Name(p, digest, nil), nil, Decision{})
		if LenientContent(rev) != lenient || rev.GetAnnotations()["other"] != "x" || v1.IsPaused(rev) {
			t.Errorf("%q: annotations %v", policy, rev.GetAnnotations())
		}
	}
}

// The history keeps the revision that a rollback activates while the release of its objects is retried, and collects it
// if its runtime has failed.
func TestHistoryConsidersTheHealthOfRuntimes(t *testing.T) {
	p := provider("uid", "registry.example.com/boats:v3")
	p.Name = "boats"
	digest := func(c string) string { return "sha256:" + strings.Repeat(c, 64) }
	for _, test := range []struct {
		condition v1.Condition
		collected int
	}{
		{v1.RevisionHealthy(), 0},
		{v1.RevisionUnhealthy("cannot release its objects"), 0},
		{v1.RuntimeUnhealthy("it crashes"), 1},
	} {
		var all []v1.PackageRevision
		for i, d := range []string{digest("a"), digest("b"), digest("c")} {
			r := Current(p, xpkg.Meta{}, d, Name(p, d, nil), nil, Decision{})
			r.RevisionSpec().Revision, r.RevisionSpec().DesiredState = int64(i+1), v1.RevisionInactive
			all = append(all, r)
		}
		all[1].SetConditions(metav1.Time{}, test.condition)
		all[2].RevisionSpec().DesiredState = v1.RevisionActive
		p.Status.LastHealthyRevision = all[2].GetName()
		p.Status.Activation = &v1.Activation{Revision: all[2].GetName(), Number: 3, Healthy: true, Previous: all[1].GetName()}
		got := Next(p, xpkg.Meta{}, digest("c"), all).Collect
		if want := []string{all[test.collected].GetName()}; !slices.Equal(got, want) {
			t.Errorf("%s %s: collects %v, want %v", test.condition.Type, test.condition.Status, got, want)
		}
	}
}

// A revision that was rolled back, or that never became healthy, stays unhealthy when it is inactive: no rollback
// selects it. One that was healthy before stays healthy.
func TestInactiveRevisionKeepsItsHealth(t *testing.T) {
	digest := func(c string) string { return "sha256:" + strings.Repeat(c, 64) }
	for name, tc := range map[string]struct {
		status func(*v1.PackageStatus, string)
		// condition is a condition of the active revision, and before its annotation.
		condition v1.Condition
		before    string
		want      string
	}{
		"rolled back": {func(s *v1.PackageStatus, rev string) {
			s.Rollback = &v1.Rollback{From: rev}
			s.Activation = &v1.Activation{Revision: rev, Healthy: true}
		}, v1.RevisionHealthy(), "true", "false"},
		"was healthy": {
			func(s *v1.PackageStatus, rev string) { s.Activation = &v1.Activation{Revision: rev, Healthy: true} },
			v1.RevisionUnhealthy("lost"), "", "true",
		},
		"last healthy": {
			func(s *v1.PackageStatus, rev string) { s.LastHealthyRevision = rev }, v1.RevisionUnhealthy("lost"), "false", "true",
		},
		"never healthy": {
			func(s *v1.PackageStatus, rev string) { s.Activation = &v1.Activation{Revision: rev} }, v1.RevisionUnknownHealth(""),
			"", "false",
		},
		"waits for permissions": {func(*v1.PackageStatus, string) {}, v1.RevisionUnhealthy("waits"), "", "false"},
		"healthy before": {
			func(s *v1.PackageStatus, rev string) { s.Activation = &v1.Activation{Revision: rev} }, v1.RevisionUnknownHealth(""),
			"true", "true",
		},
		"healthy, of Crossplane": {func(*v1.PackageStatus, string) {}, v1.RevisionHealthy(), "", "true"},
		"not known, of a backup": {func(*v1.PackageStatus, string) {}, v1.RevisionUnknownHealth(""), "", ""},
		"another was rolled back": {
			func(s *v1.PackageStatus, _ string) { s.Rollback = &v1.Rollback{From: "other"} }, v1.RevisionHealthy(), "", "true",
		},
	} {
		p := provider("uid", "registry.example.com/boats:v2")
		p.Name = "boats"
		old := Current(p, xpkg.Meta{}, digest("a"), Name(p, digest("a"), nil), nil, Decision{})
		old.RevisionSpec().Revision, old.RevisionSpec().DesiredState = 1, v1.RevisionActive
		old.SetConditions(metav1.Time{}, tc.condition)
		if tc.before != "" {
			old.SetAnnotations(map[string]string{AnnotationHealthy: tc.before})
		}
		tc.status(&p.Status.PackageStatus, old.GetName())
		next := Next(p, xpkg.Meta{}, digest("b"), []v1.PackageRevision{old})
		inactive := next.find(old.GetName())
		inactive.SetConditions(metav1.Time{}, v1.RevisionHealthy()) // Its objects are released.
		if got := inactive.GetAnnotations()[AnnotationHealthy]; IsActive(inactive) || got != tc.want {
			t.Errorf(
				"%s: %s is %s with the health %q, want %q", name, inactive.GetName(), inactive.RevisionSpec().DesiredState, got,
				tc.want,
			)
		}
		if isFailed := tc.want == "false"; isFailed != (HealthOf(inactive) == corev1.ConditionFalse) ||
			isFailed != slices.Contains(failed(provider("", ""), next.After), old.GetName()) {
			t.Errorf("%s: the health is %s, and failed are %v", name, HealthOf(inactive), failed(provider("", ""), next.After))
		}
		if back := Back(provider("", ""), next.Current.GetName(), next.After); (back == "") != (tc.want == "false") {
			t.Errorf("%s: a rollback selects %q", name, back)
		}
	}
}
