package operation

import (
	"cmp"
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
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

// Plan plans each step on the assumption that the previous steps are done, and puts the steps in the order in which they can be carried
// out. It fails if a step is refused, or if the lock file contradicts the content of a package; it returns the steps that are refused then:
// several ones if each of them is in conflict with what remains when all others are planned.
func (o Operation) Plan(ctx context.Context, steps []*Step) ([]*Step, error) {
	changes := slices.DeleteFunc(slices.Clone(steps), (*Step).isDone)
	pending, what := len(changes), "the changes of "+wording.Count(len(changes), "package")
	if pending == 1 {
		what = "to " + changes[0].String()
	}
	progress := o.Task("planning %s", what)
	defer progress.End()
	planned := 0
	pl := *o.Planner
	pl.Reader = origin.ListOnce(pl.Reader)
	options := o.Options
	options.ChangedTogether, options.ShowMaintained = map[string]bool{}, o.DryRun || len(steps) == 1
	for _, s := range steps {
		options.ChangedTogether[inventory.ShortName(s.Subject())] = !s.Same
		if s.Remove {
			options.RemovedTogether = append(options.RemovedTogether, s.Live)
		}
	}
	releases := released{}
	// A new version can have a dependency that the installed one does not have, so a step that is refused is planned again after the
	// others, until none of them can be planned.
	var refused error
	for next, deferred := 0, 0; next < len(steps); {
		s := steps[next]
		if s.isDone() {
			next++
			continue
		}
		progress.Step(planned, pending, ": to "+s.String())
		p, err := fileutil.Await(ctx, func() (*planner.Plan, error) { return s.makePlan(ctx, &pl, options) })
		if err = PlanError(err, s.String()); IsPlanUnavailable(err, s.Want) && !o.NeedsPlan && !s.Remove {
			progress.End()
			o.PlanUnavailable(err)
			return nil, nil
		}
		if s.Remove && o.Yes && !o.OnlyOrphans && IsPlanUnavailable(err, nil) {
			planned, next = planned+1, next+1
			continue // The user has agreed to all consequences.
		}
		if err == nil && s.Live != nil && !s.Remove {
			err = CheckRead(p, s.Live)
		}
		if err == nil && s.Live == nil && p.Operation != planner.Install {
			err = existsError(p, s.Want)
		}
		if err == nil {
			if err = p.RefusalError(); o.DryRun && (len(steps) == 1 || errors.Is(err, planner.ErrMaintained)) {
				err = nil // The plan shows it.
			}
		}
		waits := err == nil && !s.Remove && p.WaitsForDependencies()
		if err == nil && o.Agree != nil {
			err = o.Agree(p)
		}
		if err == nil && s.Locked != nil {
			err = truthful(s, p)
		}
		if deferred == 0 {
			refused = err
		}
		if (waits || err != nil && isConflict(err)) && deferred < pending-planned-1 {
			copy(steps[next:], steps[next+1:])
			steps[len(steps)-1] = s
			deferred++
			continue
		}
		if err != nil {
			s.Plan = p
			if isConflict(err) {
				return steps[next:], cmp.Or(refused, err)
			}
			return steps[next : next+1], cmp.Or(refused, err)
		}
		planned++
		next, deferred = next+1, 0
		s.Plan = p
		if options.Pin && !s.Remove { // The next plans assume what is saved.
			if s.Want, err = p.Wanted(); err != nil {
				return steps[next-1 : next], err
			}
		}
		options.After = s.follow(options.After)
		releases.record(s)
	}
	return nil, nil
}

// isConflict reports whether a step is refused because of other packages or objects, so that it can be planned after other steps.
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

// record adds the objects that a step releases, and sets the steps that must be carried out before it: it changes objects that they release.
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
