package operation

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// CarryOut writes the packages of the steps, and waits for them as [Operation.Await] does.
func (o Operation) CarryOut(ctx context.Context, steps []*Step) ([]*Done, error) {
	done, err := o.Write(ctx, steps)
	if err != nil {
		return nil, err
	}
	return o.Await(ctx, done)
}

// Await waits until the packages are healthy or gone, if requested. Packages that were not healthy before, and that the
// operation does not change, are waited for last: Await returns the steps with their error.
func (o Operation) Await(ctx context.Context, done []*Done) ([]*Done, error) {
	concerned, unhealthy := splitUnhealthy(done)
	if err := o.waitFor(ctx, concerned); err != nil {
		return nil, err
	}
	return done, o.waitFor(ctx, unhealthy)
}

// splitUnhealthy separates the packages that were not healthy before the operation and are not changed by it. The
// operation waits for them last, and their failure undoes nothing.
func splitUnhealthy(done []*Done) (concerned, unhealthy []*Done) {
	for _, d := range done {
		if d.Same && d.Live != nil && d.Live.GetCondition(v1.TypeHealthy).Status != corev1.ConditionTrue {
			unhealthy = append(unhealthy, d)
		} else {
			concerned = append(concerned, d)
		}
	}
	return concerned, unhealthy
}

// Done is a step that was carried out.
type Done struct {
	*Step
	// Object is the package after the step, and isNew reports whether the step has created it.
	Object v1.Package
	isNew  bool
	// Word describes the result, such as "created".
	Word string
	// isKept reports whether the package was left as it is, and isAdopted whether it was a dependency and is now installed
	// explicitly.
	isKept, isAdopted bool
	// owned is what a deleted package owned, and deletion what the command waits for.
	owned, deletion deletionSummary
	// isGone reports whether the deleted package is known to be gone.
	isGone bool
}

// Write writes the packages of the steps. After an error, it returns the steps that were carried out.
func (o Operation) Write(ctx context.Context, steps []*Step) ([]*Done, error) {
	w := writer{Client: o.Client, frontend: o.Frontend, transaction: o.Transaction}
	var out []*Done
	waited := false // since the consequences of removals were compared
	for i, s := range steps {
		gone, err := o.awaitDependents(ctx, s, out)
		if err != nil {
			return out, o.notUninstalled(err, steps[i:])
		}
		released, err := o.awaitRelease(ctx, s, out)
		if err != nil {
			return out, err
		}
		if waited = waited || gone || released; waited && s.Remove && o.comparesRemovals(steps[i:]) {
			all, err := inventory.LoadNamed(ctx, o.Client)
			if err == nil {
				err = o.checkRemovals(ctx, all, steps, steps[i:])
			}
			if err != nil {
				return out, o.partlyDone(err, out, steps[i:])
			}
			waited = false
		}
		d := &Done{Step: s, isGone: s.isGone}
		if s.Remove {
			s.asPlanned = !o.Yes || o.OnlyOrphans || o.Transaction != ""
			if d.owned, err = o.newDeletionSummary(ctx, s.Live); err != nil && o.Wait > 0 {
				return out, o.partlyDone(err, out, steps[i:])
			}
			if o.Wait > 0 {
				d.deletion = d.owned
			}
		}
		if err := d.carryOut(ctx, w); err != nil {
			return out, o.partlyDone(err, out, steps[i:])
		}
		if d.isAdopted {
			o.Note(
				"%s was a dependency and is now installed explicitly; xpkg autoremove keeps it.", inventory.ShortName(d.Object),
			)
		}
		out = append(out, d)
	}
	for _, d := range out {
		if d.markDependency {
			if err := labelDependency(ctx, o.Client, d.Object); err != nil {
				return out, err
			}
		}
	}
	return out, nil
}

// groupWait is the time in which the packages of a group must be gone without --wait, before the packages that they
// require are deleted.
const groupWait = 2 * time.Minute

// awaitDependents waits until the packages in the groups before that of a removal are gone. The manager installs a
// missing dependency again for a package that still exists. It reports whether it has waited.
func (o Operation) awaitDependents(ctx context.Context, s *Step, done []*Done) (waited bool, err error) {
	for _, d := range done {
		if !s.Remove || !d.Remove || d.isGone || d.group >= s.group {
			continue
		}
		if err := o.waitGone(ctx, d.Object, d.deletion, cmp.Or(o.wait(), groupWait)); err != nil {
			return true, err
		}
		waited, d.isGone = true, true
	}
	return waited, nil
}

// awaitRelease waits until the packages that release objects to the package of a step are healthy. The manager refuses
// an object that another package still controls. It reports whether it has waited.
func (o Operation) awaitRelease(ctx context.Context, s *Step, done []*Done) (waited bool, err error) {
	for _, d := range done {
		if slices.Contains(s.after, d.Step) {
			waited = true
			if err := o.waitInstalled(ctx, d.Object, cmp.Or(o.wait(), groupWait), false); err != nil {
				failed := errcode.From(err)
				return true, failed.Also(
					"%s takes objects over from it and was not changed yet: run the same command again afterwards.",
					inventory.ShortName(s.Subject()),
				)
			}
		}
	}
	return waited, nil
}

// notUninstalled returns the error of an interrupted operation with the command for the rest of its removals.
func (o Operation) notUninstalled(err error, steps []*Step) error {
	failed := errcode.From(err)
	if o.OnlyOrphans { // The packages can be required until then.
		return failed.Also("Continue afterwards with `xpkg autoremove`.")
	}
	return failed.Also(
		"Uninstall the packages that it required afterwards, with `xpkg uninstall %s`.", strings.Join(removed(steps), " "),
	)
}

// removed returns the names of the packages that steps remove.
func removed(steps []*Step) []string {
	var names []string
	for _, s := range steps {
		if s.Remove {
			names = append(names, inventory.ShortName(s.Live))
		}
	}
	return names
}

// partlyDone returns the error of an operation that failed after some of its steps were carried out. It names these,
// and the command for the rest.
func (o Operation) partlyDone(err error, done []*Done, rest []*Step) error {
	var changed []string
	for _, d := range done {
		if !d.Same {
			changed = append(changed, inventory.ShortName(d.Object)+" was "+d.Word)
		}
	}
	// The changes of an atomic operation are returned.
	if len(changed) == 0 || o.Atomic || errors.Is(err, context.Canceled) {
		return err
	}
	failed := errcode.From(err)
	isStale := slices.ContainsFunc(
		[]error{planner.ErrPlanMoved, planner.ErrDependentsBroken}, func(code error) bool { return errors.Is(err, code) },
	)
	advice := "run the command again: it plans with the current state."
	if names := removed(rest); len(names) > 0 {
		advice = "see `xpkg uninstall " + strings.Join(names, " ") + " --dry-run`."
	}
	if o.OnlyOrphans {
		advice = "see `xpkg autoremove --dry-run`."
	}
	cause := ""
	if !isStale { // The advice of a stale plan is that of an operation that has written nothing.
		cause = failed.Do + " "
	}
	return failed.WithDo("%s%s. For the rest, %s", cause, strings.Join(changed, ", "), advice)
}

// waitFor waits until each package is healthy or deleted, if requested.
func (o Operation) waitFor(ctx context.Context, done []*Done) error {
	outcome := o.outcomesOfWait()
	for _, d := range done {
		switch {
		case o.Wait == 0 && d.Remove:
			o.noteDefinitions(d.owned, d.Object, d.Plan)
		case o.Wait == 0:
		case d.isGone:
			d.Word = "gone"
		case d.Remove:
			if err := o.waitGone(ctx, d.Object, d.deletion, o.wait()); err != nil {
				return err
			}
			d.Word = "gone"
		default:
			if err := o.waitInstalled(ctx, d.Object, o.wait(), d.isNew && len(done) == 1); err != nil {
				return adviseList(err, countWritten(done)-1)
			}
			d.Word = outcome(d.Object)
		}
	}
	return nil
}

// adviseList adds the command that lists the other packages of an operation to the advice of an interrupted wait, which
// names one package.
func adviseList(err error, count int) error {
	if count < 1 || !errors.Is(err, errcode.ErrInterrupted) {
		return err
	}
	failed := errcode.From(err)
	return failed.Also(
		"The command has written %s: `xpkg list --watch` shows all of them.", wording.Count(count, "other package"),
	)
}

// isWritten reports whether the step has created or changed its package.
func (d *Done) isWritten() bool { return !d.isKept && !d.Remove }

func countWritten(done []*Done) int {
	n := 0
	for _, d := range done {
		if d.isWritten() {
			n++
		}
	}
	return n
}
