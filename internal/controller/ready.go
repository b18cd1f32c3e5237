package controller

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/permission"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// verdict is the state of an object in one word, as kstatus and the tools that
// are built on it want to know it: done, under way, or waiting for a person.
type verdict struct {
	ready   bool
	stalled bool
	// waits says that what the spec asks for is not in place, and that this is
	// how it should be: a person decides when.
	waits   bool
	reason  v1.ConditionReason
	message string
}

// failed is the verdict on a failure.
func failed(err error) verdict {
	return verdict{stalled: needsPerson(err), waits: permission.AwaitsApproval(errcode.From(err).Code.Name), reason: v1.ConditionReason(errcode.From(err).Code.Name), message: errcode.Message(err)}
}

// needsPerson tells a failure that waiting does not mend from one that it may.
// Most of the former are tried again all the same, since the mistake may be mended
// outside of the cluster.
func needsPerson(err error) bool {
	switch errcode.From(err).Code.Class.Name {
	case errcode.Usage.Name, errcode.Invalid.Name, errcode.NotFound.Name, errcode.Unauthorized.Name,
		errcode.Untrusted.Name, errcode.Limit.Name, errcode.Unsupported.Name:
		return true
	}
	return errors.Is(err, apply.ErrRefused) || isFinal(v1.ConditionReason(errcode.From(err).Code.Name)) || errors.Is(err, ErrDependencyVersion)
}

// isFinal reports whether a reason follows from the content alone: a refusal by the API
// server, or one that is foreseen for it, or an image without a program. The same content
// fails again, however often it is tried.
func isFinal(reason v1.ConditionReason) bool {
	switch string(reason) {
	case apply.ErrImmutable.Name, apply.ErrStoredVersion.Name, apply.ErrNameTaken.Name, apply.ErrRejected.Name, apply.ErrDenied.Name,
		runtime.ErrNoProgram.Name:
		return true
	}
	return false
}

// settle writes a verdict into the conditions Ready, Reconciling and Stalled. The
// latter two are there only while they are true, as kstatus defines them.
func settle(o object, now metav1.Time, v verdict) {
	s := statusOf(o)
	*s.observed = o.GetGeneration()
	is := corev1.ConditionFalse
	if v.ready {
		is = corev1.ConditionTrue
	}
	o.SetConditions(now, v1.Ready(is, v.reason, v.message))
	s.keep(o, now, v1.Reconciling(v.reason, v.message), !v.ready && !v.waits && !v.stalled)
	s.keep(o, now, v1.Stalled(v.reason, v.message), !v.ready && !v.waits && v.stalled)
}

// status is what the statuses of packages and revisions have in common.
type status struct {
	conditions *v1.ConditionedStatus
	observed   *int64
}

// keep sets a condition while it is true, and removes it otherwise.
func (s status) keep(o object, now metav1.Time, c v1.Condition, is bool) {
	if is {
		o.SetConditions(now, c)
	} else {
		s.conditions.RemoveCondition(c.Type)
	}
}

func statusOf(o object) status {
	switch o := o.(type) {
	case v1.PackageRevision:
		s := o.RevisionStatus()
		return status{&s.ConditionedStatus, &s.ObservedGeneration}
	case v1.Package:
		s := o.PackageStatus()
		return status{&s.ConditionedStatus, &s.ObservedGeneration}
	}
	panic("manager: neither a package nor a revision")
}
