package deployment

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/xpkg-dev/xpkg/internal/runtime"
)

// Reasons of runtimes that are not available.
const (
	// reasonUnavailable is the reason for a Deployment with too few ready pods.
	reasonUnavailable = "Unavailable"
	// reasonStuck is the reason for a Deployment whose rollout makes no progress.
	reasonStuck = "ProgressDeadlineExceeded"
	// reasonNoAccount is the reason for a Deployment whose ServiceAccount does not exist.
	reasonNoAccount = "ServiceAccountNotFound"
	// ReasonNameInUse is the reason for a Deployment whose name the Deployment of another revision
	// has.
	ReasonNameInUse = "NameInUse"
	// ReasonTerminating is the reason for a Deployment that is being deleted.
	ReasonTerminating = "Terminating"
	// ReasonReplacing is the reason for a Deployment that is being recreated.
	ReasonReplacing = "Replacing"
)

// stateOf returns the state of a Deployment from its conditions. A Deployment with zero replicas is
// available; a Deployment without the condition Available is not.
func stateOf(d *appsv1.Deployment) runtime.State {
	if ptr.Deref(d.Spec.Replicas, 1) == 0 {
		return runtime.State{Available: true}
	}
	if d.Status.ObservedGeneration < d.Generation {
		return runtime.State{
			Reason: runtime.ReasonNotReported, Message: fmt.Sprintf("Deployment %s has no status yet", d.Name),
		}
	}
	if c := conditionOf(d, appsv1.DeploymentProgressing); c != nil && c.Status == corev1.ConditionFalse {
		return runtime.State{Reason: reasonStuck, Message: fmt.Sprintf("Deployment %s: %s", d.Name, c.Message)}
	}
	c := conditionOf(d, appsv1.DeploymentAvailable)
	switch {
	case c == nil:
		return runtime.State{
			Reason: runtime.ReasonNotReported, Message: fmt.Sprintf("Deployment %s has no condition Available yet", d.Name),
		}
	case c.Status == corev1.ConditionTrue:
		return runtime.State{Available: true, RollingOut: rollingOut(d)}
	}
	if failed := conditionOf(d, appsv1.DeploymentReplicaFailure); failed != nil && failed.Status == corev1.ConditionTrue {
		// The pods could not be created: because of a missing ServiceAccount, a quota or
		// a policy.
		c = failed
	}
	return runtime.State{Reason: reasonUnavailable, Message: fmt.Sprintf("Deployment %s: %s", d.Name, c.Message)}
}

// rollingOut reports whether a Deployment still has pods of an earlier specification, or lacks pods
// of the current one, as `kubectl rollout status` does.
func rollingOut(d *appsv1.Deployment) bool {
	return d.Status.UpdatedReplicas < ptr.Deref(d.Spec.Replicas, 1) || d.Status.Replicas > d.Status.UpdatedReplicas
}

func conditionOf(d *appsv1.Deployment, t appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	for i := range d.Status.Conditions {
		if d.Status.Conditions[i].Type == t {
			return &d.Status.Conditions[i]
		}
	}
	return nil
}

func heldBy(d *appsv1.Deployment, revision string) runtime.State {
	return runtime.State{
		HeldBy: revision, Reason: ReasonNameInUse,
		Message: fmt.Sprintf(
			"Deployment %s still belongs to %s, and the configuration sets the same name for both", d.Name, revision,
		),
	}
}

func terminating(d *appsv1.Deployment) runtime.State {
	return runtime.State{Reason: ReasonTerminating, Message: fmt.Sprintf("Deployment %s is being deleted", d.Name)}
}

func replacing(d *appsv1.Deployment) runtime.State {
	return runtime.State{
		Reason: ReasonReplacing, Message: fmt.Sprintf("Deployment %s has another selector and is being recreated", d.Name),
	}
}
