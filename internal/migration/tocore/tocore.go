// Package tocore moves the packages of a cluster from the manager back to Crossplane core.
//
// The manager first gives revisions the names that core computes, and replaces their runtimes without an interruption.
// Then it is stopped. Objects get the owners that they have in core, and lose the annotations, labels and finalizers of
// the manager. Core takes the packages when its fence is removed. Until the manager is removed, a step undoes none of
// the earlier ones, so that a migration can stop after each.
package tocore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/migration"
	"github.com/xpkg-dev/xpkg/internal/wording"
)

// Options are the cluster of a migration and the namespace of the manager.
type Options struct {
	Client    client.Client
	Namespace string
	// Now is the clock; nil means time.Now. Poll is the pause between two reads while a step waits; zero means one second.
	Now  func() time.Time
	Poll time.Duration
}

// mover carries out the steps.
type mover struct{ Options }

// Plan returns the plan that gives the packages of a cluster back to core. It fails with MigrationRefused if the state
// of packages or of the manager prevents that.
func Plan(ctx context.Context, o Options) (*migration.Plan, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Poll == 0 {
		o.Poll = time.Second
	}
	m := &mover{o}
	s, err := m.read(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	return m.plan(ctx, s)
}

func (m *mover) plan(ctx context.Context, s *snapshot) (*migration.Plan, error) {
	given, err := m.pending(ctx, s)
	if err != nil {
		return nil, err
	}
	removed, err := m.remaining(ctx)
	if err != nil {
		return nil, err
	}
	kinds, err := m.kindsSteps(ctx, s)
	if err != nil {
		return nil, err
	}
	names := s.renames()
	plan := &migration.Plan{Notes: s.notes()}
	plan.Steps = []*migration.Step{
		{
			Title: "Name the revisions as Crossplane core does",
			Details: append(
				details(names),
				"The runtime of a renamed revision is replaced by one of the same image; both run until the new one is available.",
			),
			Done: s.named(), Run: m.rename,
		},
		{
			Title:   "Stop the manager",
			Details: []string{fmt.Sprintf("Deployment %s/%s gets no replicas. Runtimes run.", m.Namespace, managerName)},
			Done:    s.managerStopped(), Run: m.stop,
		},
		{
			Title: "Give the objects of the packages back",
			Details: append(
				details(given),
				"Core's owners replace those of the manager; annotations, labels and finalizers of xpkg.dev are removed.",
			),
			Done: len(given) == 0 && s.managerStopped() || s.coreManages(), Run: m.giveBack,
		},
		{
			Title: "Let Crossplane core manage packages",
			Details: []string{
				s.fenceDetail(),
				"Core runs package runtimes again, and its RBAC manager runs.",
			},
			Done: s.coreManages(), Run: m.enableCore,
		},
		{
			Title:   "Wait until core has every package healthy",
			Details: []string{wording.Count(len(s.families), "package")},
			Done:    s.coreManages() && s.unhealthy() == "", Run: m.waitHealthy,
		},
		{Title: "Remove the manager", Details: details(removed), Done: len(removed) == 0, Run: m.remove},
	}
	// Core must know the active kinds before it manages the packages.
	plan.Steps = slices.Insert(plan.Steps, 3, kinds...)
	return plan, nil
}

// details lists at most ten texts.
func details(all []string) []string {
	const most = 10
	if len(all) <= most {
		return all
	}
	return append(append([]string{}, all[:most]...), fmt.Sprintf("and %d more", len(all)-most))
}
