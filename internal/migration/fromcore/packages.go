package fromcore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/migration"
	"github.com/xpkg-dev/xpkg/internal/wording"
)

// packagesStep waits until the manager has taken over all packages.
func (m *Migration) packagesStep(s *state) *migration.Step {
	step := &migration.Step{Title: "Move " + wording.Count(len(s.packages), "package"), Done: s.moved() == nil}
	for _, p := range s.packages {
		if p.unmoved() != "" {
			step.Details = append(step.Details, fmt.Sprintf("%s (%s)", nameOf(p), p.PackageSpec().Package))
		}
	}
	step.Run = func(ctx context.Context, report migration.Report) error {
		if err := m.waitMoved(ctx, s, report); err != nil {
			return err
		}
		step.Details = nil
		for _, p := range s.packages {
			line, err := m.outcome(ctx, p)
			if err != nil {
				return err
			}
			step.Details = append(step.Details, line)
		}
		return nil
	}
	return step
}

// moved returns nil if the manager has taken over all packages. Otherwise it returns an error with the reason for each
// package, or for some of many.
func (s *state) moved() error {
	var reasons []string
	for _, p := range s.packages {
		if why := p.unmoved(); why != "" {
			reasons = append(reasons, nameOf(p)+": "+why)
		}
	}
	if len(reasons) == 0 {
		return nil
	}
	return errors.New(wording.Few(reasons, shownReasons, "; "))
}

// shownReasons is the maximum number of packages in a message.
const shownReasons = 5

// unmoved returns the reason why the manager has not taken over a package, or "". A package that the manager has taken over
// is healthy, or waits for the activation of a revision; its current revision has a digest, which core does not record; and
// no revision has the finalizer of core.
func (in *installed) unmoved() string {
	status := in.PackageStatus()
	i := slices.IndexFunc(in.revisions, func(rev v1.PackageRevision) bool { return rev.GetName() == status.CurrentRevision })
	held := slices.ContainsFunc(in.revisions, func(rev v1.PackageRevision) bool { return slices.Contains(rev.GetFinalizers(), v1.FinalizerRevision) })
	healthy, state := in.GetCondition(v1.TypeHealthy), in.GetCondition(v1.TypeInstalled)
	switch {
	case i < 0 || in.revisions[i].RevisionSpec().Digest == "":
		return cmp.Or(in.GetCondition(v1.TypeReady).Message, "the manager has not taken it over")
	case healthy.ObservedGeneration != in.GetGeneration():
		return "the manager has not reconciled it"
	case state.Status == corev1.ConditionFalse && state.Reason == v1.ReasonInactive:
	case healthy.Status != corev1.ConditionTrue:
		return cmp.Or(healthy.Message, "it is not healthy")
	}
	if held {
		return "a revision has the finalizer " + v1.FinalizerRevision
	}
	return ""
}

// waitMoved waits until the manager has taken over all packages.
func (m *Migration) waitMoved(ctx context.Context, s *state, report migration.Report) error {
	for {
		current, err := m.readPackages(ctx, nil)
		if err != nil && ctx.Err() == nil {
			return err
		}
		if err == nil {
			now := &state{packages: current}
			left := now.moved()
			if left == nil {
				return nil
			}
			report("waiting for packages: %s", left)
			if err = pause(ctx); err == nil {
				continue
			}
			err = left
		}
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return ctx.Err()
		}
		return migration.ErrUnfinished.New(err, "the manager of the namespace %s has not taken over all packages", s.namespace).
			WithDo("Correct the reasons. `xpkg doctor --namespace %s` checks the manager and the packages.", s.namespace)
	}
}

// outcome returns what became of a package: whether its revision and its runtime stayed.
func (m *Migration) outcome(ctx context.Context, before *installed) (string, error) {
	now := before.NewRevisionList()
	if err := m.Client.List(ctx, now, client.MatchingLabels{v1.LabelPackage: before.GetName()}); err != nil {
		return "", fmt.Errorf("list the revisions of %s: %w", nameOf(before), err)
	}
	active := func(rev v1.PackageRevision) bool { return rev.RevisionSpec().DesiredState == v1.RevisionActive }
	i := slices.IndexFunc(now.Revisions(), active)
	if i < 0 {
		return nameOf(before) + ": no active revision", nil
	}
	rev := now.Revisions()[i]
	line := fmt.Sprintf("%s: the new revision %s", nameOf(before), rev.GetName())
	if slices.ContainsFunc(before.revisions, func(r v1.PackageRevision) bool { return r.GetUID() == rev.GetUID() }) {
		line = fmt.Sprintf("%s: the revision %s stayed", nameOf(before), rev.GetName())
	}
	for _, key := range before.deployments {
		err := m.Client.Get(ctx, key, &appsv1.Deployment{})
		switch {
		case err == nil:
			line += fmt.Sprintf(", the Deployment %s stayed", key.Name)
		case !apierrors.IsNotFound(err):
			return "", fmt.Errorf("read Deployment %s: %w", key, err)
		}
	}
	return line, nil
}

// pollInterval is the interval between reads of what a step waits for.
const pollInterval = 500 * time.Millisecond

// pause waits for the interval between two reads. It fails if the context ends.
func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(pollInterval):
		return nil
	}
}
