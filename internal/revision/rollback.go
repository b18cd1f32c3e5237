package revision

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
)

// ErrRolledBack is the code for a package whose new revision did not become healthy, or whose runtime crashed, before
// the activation deadline.
var ErrRolledBack = errcode.Code{
	Name: "RolledBack", Class: errcode.Unhealthy,
	Cause: "A new revision of the package did not become healthy and stay so until the activation deadline. The revision that was healthy last is active again.",
	Fix: "Fix the cause that the message names, and repeat the update, or update to another version. A new value of the annotation " +
		v1.AnnotationRetry + " and any change to the package's spec try again, too.",
}

// Failure classifies the reason why a revision is not healthy.
type Failure int

// The classes of failures.
const (
	// Transient is any failure that time may fix.
	Transient Failure = iota
	// Final is a failure that a retry with the same content repeats.
	Final
	// Refused is a failure due to the state of the cluster, such as a missing dependency or a quota, that other clients
	// can change.
	Refused
	// Partial is a failure after a part of the objects was written.
	Partial
	// RuntimeFailure is a failure of the runtime itself, so that another version may work.
	RuntimeFailure
	// CrashLoop is a runtime that keeps exiting.
	CrashLoop
)

// retryPause is the pause before the manager tries again by itself a revision that was rolled back because the cluster
// refused it. An attempt makes the former revision inactive for a moment, so it is not short.
const retryPause = 10 * time.Minute

// RollbackPolicy decides when a revision is rolled back: if it does not become healthy before the
// activation deadline, or if its runtime crashes before the deadline. A package is rolled back at
// most once for each generation and requested attempt, unless the cluster refused the revision: then
// the former revision is active and maintained, and the other one is tried again from time to time.
type RollbackPolicy struct {
	// Deadline is the activation deadline. Zero disables rollbacks.
	Deadline time.Duration
	Now      func() time.Time
	// Classify returns the class of the reason of a revision's Ready condition.
	Classify func(v1.ConditionReason) Failure
}

// Decide evaluates the activation in progress, and records it in the status of the package. It
// reports whether it decided on a rollback. The caller writes the status before it carries the
// rollback out, so that the decision survives a crash of the manager.
func (r RollbackPolicy) Decide(p v1.Package, revisions []v1.PackageRevision) (decided bool) {
	status := p.PackageStatus()
	a := status.Activation
	switch b := status.Rollback; {
	case b == nil:
	case !isRolledBack(p):
		status.Rollback = nil
	case b.RetryTime != nil && !r.Now().Before(b.RetryTime.Time) && a != nil:
		status.Rollback, a.Retry = nil, b.From
	}
	rev := activated(revisions, a)
	if rev == nil || awaitsPermission(rev) {
		return false
	}
	summary := Summarize(rev)
	if summary.Ready {
		a.Healthy, status.LastHealthyRevision = true, rev.GetName()
		return false
	}
	if status.Rollback != nil || !r.shouldRollBack(a, rev, summary) {
		return false
	}
	previous := Back(p, rev.GetName(), revisions)
	if previous == "" {
		return false
	}
	if a.Healthy {
		status.LastHealthyRevision = a.Previous
	}
	status.Rollback = &v1.Rollback{
		From: rev.GetName(), To: previous, Generation: p.GetGeneration(), Time: metav1.NewTime(r.Now()),
		Message: summary.Message,
	}
	if r.Classify(summary.Reason) == Refused && PolicyOf(p).Automatic {
		status.Rollback.RetryTime = new(metav1.NewTime(r.Now().Add(retryPause)))
	}
	return true
}

// shouldRollBack reports whether a revision that is not healthy is rolled back.
//
// A revision that has not been healthy has until the deadline, unless its failure is final or has left a part of
// its objects, or the cluster refused it before and still does. A
// revision that has been healthy is rolled back only for a failure of its runtime that began before
// the deadline: at once in a crash loop, and otherwise if it is still not healthy at the deadline.
// Any other problem, such as a lost node, would affect the previous revision as well.
func (r RollbackPolicy) shouldRollBack(a *v1.Activation, rev v1.PackageRevision, s Summary) bool {
	if r.Deadline == 0 {
		return false
	}
	deadline := a.Since.Add(r.Deadline)
	over := !r.Now().Before(deadline)
	failure := r.Classify(s.Reason)
	if !a.Healthy {
		return over || failure == Final || failure == Partial || failure == Refused && a.Retry == a.Revision
	}
	runtimeHealthy := rev.GetCondition(v1.TypeRuntimeHealthy)
	if runtimeHealthy.Status != corev1.ConditionFalse || runtimeHealthy.LastTransitionTime.After(deadline) {
		return false
	}
	return failure == CrashLoop || over && failure == RuntimeFailure
}

// awaitsPermission reports whether a revision waits until a user approves or grants permissions.
// Its objects are not written until then, so its activation deadline does not run yet.
func awaitsPermission(rev v1.PackageRevision) bool {
	if !isObserved(rev) || !IsActive(rev) {
		return false
	}
	s := Summarize(rev)
	return s.Waiting || string(s.Reason) == rbac.ErrPermissionMissing.Name
}

// activated returns the revision of an activation if it is still active, or nil.
func activated(revisions []v1.PackageRevision, a *v1.Activation) v1.PackageRevision {
	if a == nil {
		return nil
	}
	i := slices.IndexFunc(revisions, func(r v1.PackageRevision) bool { return r.GetName() == a.Revision && IsActive(r) })
	if i < 0 {
		return nil
	}
	return revisions[i]
}

// Begin records the start of the activation of a decision in the status of the package. The activation of a revision
// that waits for permissions starts when it has them. A revision can be ready already: the manager ended before it
// wrote the status of the package, or the status was lost.
func (r RollbackPolicy) Begin(p v1.Package, d Decision, revisions []v1.PackageRevision) {
	status := p.PackageStatus()
	if d.Activate == "" {
		status.Activation = nil
		return
	}
	awaits := slices.ContainsFunc(revisions, func(rev v1.PackageRevision) bool {
		return rev.GetName() == d.Activate && awaitsPermission(rev)
	})
	if awaits {
		status.Activation = nil
	} else if a := status.Activation; a == nil || a.Revision != d.Activate || a.Number != d.Number {
		next := &v1.Activation{
			Revision: d.Activate, Number: d.Number, Since: metav1.NewTime(r.Now()), Previous: status.LastHealthyRevision,
		}
		if a != nil && a.Retry == d.Activate {
			next.Retry = a.Retry
		}
		status.Activation = next
		if rev := activated(revisions, status.Activation); rev != nil && Summarize(rev).Ready {
			status.Activation.Healthy, status.LastHealthyRevision = true, rev.GetName()
		}
	}
	if b := status.Rollback; b != nil && d.Activate != b.To {
		// Other content, or a user, has made another revision the active one.
		status.Rollback = nil
	}
}

// Remaining returns the time for which the current activation may still be rolled back. The result
// is not positive if no rollback can follow: after the deadline, and for a revision that has been
// healthy and has no runtime, or no revision to return to.
func (r RollbackPolicy) Remaining(p v1.Package, revisions []v1.PackageRevision) time.Duration {
	a := p.PackageStatus().Activation
	if a == nil || r.Deadline == 0 {
		return 0
	}
	rev := activated(revisions, a)
	if a.Healthy {
		withoutRuntime := rev == nil || rev.GetCondition(v1.TypeRuntimeHealthy).Status == corev1.ConditionUnknown
		if withoutRuntime || Back(p, a.Revision, revisions) == "" {
			return 0
		}
	}
	return a.Since.Add(r.Deadline).Sub(r.Now())
}

// Summarize returns the summary of a package that was rolled back. Running is the summary of the
// revision to which it was rolled back.
func (r RollbackPolicy) Summarize(p v1.Package, running Summary) Summary {
	b := p.PackageStatus().Rollback
	cause := cmp.Or(strings.TrimSuffix(b.Message, "."), "it had reported no failure")
	if !running.Ready && running.Message != "" {
		cause += "; " + b.To + " reports: " + strings.TrimSuffix(running.Message, ".")
	}
	within := " within " + r.Deadline.String()
	code, _, _ := strings.Cut(b.Message, ":")
	if class := r.Classify(v1.ConditionReason(code)); class == Final || class == Partial {
		within = ""
	}
	err := ErrRolledBack.New(
		errors.New(cause), "rolled back to %s: %s did not become healthy and stay so%s", b.To, b.From, within,
	)
	if b.RetryTime != nil {
		err = err.WithDo("The manager tries again every %.0f minutes. To try at once, run `xpkg update %s %s`, or set the annotation %s to a new value.",
			retryPause.Minutes(), ObjectName(p), p.PackageSpec().Package, v1.AnnotationRetry)
	}
	return Summary{Stalled: true, Reason: v1.ReasonRolledBack, Message: errcode.Message(err)}
}
