package revision_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller/status"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// retrying is a package whose update from the revision former to the revision of the digest next is refused, with a
// clock.
type retrying struct {
	now          time.Time
	policy       revision.RollbackPolicy
	p            *v1.Provider
	former, next *v1.ProviderRevision
}

func newRetrying() *retrying {
	x := &retrying{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), p: &v1.Provider{ObjectMeta: metav1.ObjectMeta{
		Name: "boats", Generation: 2,
	}}}
	x.policy = revision.RollbackPolicy{
		Deadline: 10 * time.Minute, Now: func() time.Time { return x.now }, Classify: classify,
	}
	x.p.Spec.Package = "registry.example.org/acme/boats:v2"
	x.former = &v1.ProviderRevision{ObjectMeta: metav1.ObjectMeta{Name: revision.Name(x.p, "sha256:1", nil)}}
	x.next = &v1.ProviderRevision{ObjectMeta: metav1.ObjectMeta{Name: revision.Name(x.p, "sha256:2", nil)}}
	x.former.Spec.Revision, x.former.Spec.DesiredState = 1, v1.RevisionActive
	status.Set(x.former, metav1.NewTime(x.now), revision.Ready)
	x.p.Status.LastHealthyRevision = x.former.Name
	return x
}

// step is one reconciliation of the package. It returns the active revision after it, and whether a rollback was
// decided.
func (x *retrying) step() (active string, decided bool) {
	revisions := []v1.PackageRevision{x.former, x.next}
	if decided = x.policy.Decide(x.p, revisions); decided {
		_ = x.policy.Decide(x.p, revisions)
	}
	x.p.Status.LastHandledRetry = x.p.Annotations[v1.AnnotationRetry]
	t := revision.Next(x.p, xpkg.Meta{}, "sha256:2", revisions)
	x.policy.Begin(x.p, t.Decision, revisions)
	for _, rev := range t.After {
		switch rev := rev.(*v1.ProviderRevision); rev.Name {
		case x.former.Name:
			x.former = rev
		case x.next.Name:
			x.next = rev
		}
	}
	return t.Activate, decided
}

// report sets the status of the next revision, as its controller does.
func (x *retrying) report(reason v1.ConditionReason) {
	x.next.Status.LastHandledRetry = x.next.Annotations[v1.AnnotationRetry]
	status.Set(x.next, metav1.NewTime(x.now), revision.Summary{
		Reason: reason, Message: string(reason) + ": no.", Ready: reason == v1.ReasonHealthy,
	})
}

// A refused revision is rolled back at the deadline, and tried again after a pause: if it is refused again, it is
// rolled back at once, and if it is admitted, it stays.
func TestARefusedRevisionIsTriedAgainAfterTheRollback(t *testing.T) {
	x := newRetrying()
	expect := func(what, wantActive string, wantDecided bool) {
		t.Helper()
		if active, decided := x.step(); active != wantActive || decided != wantDecided {
			t.Fatalf("%s: %s is active, rollback decided: %t; want %s, %t", what, active, decided, wantActive, wantDecided)
		}
	}
	expect("update", x.next.Name, false)
	x.report("AdmissionDenied")
	x.now = x.now.Add(9 * time.Minute)
	expect("before the deadline", x.next.Name, false)
	x.now = x.now.Add(time.Minute)
	expect("at the deadline", x.former.Name, true)
	summary := x.policy.Summarize(x.p, revision.Ready)
	if want := "`xpkg update provider/boats registry.example.org/acme/boats:v2`"; !strings.Contains(
		summary.Message, want,
	) {
		t.Errorf("the message does not name %s: %s", want, summary.Message)
	}
	x.now = x.now.Add(10*time.Minute - time.Second)
	expect("before the pause ends", x.former.Name, false)
	for range 3 {
		x.now = x.p.Status.Rollback.RetryTime.Time
		expect("after the pause", x.next.Name, false)
		x.report(v1.ReasonProgressing)
		expect("in progress", x.next.Name, false)
		x.report("AdmissionDenied")
		expect("refused again", x.former.Name, true)
	}
	x.now = x.p.Status.Rollback.RetryTime.Time
	expect("after another pause", x.next.Name, false)
	x.report(v1.ReasonHealthy)
	expect("admitted", x.next.Name, false)
	if x.p.Status.LastHealthyRevision != x.next.Name || x.p.Status.Rollback != nil {
		t.Errorf("status %+v", x.p.Status)
	}
}

// Each new value of the annotation is one attempt, which has until the activation deadline. The status of the revision
// before the attempt does not end it. The removal of the annotation changes nothing.
func TestEachValueOfTheAnnotationIsOneAttempt(t *testing.T) {
	x := newRetrying()
	rollBack := func() {
		t.Helper()
		x.now = x.now.Add(10 * time.Minute)
		if active, decided := x.step(); active != x.former.Name || !decided {
			t.Fatalf("%s is active, rollback decided: %t", active, decided)
		}
	}
	x.step()
	x.report("NoProgram")
	rollBack()
	for _, value := range []string{"1", "2"} {
		x.p.Annotations = map[string]string{v1.AnnotationRetry: value}
		if active, decided := x.step(); active != x.next.Name || decided {
			t.Fatalf("%s is active, rollback decided: %t", active, decided)
		}
		if s := revision.Summarize(x.next); s.Reason != v1.ReasonProgressing {
			t.Errorf("the revision reports the former attempt: %+v", s)
		}
		if active, decided := x.step(); active != x.next.Name || decided {
			t.Fatalf("the status of the former attempt ends this one: %s is active, rollback decided: %t", active, decided)
		}
		x.report("NoProgram")
		rollBack()
		for range 2 {
			if active, decided := x.step(); active != x.former.Name || decided {
				t.Fatalf("%s is active, rollback decided: %t", active, decided)
			}
		}
	}
	x.p.Annotations = nil
	if active, _ := x.step(); active != x.former.Name {
		t.Errorf("%s is active without the annotation", active)
	}
}

// Without automatic activation, a user decides when a revision is tried again.
func TestManualActivationIsNotTriedAgain(t *testing.T) {
	x := newRetrying()
	x.p.Spec.RevisionActivationPolicy = v1.ManualActivation
	x.former.Spec.DesiredState, x.next.Spec.DesiredState, x.next.Spec.Revision = v1.RevisionInactive, v1.RevisionActive, 2
	x.step()
	x.report("AdmissionDenied")
	x.now = x.now.Add(10 * time.Minute)
	if _, decided := x.step(); !decided || x.p.Status.Rollback.RetryTime != nil {
		t.Errorf("rollback %+v", x.p.Status.Rollback)
	}
}
