package deployment

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
)

// Reasons that derive from pods, in addition to the reasons that all runtimes share.
const (
	// ReasonImage is the reason for an image that cannot be pulled.
	ReasonImage = "ImagePullFailed"
	// reasonPodFailed is the reason of a pod that its node or the cluster terminated.
	reasonPodFailed = "PodFailed"
	// reasonUnschedulable is the reason for a pod that fits on no node.
	reasonUnschedulable = "Unschedulable"
	// ReasonContainer is the reason for a container that cannot be created, for example
	// because a secret is missing.
	ReasonContainer = "ContainerFailed"
)

// restartMemory is the time after a restart during which a container counts as crashed.
const restartMemory = time.Minute

// mostPods is the maximum number of pods of a runtime that are inspected.
const mostPods = 20

// explain adds the problem of the newest pod that has one to a state. A Deployment that
// is available while it rolls out a change is not available when a new pod has a problem.
func (r *Runtime) explain(ctx context.Context, o manifests.Objects, s runtime.State) (runtime.State, error) {
	pods, err := r.podsOf(ctx, o.Owner.Revision.Name)
	if err != nil {
		return s, err
	}
	for i := range pods {
		reason, message := trouble(&pods[i], r.now())
		if reason == "" {
			continue
		}
		if s.Available {
			s.Available, s.Message = false, fmt.Sprintf("Deployment %s rolls out a change", o.Deployment.Name)
		}
		s.Reason, s.Log = reason, lastWords(&pods[i])
		s.Message += fmt.Sprintf("; pod %s: %s", pods[i].Name, message)
		return s, nil
	}
	if s.Reason == reasonUnavailable && slices.ContainsFunc(pods, isReady) {
		s.Reason = runtime.ReasonStarting
		s.Message = fmt.Sprintf(
			"the runtime has started, and is available when it has run for %ds without a restart",
			o.Deployment.Spec.MinReadySeconds,
		)
	}
	return s, nil
}

func (r *Runtime) now() time.Time {
	if r.Now == nil {
		return time.Now()
	}
	return r.Now()
}

// podsOf lists up to mostPods pods of a revision, newest first: the newest ones determine the
// state.
func (r *Runtime) podsOf(ctx context.Context, revision string) ([]corev1.Pod, error) {
	if len(revision) > validation.LabelValueMaxLength {
		return nil, nil // No pod can have this label.
	}
	var pods corev1.PodList
	err := r.Pods.List(ctx, &pods, client.InNamespace(r.Namespace), client.MatchingLabels{
		v1.LabelRevision: revision,
	}, client.Limit(mostPods))
	if err != nil {
		return nil, apply.ErrServer.New(err, "list the pods of %s", revision)
	}
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return pods.Items, nil
}

// trouble returns the reason why a pod is not available, or empty strings. The result does not
// change with each restart, so that conditions do not change either. A pod that is being deleted or
// evicted has no trouble, because the cluster replaces it.
func trouble(p *corev1.Pod, now time.Time) (reason, message string) {
	if p.DeletionTimestamp != nil || isTrue(p, corev1.DisruptionTarget) {
		return "", ""
	}
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if reason, message := containerTrouble(c, now); reason != "" {
			return reason, fmt.Sprintf("container %s: %s", c.Name, message)
		}
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return reasonUnschedulable, cmp.Or(c.Message, c.Reason)
		}
	}
	if p.Status.Phase == corev1.PodFailed {
		return reasonPodFailed, cmp.Or(p.Status.Message, p.Status.Reason, "the pod failed")
	}
	for _, c := range p.Status.ContainerStatuses {
		if c.State.Running != nil && !c.Ready && (c.Started == nil || *c.Started) {
			return runtime.ReasonNotServing, fmt.Sprintf("container %s: it runs, and its readiness probe fails", c.Name)
		}
	}
	return "", ""
}

func isReady(p corev1.Pod) bool { return p.DeletionTimestamp == nil && isTrue(&p, corev1.PodReady) }

func isTrue(p *corev1.Pod, t corev1.PodConditionType) bool {
	return slices.ContainsFunc(
		p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == t && c.Status == corev1.ConditionTrue },
	)
}

func containerTrouble(c corev1.ContainerStatus, now time.Time) (reason, message string) {
	if w := c.State.Waiting; w != nil {
		switch w.Reason {
		case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError",
			"RegistryUnavailable", "SignatureValidationFailed":
			return ReasonImage, cmp.Or(w.Message, w.Reason)
		case "CrashLoopBackOff":
			return crash(c.RestartCount, c.LastTerminationState.Terminated)
		case "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
			return ReasonContainer, cmp.Or(w.Message, w.Reason)
		}
	}
	if t := c.State.Terminated; t != nil && t.ExitCode != 0 {
		return crash(c.RestartCount, t)
	}
	if run, t := c.State.Running, c.LastTerminationState.Terminated; run != nil && t != nil &&
		now.Sub(run.StartedAt.Time) < restartMemory {
		return crash(c.RestartCount, t)
	}
	return "", ""
}

// crash returns the reason and the message for a container that exited, and empty strings for a
// container that ended with its node.
func crash(restarts int32, t *corev1.ContainerStateTerminated) (reason, message string) {
	if t != nil && (t.Reason == "ContainerStatusUnknown" || t.Reason == "Unknown") {
		return "", ""
	}
	return runtime.CrashReason(int(restarts)), exited(t)
}

// lastWords returns what the containers of a pod that exited wrote last.
func lastWords(p *corev1.Pod) string {
	var out []string
	for _, c := range p.Status.ContainerStatuses {
		for _, t := range []*corev1.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
			if t != nil && t.Message != "" {
				out = append(out, t.Message)
			}
		}
	}
	return strings.Join(out, "\n")
}

// exited returns a description of how a container ended.
func exited(t *corev1.ContainerStateTerminated) string {
	switch {
	case t == nil:
		return "it keeps exiting"
	case t.Reason == "OOMKilled":
		return "it was killed because it used more memory than its limit"
	case t.Signal != 0:
		return fmt.Sprintf("it was ended by signal %d", t.Signal)
	case t.Message != "" && !strings.Contains(t.Message, "\n"): // Several lines are the end of the log.
		return fmt.Sprintf("it exited with code %d: %s", t.ExitCode, t.Message)
	}
	return fmt.Sprintf("it exited with code %d", t.ExitCode)
}
