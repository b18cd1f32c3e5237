package deployment

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// State is how the program of a revision does.
type State struct {
	// Available says that it runs as it should, as far as the cluster can tell.
	Available bool
	// Reason is a CamelCase word for why it is not available.
	Reason string
	// Message says the same to a person, with what the cluster reports of the pods.
	Message string
	// HeldBy is the name of the revision whose Deployment has the name that this one
	// wants. It has to go first.
	HeldBy string
}

// Reasons of programs that are not available.
const (
	// ReasonNotReported is that of a Deployment that the cluster has not looked at.
	ReasonNotReported = "NotReported"
	// ReasonUnavailable is that of a Deployment with too few pods that are ready.
	ReasonUnavailable = "Unavailable"
	// ReasonStuck is that of a Deployment whose last change does not come about.
	ReasonStuck = "ProgressDeadlineExceeded"
	// ReasonHeld is that of a name that the Deployment of another revision has.
	ReasonHeld = "NameHeld"
	// ReasonTerminating is that of a Deployment that has not ended yet.
	ReasonTerminating = "Terminating"
	// ReasonReplacing is that of a Deployment that is made anew.
	ReasonReplacing = "Replacing"
)

// stateOf reads the conditions of a Deployment. One that is to have no pods is
// available; one without the condition Available is not.
func stateOf(d *appsv1.Deployment) State {
	if d.Spec.Replicas != nil && *d.Spec.Replicas == 0 {
		return State{Available: true}
	}
	if d.Status.ObservedGeneration < d.Generation {
		return State{Reason: ReasonNotReported, Message: fmt.Sprintf("Deployment %s has no status yet", d.Name)}
	}
	if c := conditionOf(d, appsv1.DeploymentProgressing); c != nil && c.Status == corev1.ConditionFalse {
		return State{Reason: ReasonStuck, Message: fmt.Sprintf("Deployment %s: %s", d.Name, c.Message)}
	}
	c := conditionOf(d, appsv1.DeploymentAvailable)
	switch {
	case c == nil:
		return State{Reason: ReasonNotReported, Message: fmt.Sprintf("Deployment %s has no condition Available yet", d.Name)}
	case c.Status == corev1.ConditionTrue:
		return State{Available: true}
	}
	if failed := conditionOf(d, appsv1.DeploymentReplicaFailure); failed != nil && failed.Status == corev1.ConditionTrue {
		// The pods could not even be created: for want of a ServiceAccount, because
		// of a quota, or of a policy.
		c = failed
	}
	return State{Reason: ReasonUnavailable, Message: fmt.Sprintf("Deployment %s: %s", d.Name, c.Message)}
}

func conditionOf(d *appsv1.Deployment, t appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	for i := range d.Status.Conditions {
		if d.Status.Conditions[i].Type == t {
			return &d.Status.Conditions[i]
		}
	}
	return nil
}

func heldBy(d *appsv1.Deployment, revision string) State {
	return State{
		HeldBy: revision, Reason: ReasonHeld,
		Message: fmt.Sprintf("Deployment %s still belongs to %s, and the configuration gives both the same name", d.Name, revision),
	}
}

func terminating(d *appsv1.Deployment) State {
	return State{Reason: ReasonTerminating, Message: fmt.Sprintf("Deployment %s is being deleted", d.Name)}
}

func replacing(d *appsv1.Deployment) State {
	return State{Reason: ReasonReplacing, Message: fmt.Sprintf("Deployment %s selects pods in another way and is made anew", d.Name)}
}
