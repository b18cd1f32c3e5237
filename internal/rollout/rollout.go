// Package rollout applies manifests, and waits until Deployments are rolled out by the rules of `kubectl rollout
// status`.
package rollout

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/wording"
)

// progressDeadlineExceeded is the reason of the condition Progressing of a Deployment that exceeded its progress
// deadline.
const progressDeadlineExceeded = "ProgressDeadlineExceeded"

// Missing returns the reason why a Deployment is not rolled out, or "". It fails if the Deployment has exceeded its
// progress deadline.
func Missing(d *appsv1.Deployment) (string, error) {
	want, s := ptr.Deref(d.Spec.Replicas, 1), d.Status
	for _, c := range s.Conditions {
		if c.Type == appsv1.DeploymentProgressing && c.Reason == progressDeadlineExceeded &&
			s.ObservedGeneration >= d.Generation {
			return "", errors.New(c.Message)
		}
	}
	switch {
	case d.Generation == 0 || s.ObservedGeneration < d.Generation:
		return "the cluster has not observed the change yet", nil
	case s.UpdatedReplicas < want:
		return fmt.Sprintf("%d of %d new pods have been created", s.UpdatedReplicas, want), nil
	case s.Replicas > s.UpdatedReplicas:
		return wording.Count(int(s.Replicas-s.UpdatedReplicas), "former pod") + " not deleted yet", nil
	case s.AvailableReplicas < s.UpdatedReplicas:
		return fmt.Sprintf("%d of %d new pods are available", s.AvailableReplicas, s.UpdatedReplicas), nil
	}
	return "", nil
}

// Incomplete is the error of a Deployment that is not rolled out in time, or that has exceeded its progress deadline.
type Incomplete struct {
	Deployment client.ObjectKey
	// Reason is why the Deployment is not rolled out.
	Reason string
}

func (e *Incomplete) Error() string {
	return fmt.Sprintf("Deployment %s is not rolled out: %s", e.Deployment, e.Reason)
}

// pollInterval is the interval between reads of a Deployment.
const pollInterval = time.Second

// Wait waits until a Deployment is rolled out. It fails with Incomplete at the deadline of the context, and at once if
// the Deployment has exceeded its progress deadline.
func Wait(ctx context.Context, reader client.Reader, key client.ObjectKey) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	missing := "the cluster does not respond"
	for {
		d := &appsv1.Deployment{}
		err := reader.Get(ctx, key, d)
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("read Deployment %s: %w", key, err)
		}
		if err == nil {
			if missing, err = Missing(d); err != nil {
				return &Incomplete{key, err.Error()}
			}
			if missing == "" {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return &Incomplete{key, missing}
			}
			return ctx.Err()
		case <-tick.C:
		}
	}
}
