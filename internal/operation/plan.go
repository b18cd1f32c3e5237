package operation

import (
	"cmp"
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/activation"
	"github.com/xpkg-dev/xpkg/internal/apiserver"
	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/origin"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// Plan puts the steps in the order in which they can be carried out, and plans each on the assumption that the previous
// steps are done. It fails if a step is refused, or if the lock file contradicts the content of a package, and returns
// the steps that are refused: steps that are in conflict with other packages do not end the planning.
func (o Operation) Plan(ctx context.Context, steps []*Step) (refused []*Step, err error) {
	var pending []*Step
	var places []int
	for i, s := range steps {
		if !s.isDone() {
			pending, places = append(pending, s), append(places, i)
		}
	}
	what := "the changes of " + wording.Count(len(pending), "package")
	if len(pending) == 1 {
		what = "to " + pending[0].String()
	}
	progress := o.Task("planning %s", what)
	defer progress.End()
	pl := *o.Planner
	pl.Reader = origin.ListOnce(pl.Reader)
	if pending, err = o.sequence(ctx, &pl, pending); err != nil {
		return nil, PlanError(err, "make "+what)
	}
	for i, s := range pending {
		steps[places[i]] = s
	}
	options := o.Options
	options.ChangedTogether, options.ShowMaintained = map[string]bool{}, o.DryRun || len(steps) == 1
	for _, s := range steps {
		options.ChangedTogether[inventory.ShortName(s.Subject())] = !s.Same
		if s.Remove {
			options.RemovedTogether = append(options.RemovedTogether, s.Live)
		}
		if len(s.uses.Kinds) > 0 {
			by := activation.ByConfiguration(s.Want.GetName())
			options.Uses = append(options.Uses, activation.Use{By: by, Kinds: s.uses.Kinds})
		}
	}
	releases := released{}
	for i, s := range pending {
		progress.Step(i, len(pending), ": to "+s.String())
		p, failed := fileutil.Await(ctx, func() (*planner.Plan, error) { return s.makePlan(ctx, &pl, options) })
		failed = PlanError(failed, s.String())
		switch {
		case IsPlanUnavailable(failed, s.Want) && !o.NeedsPlan && !s.Remove:
			progress.End()
			o.PlanUnavailable(failed)
			return nil, nil
		case IsPlanUnavailable(failed, nil) && s.Remove && o.Yes && !o.OnlyOrphans:
			continue // The user has agreed to all consequences.
		}
		if failed == nil {
			failed = o.check(s, p, len(steps))
		}
		s.Plan = p
		if failed != nil {
			refused, err = append(refused, s), cmp.Or(err, failed)
			if !isConflict(failed) {
				return []*Step{s}, failed
			}
			options.ChangedTogether[inventory.ShortName(s.Subject())] = false
			continue
		}
		if options.Pin && !s.Remove { // The next plans assume what is saved.
			if s.Want, failed = p.Wanted(); failed != nil {
				return []*Step{s}, failed
			}
		}
		options.After = s.follow(options.After)
		releases.record(s)
	}
	if o.Transaction == "" {
		o.ask(ctx, steps)
	}
	return refused, err
}

// check returns the reason why the plan of a step is refused.
func (o Operation) check(s *Step, p *planner.Plan, steps int) error {
	switch {
	case s.Remove:
	case s.Live != nil:
		if err := CheckRead(p, s.Live); err != nil {
			return err
		}
	case p.Operation != planner.Install:
		return existsError(p, s.Want)
	}
	// A dry run shows why a plan is refused.
	if err := p.RefusalError(); err != nil && (!o.DryRun || steps > 1 && !errors.Is(err, planner.ErrMaintained)) {
		return err
	}
	if o.Agree != nil {
		if err := o.Agree(p); err != nil {
			return err
		}
	}
	if s.Locked != nil {
		return truthful(s, p)
	}
	return nil
}

// isConflict reports whether a step is refused because of other packages or objects, so that it can be planned after
// other steps.
func isConflict(err error) bool { return errcode.From(err).Code.Class.Name == errcode.Conflict.Name }

// IsRefusal reports whether an error concerns the package of a step alone, so that others can be updated.
func IsRefusal(err error) bool {
	return isConflict(err) || errcode.From(err).Code.Class.Name == errcode.Invalid.Name
}

// truthful compares the lock file with the dependencies of the content in the plan.
func truthful(s *Step, p *planner.Plan) error {
	if s.Want.PackageSpec().SkipDependencyResolution {
		return nil // The plan does not contain the dependencies.
	}
	var needs []dependency.Dependency
	var kinds []dependency.KindRef
	for _, d := range p.Dependencies {
		if k, err := dependency.ParseKindRef(d.CRD); err == nil {
			kinds = append(kinds, k)
			continue
		}
		needs = append(needs, dependency.Dependency{Package: d.Package, Constraint: d.Constraint, Optional: d.Optional})
	}
	return s.Locked.Matches(s.Locked.Kind, needs, kinds)
}

// PlanError returns the error of a failed plan with its code.
func PlanError(err error, what string) error {
	var known *errcode.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	return apiserver.Classify(err, "cannot plan to %s", what)
}

// IsPlanUnavailable reports whether a plan failed because this command lacks access that
// the manager may have: the network, the credentials or the package cache.
func IsPlanUnavailable(err error, want v1.Package) bool {
	if err == nil || errors.Is(err, apiserver.ErrCluster) {
		return false
	}
	switch errcode.From(err).Code.Class.Name {
	case errcode.Unavailable.Name, errcode.Unauthorized.Name:
		return true
	case errcode.NotFound.Name:
		return want != nil && want.PackageSpec().PackagePullPolicy == corev1.PullNever
	}
	return false
}

// released has the steps that release objects.
type released map[plan.Ref]*Step

// record adds the objects that a step releases, and sets the steps that must be carried out before it: it changes
// objects that they release.
func (r released) record(s *Step) {
	if s.Remove {
		return
	}
	s.after = nil
	for _, c := range s.Plan.Objects.Changes {
		if by := r[c.Ref]; by != nil {
			s.after = append(s.after, by)
		}
		if c.Action == plan.Release {
			r[c.Ref] = s
		}
	}
}
