package fromcore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/migration"
	"github.com/xpkg-dev/xpkg/internal/origin"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
)

// packagesStep waits until the manager has taken over all packages.
func (m *Migration) packagesStep(s *snapshot) *migration.Step {
	step := &migration.Step{Title: "Move " + wording.Count(len(s.packages), "package"), Done: s.unmoved().reasons == nil}
	for _, p := range s.packages {
		if p.forecast != "" {
			step.Details = append(step.Details, fmt.Sprintf("%s (%s): %s", p.Name(), p.PackageSpec().Package, p.forecast))
		}
	}
	step.Run = func(ctx context.Context, report migration.Report) error {
		if err := m.waitMoved(ctx, s.namespace, report); err != nil {
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

const (
	// lookupLimit is the time limit of all lookups of tags for a plan, and lookups the maximum number of concurrent ones.
	lookupLimit = 15 * time.Second
	lookups     = 8
)

// forecast predicts for each package that the manager has not taken over whether its revision stays. The manager looks
// up the tags again.
func (m *Migration) forecast(ctx context.Context, s *snapshot) {
	ctx, cancel := context.WithTimeout(ctx, lookupLimit)
	defer cancel()
	var group errgroup.Group
	group.SetLimit(lookups)
	for i := range s.packages {
		if p := &s.packages[i]; unmoved(p.Package).reason != "" {
			group.Go(func() error {
				p.forecast = m.forecastOf(ctx, p.Package)
				return nil
			})
		}
	}
	_ = group.Wait() // No function fails.
}

// forecastOf describes what becomes of the revision of a package: the manager keeps the one that core named after the
// content to which the reference resolves.
func (m *Migration) forecastOf(ctx context.Context, p migration.Package) string {
	packages := state.Packages{
		Content: m.Content, Origins: origin.Finder{Reader: m.Client, Namespace: m.Manager.Namespace},
		Namespace: m.Manager.Namespace,
	}
	resolved, err := packages.Resolve(ctx, p.Package, p.Revisions, state.ResolveOptions{})
	if err == nil {
		err = resolved.LookupError
	}
	if err != nil {
		return fmt.Sprintf(
			"its revision stays if its tag still refers to the content that Crossplane installed; it cannot be looked up here: %v",
			err,
		)
	}
	name := revision.Name(p.Package, resolved.Digest.String(), p.Revisions)
	switch current := p.Revision(name); {
	case current == nil:
		return fmt.Sprintf(
			"gets the new revision %s, as by an update: its tag refers to %s now, which Crossplane has not installed", name,
			resolved.Digest,
		)
	case !revision.IsActive(current):
		return fmt.Sprintf("the revision %s stays, and is not active", name)
	}
	return fmt.Sprintf("the revision %s and its runtime stay", name)
}

// left are the packages that the manager has not taken over.
type left struct {
	// reasons are the packages with the reason of each, and nil without any.
	reasons []string
	// blocked reports that none of them can continue without a user.
	blocked bool
}

// String returns the reasons, or some of many.
func (l left) String() string { return wording.Few(l.reasons, shownReasons, "; ") }

// shownReasons is the maximum number of packages in a message.
const shownReasons = 5

// unmoved returns the packages that the manager has not taken over.
func (s *snapshot) unmoved() left {
	out := left{blocked: true}
	for _, p := range s.packages {
		if state := unmoved(p.Package); state.reason != "" {
			out.reasons = append(out.reasons, p.Name()+": "+state.reason)
			out.blocked = out.blocked && state.blocked
		}
	}
	return out
}

// progress is the state of a package that the manager has not taken over. The reason is empty for other packages.
type progress struct {
	reason string
	// blocked reports that the package waits for a permission of the manager.
	blocked bool
}

// unmoved returns the reason why the manager has not taken over a package. A package that the manager has taken over is
// healthy, or waits for the activation of a revision; its current revision has a digest, which core does not record;
// and no revision has the finalizer of core.
func unmoved(p migration.Package) progress {
	current := p.Revision(p.PackageStatus().CurrentRevision)
	healthy, installed := p.GetCondition(v1.TypeHealthy), p.GetCondition(v1.TypeInstalled)
	switch {
	case current == nil || current.RevisionSpec().Digest == "":
		return progress{reason: cmp.Or(p.GetCondition(v1.TypeReady).Message, "the manager has not taken it over")}
	case healthy.ObservedGeneration != p.GetGeneration():
		return progress{reason: "the manager has not reconciled it"}
	case installed.Status == corev1.ConditionFalse && installed.Reason == v1.ReasonInactive:
	case healthy.Status != corev1.ConditionTrue:
		denied := string(revision.Summarize(current).Reason) == rbac.ErrPermissionMissing.Name
		return progress{reason: cmp.Or(healthy.Message, "it is not healthy"), blocked: denied}
	}
	if slices.ContainsFunc(
		p.Revisions, func(rev v1.PackageRevision) bool { return slices.Contains(rev.GetFinalizers(), v1.FinalizerRevision) },
	) {
		return progress{reason: "a revision has the finalizer " + v1.FinalizerRevision}
	}
	return progress{}
}

// blockedReads is the number of reads in a row after which packages that wait for permissions count as blocked: the
// manager notices permissions that a user has just granted within seconds.
const blockedReads = 20

// waitMoved waits until the manager has taken over all packages. It fails with MigrationBlocked if all others keep
// waiting for permissions of the manager.
func (m *Migration) waitMoved(ctx context.Context, namespace string, report migration.Report) error {
	blocked := 0
	err := migration.Wait(ctx, pollInterval, report, func(ctx context.Context) (string, error) {
		packages, err := migration.ListPackages(ctx, m.Client)
		if err != nil {
			return "", err
		}
		s := &snapshot{}
		for _, p := range packages {
			s.packages = append(s.packages, installed{Package: p})
		}
		left := s.unmoved()
		if len(left.reasons) == 0 {
			return "", nil
		}
		if blocked++; !left.blocked {
			blocked = 0
		}
		if blocked == blockedReads {
			return "", migration.ErrBlocked.New(nil, "the manager lacks permissions: %s", left)
		}
		return "packages that the manager has not taken over: " + left.String(), nil
	})
	return migration.Explain(
		err, "Correct the reasons. `xpkg doctor --namespace %s` checks the manager and the packages.", namespace,
	)
}

// outcome returns what became of a package: whether its revision and its runtime stayed.
func (m *Migration) outcome(ctx context.Context, before installed) (string, error) {
	revisions, err := state.RevisionsOf(ctx, m.Client, before.Package.Package)
	if err != nil {
		return "", err
	}
	active := migration.Package{Package: before.Package.Package, Revisions: revisions}.Active()
	if active == nil {
		return before.Name() + ": no active revision", nil
	}
	line := fmt.Sprintf("%s: the new revision %s", before.Name(), active.GetName())
	if former := before.Revision(active.GetName()); former != nil && former.GetUID() == active.GetUID() {
		line = fmt.Sprintf("%s: the revision %s stayed", before.Name(), active.GetName())
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
