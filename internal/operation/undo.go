package operation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apiserver"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/webhooks"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// AtomicWait is the default of [Operation.Wait] for an atomic operation.
const AtomicWait = 5 * time.Minute

// returnWait is the time in which packages that were returned to their former version become healthy again.
const returnWait = time.Minute

// change is a package that a command has written.
type change struct {
	// before is nil for a new package.
	before, after v1.Package
	// written is the state of the package when the command had written it.
	written writtenState
}

// keep removes the marks of the changes that a command does not undo any more.
func (e *Engine) keep(ctx context.Context, changes []*change) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepTime)
	defer cancel()
	for _, c := range changes {
		c.written.release(ctx, e.Client, c.after)
	}
}

// keepTime bounds the time for the removal of marks.
const keepTime = 10 * time.Second

// planUndoFunc plans the undoing of a change.
type planUndoFunc func(context.Context, *change) (*planner.Plan, error)

// planUndo plans the uninstall of a new package, or the return of another one to its former version and settings.
func (e *Engine) planUndo(ctx context.Context, c *change) (*planner.Plan, error) {
	if c.before == nil {
		return e.Planner.Uninstall(ctx, c.after)
	}
	want := c.after.DeepCopyObject().(v1.Package)
	c.restore(want)
	return e.Planner.Install(ctx, want)
}

// undo returns the error of a failed operation. If the operation is atomic, it first undoes the changes, the last one first. It keeps new packages that
// have custom resources, or that another package requires, and new versions that another package requires: the user has not consented to
// these consequences. It keeps what another client has changed since.
func (o Operation) undo(waiting context.Context, plan planUndoFunc, why error, changes []*change) error {
	var returned []*change
	defer func() {
		o.keep(waiting, slices.DeleteFunc(changes, func(c *change) bool { return slices.Contains(returned, c) }))
	}()
	if !o.Atomic || len(changes) == 0 {
		return why
	}
	// The changes are also undone if the user interrupts the wait.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(waiting), time.Minute)
	defer cancel()
	var undone, kept, required, changed []string
	for i, c := range slices.Backward(changes) {
		used, isUndone, err := o.undoUnlessUsed(ctx, plan, c, returned)
		if errors.Is(err, planner.ErrNotInstalled) {
			continue // The wait has deleted the package again, and its error states that.
		}
		if err == nil && used {
			if c.before == nil {
				kept = append(kept, inventory.ShortName(c.after))
			} else {
				required = append(required, inventory.ShortName(c.after))
			}
			continue
		}
		if err != nil {
			return undoError(why, err, undone, changes[:i+1])
		}
		if !isUndone {
			changed = append(changed, inventory.ShortName(c.after))
			continue
		}
		undone, returned = append(undone, c.String()), append(returned, c)
	}
	if len(undone)+len(kept)+len(required)+len(changed) == 0 {
		return why
	}
	failed := errcode.From(why)
	advice := adviseUndone(failed.Do, returned) + " "
	switch {
	case errors.Is(why, ErrWait):
		advice = adviseCause(changes)
	case errors.Is(why, context.Canceled):
		failed, advice = errcode.ErrInterrupted.New(nil, "stopped"), ""
	case errors.Is(why, errcode.ErrInterrupted):
		advice = ""
	}
	if len(kept) > 0 {
		advice += "New packages with custom resources or dependents stay: " + strings.Join(kept, ", ") + "; to delete them together, run `xpkg uninstall " + strings.Join(kept, " ") + "`. "
	}
	if len(required) > 0 {
		advice += "Packages stay at the new version that other packages require now: " + strings.Join(required, ", ") + "; see `xpkg tree`. "
	}
	if len(changed) > 0 {
		advice += "Packages that another client has changed or deleted meanwhile were left as they are: " + strings.Join(changed, ", ") + ". "
	}
	if len(kept)+len(required)+len(changed) > 0 {
		if len(undone) == 0 {
			return failed.WithDo("%sNothing was undone.", advice)
		}
		advice += "All other changes"
	} else {
		advice += "All changes"
	}
	stay := ""
	if slices.ContainsFunc(returned, func(c *change) bool { return c.before != nil }) {
		stay = " CRDs that only the new version of a returned package contains stay, with their custom resources."
	}
	return failed.WithDo("%s were undone: %s.%s%s", advice, strings.Join(undone, ", "), stay, o.notHealthyAgain(waiting, returned))
}

// undoError returns the error of a command whose undoing failed too: what was undone before, and what was not.
func undoError(why, err error, undone []string, rest []*change) error {
	var names []string
	for _, c := range rest {
		names = append(names, inventory.ShortName(c.after))
	}
	failed, before := errcode.From(why), ""
	if len(undone) > 0 {
		before = " Undone before: " + strings.Join(undone, ", ") + "."
	}
	return failed.WithDo("%s The undoing failed: %s.%s Not undone: %s; see `xpkg describe %s`.", failed.Do, errcode.From(err).Error(), before, strings.Join(names, ", "), names[len(names)-1])
}

// adviseUndone returns the advice for a failure whose change is undone: the package has no failed revision any more to approve, or to return
// from.
func adviseUndone(do string, changes []*change) string {
	for _, c := range changes {
		if code, _, _, _ := failureOf(c.after); code.Approval {
			return "Repeat the command without --atomic. Then review what the package waits for, and approve it, with `xpkg approve " + inventory.ShortName(c.after) + "`."
		}
		do = strings.TrimSuffix(do, adviseRollback(c.after))
	}
	return do
}

// adviseCause returns the advice after a wait that has failed: what the undone changes leave of the logs of their runtimes.
func adviseCause(changes []*change) string {
	for _, c := range changes {
		name := c.after.PackageStatus().CurrentRevision
		switch {
		case !runtime.IsRuntimeFailure(string(c.after.GetCondition(v1.TypeReady).Reason)):
		case c.before == nil:
			return "Repeat the command without --atomic to keep the runtime, and read its log with `xpkg logs " + inventory.ShortName(c.after) + "`. "
		default:
			return "The cause is in the log of " + name + ": on a control plane of `xpkg up`, read it with `xpkg logs " + name + "`; in a cluster, repeat the command without --atomic to keep the runtime. "
		}
	}
	return "Correct the cause above and try again. "
}

// notHealthyAgain waits until the packages that were healthy before their changes are healthy again, and returns a sentence about
// those that are not. It does not wait for paused packages, which the manager has not changed, and if the user interrupts the command.
func (e *Engine) notHealthyAgain(ctx context.Context, changes []*change) string {
	ctx, cancel := context.WithTimeout(ctx, returnWait)
	defer cancel()
	progress := e.Progress()
	defer progress.End()
	var names []string
	for _, c := range changes {
		if c.before == nil || v1.IsPaused(c.before) || c.before.GetCondition(v1.TypeHealthy).Status != corev1.ConditionTrue {
			continue
		}
		name := inventory.ShortName(c.before)
		progress.Set("waiting until %s is healthy again", name)
		if waitHealthy(ctx, e.Client, c.before.DeepCopyObject().(v1.Package), progress) != nil {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf(" Not healthy again yet: %s; see `xpkg tree`.", strings.Join(names, ", "))
}

// String describes the change that undo makes.
func (c *change) String() string {
	if c.before == nil {
		return inventory.ShortName(c.after) + " was deleted"
	}
	return fmt.Sprintf("%s was returned to %s", inventory.ShortName(c.after), c.before.PackageSpec().Package)
}

// isUsed reports whether the undoing of the change would delete custom resources, or break another package or an install object, or whether
// this is not known. Undone are the changes that are undone already, whose requirements do not count. It fails with NotInstalled for a new
// package that does not exist any more. A package is returned to its former version if the return cannot be planned.
func (c *change) isUsed(ctx context.Context, plan planUndoFunc, undone []*change) (bool, error) {
	p, err := plan(ctx, c)
	if err != nil && c.before != nil {
		return false, nil //nolint:nilerr // The registry may have the former version no more, but the cache of the manager has it.
	}
	if err != nil {
		return false, PlanError(err, "uninstall "+inventory.ShortName(c.after))
	}
	resources, uncounted := p.CountCustomResources()
	isBroken := slices.ContainsFunc(p.Breaks, func(b planner.Broken) bool {
		return !slices.ContainsFunc(undone, func(u *change) bool {
			return u.after.PackageKind() == b.Kind && u.after.GetName() == b.Name
		})
	})
	return resources > 0 || uncounted > 0 || isBroken, nil
}

// undoUnlessUsed undoes the change unless the package is used. It checks the use again for each attempt.
func (e *Engine) undoUnlessUsed(ctx context.Context, plan planUndoFunc, c *change, undone []*change) (used, isUndone bool, err error) {
	err = apiserver.RetryOnConflict(func() (err error) {
		if used, err = c.isUsed(ctx, plan, undone); err == nil && !used {
			isUndone, err = c.tryUndo(ctx, e.Client)
		}
		return err
	})
	return used, isUndone, err
}

// undo undoes the change of a package that is not used.
func (c *change) undo(ctx context.Context, cluster client.Client) (isUndone bool, err error) {
	err = apiserver.RetryOnConflict(func() (err error) {
		isUndone, err = c.tryUndo(ctx, cluster)
		return err
	})
	return isUndone, err
}

// tryUndo deletes a new package, or writes the former spec of another one. It returns false if another client has changed or replaced the
// package, or has deleted one that existed before. It fails with a conflict if the package is written meanwhile.
func (c *change) tryUndo(ctx context.Context, cluster client.Client) (bool, error) {
	live, err := inventory.Get(ctx, cluster, c.after.PackageKind(), c.after.GetName())
	switch {
	case err != nil:
		return false, err
	case live == nil:
		return c.before == nil, nil
	case !c.written.matches(live):
		return false, nil
	}
	err = c.write(ctx, cluster, live)
	return err == nil, err
}

// write deletes a new package, or writes the former spec, if the package is still as it was read.
func (c *change) write(ctx context.Context, cluster client.Client, live v1.Package) error {
	w := newWriter(cluster, false)
	if c.before == nil {
		return apiserver.Classify(w.delete(ctx, live), "delete %s", inventory.ShortName(c.after))
	}
	c.restore(live)
	return apiserver.Classify(w.update(ctx, live), "return %s to %s", inventory.ShortName(c.before), c.before.PackageSpec().Package)
}

// restore sets the former spec of a package that existed before the change, its former consents, and whether it is a dependency. It leaves
// the consents that another client has changed since.
func (c *change) restore(live v1.Package) {
	*live.PackageSpec() = *c.before.PackageSpec()
	if r := live.RuntimeSpec(); r != nil {
		*r = *c.before.RuntimeSpec()
	}
	c.written.restoreLabels(live, c.before, graph.LabelAutoInstalled)
	c.written.restoreAnnotations(live, c.before,
		graph.AnnotationRequiredBy, graph.AnnotationKindProviders, webhooks.AnnotationAllowed, revision.AnnotationAdopt, revision.AnnotationRolledBackFrom)
	revision.SetUndo(live, "")
}
