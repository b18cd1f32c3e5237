package revision_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller/status"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/runtime"
)

// classify returns the classes of the reasons in the tests.
func classify(reason v1.ConditionReason) revision.Failure {
	switch reason {
	case "NoProgram":
		return revision.Final
	case "AdmissionDenied":
		return revision.Refused
	case "PartlyWritten":
		return revision.Partial
	case runtime.ReasonCrashLoop:
		return revision.CrashLoop
	case runtime.ReasonCrashed, runtime.ReasonNotServing:
		return revision.RuntimeFailure
	}
	return revision.Transient
}

// A revision that has been healthy is rolled back for failures of its runtime that began before the
// deadline, and for nothing else.
func TestAHealthyRevisionIsRolledBackOnlyForFailuresOfItsRuntime(t *testing.T) {
	const deadline = 10 * time.Minute
	activated := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	// observed is the reason that a revision reports from a time on; an empty reason is healthy.
	type observed struct {
		at     time.Duration
		reason string
	}
	for name, tc := range map[string]struct {
		observations []observed
		// rollback is the observation at which the rollback is decided, or -1.
		rollback int
	}{
		"Holds": {[]observed{{5 * time.Second, ""}, {deadline, ""}, {time.Hour, ""}}, -1},
		"CrashLoop": {
			[]observed{{5 * time.Second, ""}, {time.Minute, runtime.ReasonCrashed}, {2 * time.Minute, runtime.ReasonCrashLoop}},
			2,
		},
		"CrashesAndRecovers": {
			[]observed{{5 * time.Second, ""}, {time.Minute, runtime.ReasonCrashed}, {2 * time.Minute, ""}, {deadline, ""}}, -1,
		},
		"IsDownAtTheDeadline": {
			[]observed{{5 * time.Second, ""}, {9 * time.Minute, runtime.ReasonCrashed}, {deadline, runtime.ReasonCrashed}}, 2,
		},
		"DoesNotAnswerAtTheDeadline": {
			[]observed{{5 * time.Second, ""}, {9 * time.Minute, runtime.ReasonNotServing}, {deadline, runtime.ReasonNotServing}},
			2,
		},
		"NodeVanishes": {[]observed{
			{5 * time.Second, ""}, {9 * time.Minute, "Unavailable"}, {deadline, "Unavailable"}, {time.Hour, "Unschedulable"},
		}, -1},
		"CrashLoopAfterTheDeadline": {[]observed{
			{5 * time.Second, ""}, {deadline, ""}, {deadline + time.Minute, runtime.ReasonCrashed},
			{time.Hour, runtime.ReasonCrashLoop},
		}, -1},
		"HasNoRunnableImage": {[]observed{{5 * time.Second, "NoProgram"}}, 0},
		"IsRefusedUntilTheDeadline": {[]observed{
			{5 * time.Second, "AdmissionDenied"}, {9 * time.Minute, "AdmissionDenied"}, {deadline, "AdmissionDenied"},
		}, 2},
		"IsRefusedAndThenAdmitted": {
			[]observed{{5 * time.Second, "AdmissionDenied"}, {9 * time.Minute, ""}, {time.Hour, ""}}, -1,
		},
		"IsWrittenInPart":     {[]observed{{5 * time.Second, "PartlyWritten"}}, 0},
		"RuntimeChangesLater": {[]observed{{5 * time.Second, ""}, {time.Hour, "NoProgram"}}, -1},
		"NeverHealthyBeforeDeadline": {
			[]observed{{5 * time.Second, runtime.ReasonStarting}, {9 * time.Minute, runtime.ReasonCrashLoop}}, -1,
		},
		"NeverHealthyUntilTheDeadline": {
			[]observed{{5 * time.Second, runtime.ReasonStarting}, {deadline, runtime.ReasonCrashLoop}}, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var now time.Time
			policy := revision.RollbackPolicy{Deadline: deadline, Now: func() time.Time { return now }, Classify: classify}
			former, rev := &v1.ProviderRevision{ObjectMeta: metav1.ObjectMeta{Name: "former"}},
				&v1.ProviderRevision{ObjectMeta: metav1.ObjectMeta{Name: "new"}}
			former.Spec.Revision, rev.Spec.Revision, rev.Spec.DesiredState = 1, 2, v1.RevisionActive
			p := &v1.Provider{}
			p.Status.LastHealthyRevision = former.Name
			p.Status.Activation = &v1.Activation{
				Revision: rev.Name, Number: 2, Since: metav1.NewTime(activated), Previous: former.Name,
			}
			for i, o := range tc.observations {
				now = activated.Add(o.at)
				summary, c := revision.Ready, v1.RuntimeHealthy()
				if o.reason != "" {
					summary, c = revision.Summary{Reason: v1.ConditionReason(o.reason), Message: o.reason},
						v1.RuntimeUnhealthy(o.reason)
				}
				rev.SetConditions(metav1.NewTime(now), c)
				status.Set(rev, metav1.NewTime(now), summary)
				decided := policy.Decide(p, []v1.PackageRevision{former, rev})
				if decided != (i == tc.rollback) {
					t.Fatalf("after %s (%q): rollback %t, want %t", o.at, o.reason, decided, i == tc.rollback)
				}
				if decided && (p.Status.Rollback.To != former.Name || p.Status.LastHealthyRevision != former.Name) {
					t.Errorf(
						"rolled back to %s, last healthy revision %s, want %s", p.Status.Rollback.To, p.Status.LastHealthyRevision,
						former.Name,
					)
				}
			}
			if tc.rollback < 0 && tc.observations[0].reason == "" && p.Status.LastHealthyRevision != rev.Name {
				t.Errorf("last healthy revision %s, want %s", p.Status.LastHealthyRevision, rev.Name)
			}
		})
	}
}

// A revision can be ready before its activation is recorded: the manager ended between the two statuses, or the package
// was restored without its own. The status of a revision that was inactive until now does not count.
func TestActivationOfAReadyRevisionIsHealthy(t *testing.T) {
	now := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	policy := revision.RollbackPolicy{Deadline: time.Minute, Now: func() time.Time { return now.Time }, Classify: classify}
	for name, tc := range map[string]struct {
		state   v1.RevisionState
		summary revision.Summary
		want    bool
	}{
		"ready":                 {v1.RevisionActive, revision.Ready, true},
		"being established":     {v1.RevisionActive, revision.Progressing(""), false},
		"inactive until now":    {v1.RevisionInactive, revision.Ready, false},
		"failed before a crash": {v1.RevisionActive, revision.Summary{Reason: "NoProgram", Message: "no"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			p, rev := &v1.Provider{}, &v1.ProviderRevision{ObjectMeta: metav1.ObjectMeta{Name: "boats-1"}}
			rev.Spec.Revision, rev.Spec.DesiredState = 1, tc.state
			status.Set(rev, now, tc.summary)
			policy.Begin(p, revision.Decision{Activate: rev.Name, Number: 1}, []v1.PackageRevision{rev})
			a := p.Status.Activation
			if a == nil || a.Healthy != tc.want || (p.Status.LastHealthyRevision == rev.Name) != tc.want {
				t.Errorf("activation %+v, last healthy revision %q; want healthy: %t", a, p.Status.LastHealthyRevision, tc.want)
			}
		})
	}
}

// The message of a rollback is complete, also if the revision had not reported a failure before the deadline.
func TestRollbackWithoutAReportedFailure(t *testing.T) {
	p := v1.NewPackage(v1.ProviderKind)
	p.PackageStatus().Rollback = &v1.Rollback{From: "boats-2", To: "boats-1"}
	policy := revision.RollbackPolicy{
		Deadline: time.Minute, Classify: func(v1.ConditionReason) revision.Failure { return revision.Transient },
	}
	if got := policy.Summarize(p, revision.Ready).
		Message; !strings.Contains(got, "within 1m0s: it had reported no failure. ") {
		t.Error(got)
	}
}
