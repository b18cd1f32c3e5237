package deployment

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
)

// Reasons that pods give.
const (
	// ReasonImage is that of an image that cannot be pulled.
	ReasonImage = "ImagePullFailed"
	// ReasonCrash is that of a program that ends.
	ReasonCrash = "CrashLoop"
	// ReasonUnschedulable is that of a pod that fits on no node.
	ReasonUnschedulable = "Unschedulable"
	// ReasonContainer is that of a container that cannot be made, for example
	// because a secret is missing.
	ReasonContainer = "ContainerFailed"
)

// mostPods is how many pods of a program are looked at.
const mostPods = 20

// explain adds what is wrong with the pods to a state.
func (r *Runtime) explain(ctx context.Context, revision string, s State) (State, error) {
	pods, err := r.podsOf(ctx, revision)
	if err != nil {
		return s, err
	}
	for i := range pods {
		if reason, message := trouble(&pods[i]); reason != "" {
			s.Reason = reason
			s.Message += fmt.Sprintf("; pod %s: %s", pods[i].Name, message)
			return s, nil
		}
	}
	return s, nil
}

// podsOf lists pods of a revision, the newest first: what they are like counts.
func (r *Runtime) podsOf(ctx context.Context, revision string) ([]corev1.Pod, error) {
	var pods corev1.PodList
	err := r.Pods.List(ctx, &pods, client.InNamespace(r.Namespace), client.MatchingLabels{v1.LabelRevision: revision}, client.Limit(mostPods))
	if err != nil {
		return nil, apply.ErrServer.New(err, "list the pods of %s", revision)
	}
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return pods.Items, nil
}

// trouble is what keeps a pod from being ready, or nothing. It does not change with
// every attempt to start the pod, so that conditions do not either.
func trouble(p *corev1.Pod) (reason, message string) {
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if reason, message := containerTrouble(c); reason != "" {
			return reason, fmt.Sprintf("container %s: %s", c.Name, message)
		}
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return ReasonUnschedulable, cmp.Or(c.Message, c.Reason)
		}
	}
	if p.Status.Phase == corev1.PodFailed {
		return ReasonCrash, cmp.Or(p.Status.Message, p.Status.Reason, "the pod failed")
	}
	return "", ""
}

func containerTrouble(c corev1.ContainerStatus) (reason, message string) {
	if w := c.State.Waiting; w != nil {
		switch w.Reason {
		case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed":
			return ReasonImage, cmp.Or(w.Message, w.Reason)
		case "CrashLoopBackOff":
			return ReasonCrash, ended(c.LastTerminationState.Terminated)
		case "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
			return ReasonContainer, cmp.Or(w.Message, w.Reason)
		}
	}
	if t := c.State.Terminated; t != nil && t.ExitCode != 0 {
		return ReasonCrash, ended(t)
	}
	return "", ""
}

// ended tells how a program ended.
func ended(t *corev1.ContainerStateTerminated) string {
	switch {
	case t == nil:
		return "it ends again and again"
	case t.Reason == "OOMKilled":
		return "it was ended because it used more memory than its limit"
	case t.Signal != 0:
		return fmt.Sprintf("it was ended by signal %d", t.Signal)
	case t.Message != "":
		return fmt.Sprintf("it ended with code %d: %s", t.ExitCode, t.Message)
	}
	return fmt.Sprintf("it ended with code %d", t.ExitCode)
}
