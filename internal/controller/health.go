package controller

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// health copies what the active revision reports, in upstream's words, and gives
// the verdict on the package.
func (r *packageReconciler) health(p v1.Package, current, active string, revisions []v1.PackageRevision) verdict {
	now := metav1.NewTime(r.now())
	running := current
	if active != "" {
		running = active
	}
	healthy, v := v1.UnknownHealth("The revision "+running+" is being established."), verdict{reason: v1.ReasonProgressing}
	for _, rev := range revisions {
		// What a revision said before it was made active is not about what it does now.
		if rev.GetName() == running && (active == "" || rev.RevisionSpec().DesiredState == v1.RevisionActive) {
			healthy, v = packageHealth(rev), verdictOn(rev)
		}
	}
	p.SetConditions(now, healthy)
	if b := p.PackageStatus().Rollback; b != nil && active == b.To {
		v = r.gate.verdict(b, v)
		p.SetConditions(now, v1.Inactive(v.message), v1.RolledBack(v.message))
		return v
	}
	if active == current {
		p.SetConditions(now, v1.Active())
		return v
	}
	waits := v1.Inactive(fmt.Sprintf("Revision %s waits to be activated: set its spec.desiredState to Active.", current))
	p.SetConditions(now, waits)
	return verdict{waits: true, reason: waits.Reason, message: waits.Message}
}

// packageHealth is the health of a package with this revision: that of its
// objects and, where somebody reports it, that of its runtime.
func packageHealth(rev v1.PackageRevision) v1.Condition {
	objects := rev.GetCondition(v1.TypeRevisionHealthy)
	runtime := rev.GetCondition(v1.TypeRuntimeHealthy)
	switch {
	case !looked(rev):
		return v1.UnknownHealth("The revision " + rev.GetName() + " is being established.")
	case objects.Status == corev1.ConditionFalse:
		return v1.Unhealthy(objects.Message)
	case runtime.Status == corev1.ConditionFalse:
		return v1.Unhealthy(runtime.Message)
	case objects.Status != corev1.ConditionTrue:
		return v1.UnknownHealth("Package revision health is not known yet.")
	case runtime.Message != "" && runtime.Status != corev1.ConditionTrue:
		return v1.UnknownHealth(runtime.Message)
	case rev.GetCondition(v1.TypeRuntimeActive).Reason == v1.ReasonAwaitingActivation:
		return v1.HealthyAwaitingActivation()
	}
	return v1.Healthy()
}

// looked reports whether what a revision says of itself is about its spec as it is
// now.
func looked(rev v1.PackageRevision) bool {
	return rev.RevisionStatus().ObservedGeneration == rev.GetGeneration()
}

// verdictOn is what a revision says of itself.
func verdictOn(rev v1.PackageRevision) verdict {
	ready := rev.GetCondition(v1.TypeReady)
	switch {
	case !looked(rev):
		return verdict{reason: v1.ReasonProgressing}
	case ready.Status == corev1.ConditionFalse:
		return verdict{
			stalled: rev.GetCondition(v1.TypeStalled).Status == corev1.ConditionTrue, waits: waitsForApproval(ready.Reason),
			reason: ready.Reason, message: ready.Message,
		}
	case rev.GetCondition(v1.TypeRuntimeHealthy).Status == corev1.ConditionFalse:
		return verdict{reason: v1.ReasonUnhealthy, message: rev.GetCondition(v1.TypeRuntimeHealthy).Message}
	case ready.Status == corev1.ConditionTrue:
		return verdict{ready: true, reason: v1.ReasonHealthy}
	}
	return verdict{reason: v1.ReasonProgressing}
}
