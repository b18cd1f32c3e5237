package controller

import (
	"errors"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// ErrRolledBack is the failure of a package whose new revision did not become healthy, or
// whose runtime crashed, before the activation deadline.
var ErrRolledBack = errcode.Code{
	Name: "RolledBack", Class: errcode.Unhealthy,
	Cause: "A new revision of the package did not become healthy and stay so until the activation deadline. The revision that was healthy last is active again.",
	Fix:   "Fix the cause that the message names, or update to another version: any change to the package's spec tries again.",
}

// gate watches over the activation of a revision, and rolls a revision back, once, that
// does not become healthy before the deadline, or whose runtime crashes before the deadline.
type gate struct {
	deadline time.Duration
	now      func() time.Time
}

// judge evaluates the activation that is under way, and decides on a rollback. The
// decision is written down before it is carried out, so that it survives a crash of the
// manager; judge reports that.
func (g gate) judge(p v1.Package, revisions []v1.PackageRevision) (decided bool) {
	status := p.PackageStatus()
	if b := status.Rollback; b != nil && b.Generation != p.GetGeneration() {
		status.Rollback = nil
	}
	a := status.Activation
	rev := find(revisions, a)
	if rev == nil || waitsForRights(rev) {
		return false
	}
	v := verdictOn(rev)
	if v.ready {
		a.Healthy, status.LastHealthyRevision = true, rev.GetName()
		return false
	}
	if status.Rollback != nil || !g.shouldRollBack(a, rev, v) {
		return false
	}
	previous := revision.Back(p, rev.GetName(), revisions)
	if previous == "" {
		return false
	}
	if a.Healthy {
		status.LastHealthyRevision = a.Previous
	}
	status.Rollback = &v1.Rollback{
		From: rev.GetName(), To: previous, Generation: p.GetGeneration(), Time: metav1.NewTime(g.now()), Message: v.message,
	}
	return true
}

// shouldRollBack reports whether a revision that is not healthy is to be rolled back.
//
// A revision that has not been healthy has until the deadline, unless the API server
// rejects its objects or its package contains no program to run: waiting cannot help
// against either. One that has been healthy
// is rolled back only for a failure of its program that began before the deadline: at once
// when it is in a crash loop, and otherwise when it is still not healthy at the deadline.
// Any other problem, such as a lost node, would hit the previous revision as well.
func (g gate) shouldRollBack(a *v1.Activation, rev v1.PackageRevision, v verdict) bool {
	if g.deadline == 0 {
		return false
	}
	deadline := a.Since.Add(g.deadline)
	over := !g.now().Before(deadline)
	if !a.Healthy {
		return over || isFinal(v.reason)
	}
	runtimeHealthy := rev.GetCondition(v1.TypeRuntimeHealthy)
	if runtimeHealthy.Status != corev1.ConditionFalse || runtimeHealthy.LastTransitionTime.After(deadline) || !runtime.IsProgramFailure(string(v.reason)) {
		return false
	}
	return over || v.reason == runtime.ReasonCrashLoop
}

// find gives the active revision that an activation is about.
func find(revisions []v1.PackageRevision, a *v1.Activation) v1.PackageRevision {
	if a == nil {
		return nil
	}
	i := slices.IndexFunc(revisions, func(r v1.PackageRevision) bool { return r.GetName() == a.Revision && active(r) })
	if i < 0 {
		return nil
	}
	return revisions[i]
}

// begin records that a revision was activated. The time of one that waits for rights
// begins when it has them: nothing of it is there before, and what ran goes on.
func (g gate) begin(p v1.Package, d revision.Decision, revisions []v1.PackageRevision) {
	status := p.PackageStatus()
	if d.Activate == "" {
		status.Activation = nil
		return
	}
	if slices.ContainsFunc(revisions, func(rev v1.PackageRevision) bool { return rev.GetName() == d.Activate && waitsForRights(rev) }) {
		status.Activation = nil
	} else if a := status.Activation; a == nil || a.Revision != d.Activate || a.Number != d.Number {
		status.Activation = &v1.Activation{
			Revision: d.Activate, Number: d.Number, Since: metav1.NewTime(g.now()), Previous: status.LastHealthyRevision,
		}
	}
	if b := status.Rollback; b != nil && d.Activate != b.To {
		// Other content, or a person, has made another revision the active one.
		status.Rollback = nil
	}
}

// left returns how long the activation that is under way may still be rolled back. It is
// not positive when no rollback can follow: without a runtime, or without a revision to
// return to, a revision that has been healthy stays.
func (g gate) left(p v1.Package, revisions []v1.PackageRevision) time.Duration {
	a := p.PackageStatus().Activation
	if a == nil || g.deadline == 0 {
		return 0
	}
	rev := find(revisions, a)
	if a.Healthy && (rev == nil || rev.GetCondition(v1.TypeRuntimeHealthy).Status == corev1.ConditionUnknown || revision.Back(p, a.Revision, revisions) == "") {
		return 0
	}
	return a.Since.Add(g.deadline).Sub(g.now())
}

// verdict is what a rollback says of the package, with what the revision says that
// runs instead.
func (g gate) verdict(b *v1.Rollback, running verdict) verdict {
	why := strings.TrimSuffix(b.Message, ".")
	if !running.ready && running.message != "" {
		why += "; " + b.To + " says: " + strings.TrimSuffix(running.message, ".")
	}
	within := " within " + g.deadline.String()
	if code, _, _ := strings.Cut(b.Message, ":"); isFinal(v1.ConditionReason(code)) {
		within = ""
	}
	err := ErrRolledBack.New(errors.New(why), "rolled back to %s: %s did not become healthy and stay so%s", b.To, b.From, within)
	return verdict{stalled: true, reason: v1.ReasonRolledBack, message: errcode.Message(err)}
}
