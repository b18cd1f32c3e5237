package status

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// Object is a package, a revision, or an object of the first generation of packages, which returns the parts of its
// status with ReportedStatus.
type Object interface {
	metav1.Object
	runtime.Object
	v1.Conditioned
	PackageKind() string
}

// Failed returns the summary of an object whose reconciliation failed.
func Failed(err error) revision.Summary {
	err = apply.ClassifyForbidden(err)
	e := errcode.From(err)
	return revision.Summary{
		Stalled: needsUser(err), Waiting: e.Code.Approval,
		Reason: v1.ConditionReason(e.Code.Name), Message: errcode.Message(err),
	}
}

// needsUser reports whether a user must fix a failure. Most of these failures are retried anyway,
// since the fix may be outside of the cluster.
func needsUser(err error) bool {
	code := errcode.From(err).Code
	switch code.Class.Name {
	case errcode.Usage.Name, errcode.Invalid.Name, errcode.NotFound.Name, errcode.Unauthorized.Name,
		errcode.Untrusted.Name, errcode.Limit.Name, errcode.Unsupported.Name:
		return true
	}
	return code.Final || code.Refusal && !errors.Is(err, apply.ErrDeleting) || errors.Is(err, graph.ErrDependencyVersion)
}

// Set sets the conditions Ready, Reconciling and Stalled from a summary, and the observed
// generation. As in kstatus, Reconciling and Stalled exist only while they are true.
func Set(o Object, now metav1.Time, s revision.Summary) {
	conditions, observed := statusOf(o)
	*observed = o.GetGeneration()
	ready := corev1.ConditionFalse
	if s.Ready {
		ready = corev1.ConditionTrue
	}
	o.SetConditions(now, v1.Ready(ready, s.Reason, s.Message))
	setIf := func(c v1.Condition, is bool) {
		if is {
			o.SetConditions(now, c)
		} else {
			conditions.RemoveCondition(c.Type)
		}
	}
	setIf(v1.Reconciling(s.Reason, s.Message), !s.Ready && !s.Waiting && !s.Stalled)
	setIf(v1.Stalled(s.Reason, s.Message), !s.Ready && !s.Waiting && s.Stalled)
}

// statusOf returns pointers to the parts that the statuses of packages and revisions have in
// common.
func statusOf(o Object) (conditions *v1.ConditionedStatus, observedGeneration *int64) {
	switch o := o.(type) {
	case interface {
		ReportedStatus() (*v1.ConditionedStatus, *int64)
	}:
		return o.ReportedStatus()
	case v1.PackageRevision:
		s := o.RevisionStatus()
		return &s.ConditionedStatus, &s.ObservedGeneration
	case v1.Package:
		s := o.PackageStatus()
		return &s.ConditionedStatus, &s.ObservedGeneration
	}
	panic("status: neither a package nor a revision")
}
