package operation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apiserver"
	"github.com/xpkg-dev/xpkg/internal/generation"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// returnWait is the time in which packages that were returned to their former version become healthy again, and in
// which a deleted package is gone that is created again.
const returnWait = time.Minute

// change is a package that an operation has written.
type change struct {
	// before is nil for a new package, and after for one that was deleted.
	before, after v1.Package
	// transaction is the mark of the transaction that has made the change, or empty.
	transaction string
}

// named returns the package for messages.
func (c *change) named() string {
	if c.after == nil {
		return inventory.ShortName(c.before)
	}
	return inventory.ShortName(c.after)
}

// String describes the change that undo makes.
func (c *change) String() string {
	switch {
	case c.before == nil:
		return c.named() + " was deleted"
	case c.after == nil:
		return c.named() + " was created again"
	}
	return fmt.Sprintf("%s was returned to %s", c.named(), c.before.PackageSpec().Package)
}

// isUntouched reports whether a package is still as the operation has written it: no client has replaced or changed it,
// applied it without a change, or taken it out of the transaction. An update increments the generation at most once.
func (c *change) isUntouched(live v1.Package) bool {
	var writers []metav1.ManagedFieldsEntry
	generation := int64(1)
	if c.before != nil {
		generation, writers = c.before.GetGeneration()+1, c.before.GetManagedFields()
	}
	isNew := func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager != plan.FieldManager && e.Subresource == "" &&
			!slices.ContainsFunc(writers, func(w metav1.ManagedFieldsEntry) bool {
				return w.Manager == e.Manager && w.Operation == e.Operation && w.Time.Equal(e.Time)
			})
	}
	return live.GetUID() == c.after.GetUID() && live.GetGeneration() <= generation &&
		revision.TransactionOf(live) == c.transaction &&
		!slices.ContainsFunc(live.GetManagedFields(), isNew)
}

// tryUndo deletes a new package unless it is being deleted, writes the former spec of another one, or creates a deleted
// one again. It returns false if another client has changed or replaced the package, or has deleted one that existed
// before. It fails with a conflict if the package is written meanwhile.
func (c *change) tryUndo(ctx context.Context, cluster client.Client) (bool, error) {
	if c.after == nil {
		return true, c.recreate(ctx, cluster)
	}
	live, err := inventory.Get(ctx, cluster, c.after.PackageKind(), c.after.GetName())
	switch {
	case err != nil:
		return false, err
	case live == nil || c.before == nil && inventory.IsDeleting(live):
		return c.before == nil, nil
	case !c.isUntouched(live):
		return false, nil
	}
	w := writer{Client: cluster}
	if c.before == nil {
		err = apiserver.Classify(w.delete(ctx, live, revision.OnDelete{}), "delete %s", c.named())
	} else {
		if c.transaction != "" {
			w.transaction = returned(c.transaction)
		}
		c.restore(live)
		err = apiserver.Classify(w.update(ctx, live), "return %s to %s", c.named(), c.before.PackageSpec().Package)
	}
	return err == nil, err
}

// recreate creates a deleted package as it was, when its deletion has ended. Its custom resources were deleted with it.
func (c *change) recreate(ctx context.Context, cluster client.Client) error {
	ctx, cancel := context.WithTimeout(ctx, returnWait)
	defer cancel()
	for {
		live, err := inventory.Get(ctx, cluster, c.before.PackageKind(), c.before.GetName())
		if err != nil {
			return err
		}
		if live == nil {
			break
		}
		if !inventory.IsDeleting(live) {
			return nil // Another client has created it, and decides what it is.
		}
		select {
		case <-ctx.Done():
			return ErrStillGoing.New(nil, "%s is still being deleted", c.named())
		case <-time.After(pollInterval):
		}
	}
	p := v1.NewPackage(c.before.PackageKind())
	p.SetName(c.before.GetName())
	p.SetLabels(c.before.GetLabels())
	p.SetAnnotations(c.before.GetAnnotations())
	setSpec(p, c.before)
	return apiserver.Classify(
		writer{Client: cluster, transaction: returned(c.transaction)}.create(ctx, p), "create %s again", c.named(),
	)
}

// restore sets the former spec of a package that existed before the change, its former consents, and whether it is a
// dependency.
func (c *change) restore(live v1.Package) {
	setSpec(live, c.before)
	live.SetLabels(restored(live.GetLabels(), c.before.GetLabels(), generation.Labels()))
	live.SetAnnotations(restored(live.GetAnnotations(), c.before.GetAnnotations(), append(
		generation.Annotations(), revision.AnnotationRolledBackFrom,
	)))
}

// restored returns a map with the former values of the keys.
func restored(live, former map[string]string, keys []string) map[string]string {
	out := maps.Clone(live)
	for _, key := range keys {
		value, ok := former[key]
		switch {
		case !ok:
			delete(out, key)
		case out == nil:
			out = map[string]string{key: value}
		default:
			out[key] = value
		}
	}
	return out
}

// setSpec sets the spec of a package to that of another one.
func setSpec(p, from v1.Package) {
	*p.PackageSpec() = *from.PackageSpec()
	if r := p.RuntimeSpec(); r != nil {
		*r = *from.RuntimeSpec()
	}
}

// planUndo plans the uninstall of a new package, or the return of another one to its former version and settings.
func (e *Engine) planUndo(ctx context.Context, c *change) (*planner.Plan, error) {
	if c.before == nil {
		return e.Planner.Uninstall(ctx, c.after, planner.Options{})
	}
	want := c.after.DeepCopyObject().(v1.Package)
	c.restore(want)
	return e.Planner.Install(ctx, want, planner.Options{})
}

// isUsed reports whether the undoing of the change would delete custom resources, or break another package or an
// install object, or whether this is not known. Undone are the changes that are undone already, whose requirements do
// not count. It fails with NotInstalled for a new package that does not exist any more. A package is returned to its
// former version if the return cannot be planned.
func (c *change) isUsed(ctx context.Context, plan planUndoFunc, undone []*change) (bool, error) {
	if c.after == nil {
		return false, nil
	}
	p, err := plan(ctx, c)
	if err != nil && c.before != nil {
		return false, nil //nolint:nilerr // The registry may have the former version no more, but the cache of the manager has it.
	}
	if err != nil {
		return false, PlanError(err, "uninstall "+c.named())
	}
	resources, uncounted := p.CountCustomResources()
	isBroken := slices.ContainsFunc(p.Breaks, func(b planner.Broken) bool {
		return !slices.ContainsFunc(undone, func(u *change) bool {
			return u.after != nil && u.after.PackageKind() == b.Kind && u.after.GetName() == b.Name
		})
	})
	return resources > 0 || uncounted > 0 || isBroken, nil
}

// planUndoFunc plans the undoing of a change.
type planUndoFunc func(context.Context, *change) (*planner.Plan, error)

// undoUnlessUsed undoes the change unless the package is used. It checks the use again for each attempt.
func (e *Engine) undoUnlessUsed(
	ctx context.Context, plan planUndoFunc, c *change, undone []*change,
) (used, isUndone bool, err error) {
	err = apiserver.RetryOnConflict(func() (err error) {
		if used, err = c.isUsed(ctx, plan, undone); err == nil && !used {
			isUndone, err = c.tryUndo(ctx, e.Client)
		}
		return err
	})
	return used, isUndone, err
}

// undoing is what became of the changes of a failed transaction.
type undoing struct {
	undone []*change
	// kept are new packages with custom resources or dependents, and required those whose new version another package
	// requires: the user has not consented to these consequences. Changed are packages that another client has changed or
	// deleted since.
	kept, required, changed []string
}

// undo undoes changes, the last one first. After an error, it returns what it has undone.
func (e *Engine) undo(ctx context.Context, plan planUndoFunc, changes []*change) (out undoing, err error) {
	for _, c := range slices.Backward(changes) {
		used, isUndone, err := e.undoUnlessUsed(ctx, plan, c, out.undone)
		switch {
		case errors.Is(err, planner.ErrNotInstalled):
		case err != nil:
			return out, err
		case used && c.before == nil:
			out.kept = append(out.kept, c.named())
		case used:
			out.required = append(out.required, c.named())
		case !isUndone:
			out.changed = append(out.changed, c.named())
		default:
			out.undone = append(out.undone, c)
		}
	}
	return out, nil
}

// isComplete reports whether all changes were undone.
func (u undoing) isComplete() bool { return len(u.kept)+len(u.required)+len(u.changed) == 0 }

// advise adds to the error of a failed transaction what was undone, and what was not.
func (u undoing) advise(why error, all []*change) *errcode.Error {
	failed := errcode.From(why)
	advice := adviseUndone(failed.Do, u.undone) + " "
	if errors.Is(why, ErrWait) {
		advice = adviseCause(all)
	}
	if len(u.kept) > 0 {
		names := strings.Join(u.kept, ", ")
		advice += "New packages with custom resources or dependents stay: " + names +
			"; to delete them together, run `xpkg uninstall " +
			strings.Join(u.kept, " ") + "`. "
	}
	if len(u.required) > 0 {
		advice += "Packages stay at the new version that other packages require now: " + strings.Join(u.required, ", ") +
			"; see `xpkg tree`. "
	}
	if len(u.changed) > 0 {
		advice += "Packages that another client has changed or deleted meanwhile were left as they are: " +
			strings.Join(u.changed, ", ") + ". "
	}
	if len(u.undone) == 0 {
		return failed.WithDo("%sNothing was undone.", advice)
	}
	if u.isComplete() {
		advice += "All changes"
	} else {
		advice += "All other changes"
	}
	var undone []string
	stay := ""
	for _, c := range u.undone {
		undone = append(undone, c.String())
		if c.before != nil && c.after != nil {
			stay = " CRDs that only the new version of a returned package contains stay, with their custom resources."
		}
	}
	return failed.WithDo("%s were undone: %s.%s", advice, strings.Join(undone, ", "), stay)
}

// adviseUndone returns the advice for a failure whose change is undone: the package has no failed revision any more to
// approve, or to return from.
func adviseUndone(do string, changes []*change) string {
	for _, c := range changes {
		if c.after == nil {
			continue
		}
		if code, _, _ := failureOf(c.after); code.Approval {
			return "Repeat the command without --atomic. Then review what the package waits for, and approve it, with `xpkg approve " +
				c.named() + "`."
		}
		do = strings.TrimSuffix(do, adviseRollback(c.after))
	}
	return do
}

// adviseCause returns the advice after a wait that has failed: what the undone changes leave of the logs of their
// runtimes.
func adviseCause(changes []*change) string {
	for _, c := range changes {
		if c.after == nil || !runtime.IsRuntimeFailure(string(c.after.GetCondition(v1.TypeReady).Reason)) {
			continue
		}
		if c.before == nil {
			return "Repeat the command without --atomic to keep the runtime, and read its log with `xpkg logs " + c.named() +
				"`. "
		}
		name := c.after.PackageStatus().CurrentRevision
		return "The cause is in the log of " + name + ": on a control plane of `xpkg up`, read it with `xpkg logs " + name +
			"`; in a cluster, repeat the command without --atomic to keep the runtime. "
	}
	return "Correct the cause above and try again. "
}

// notHealthyAgain waits until the packages that were healthy before their changes are healthy again, and returns a
// sentence about those that are not. It does not wait for paused packages, which the manager has not changed.
func (e *Engine) notHealthyAgain(ctx context.Context, changes []*change) string {
	ctx, cancel := context.WithTimeout(ctx, returnWait)
	defer cancel()
	progress := e.Progress()
	defer progress.End()
	var names []string
	for _, c := range changes {
		if c.before == nil || c.after == nil || v1.IsPaused(c.before) ||
			c.before.GetCondition(v1.TypeHealthy).Status != corev1.ConditionTrue {
			continue
		}
		progress.Set("waiting until %s is healthy again", c.named())
		if waitHealthy(ctx, e.Client, c.before.DeepCopyObject().(v1.Package), progress) != nil {
			names = append(names, c.named())
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf(" Not healthy again yet: %s; see `xpkg tree`.", strings.Join(names, ", "))
}

// undoError returns the error of an operation whose undoing failed too: what was undone before, and what was not.
func undoError(why, err error, undone, all []*change) error {
	var before, rest []string
	for _, c := range all {
		if slices.Contains(undone, c) {
			before = append(before, c.String())
		} else {
			rest = append(rest, c.named())
		}
	}
	failed, done := errcode.From(why), ""
	if len(before) > 0 {
		done = " Undone before: " + strings.Join(before, ", ") + "."
	}
	return failed.Also(
		"The undoing failed: %s.%s Not undone: %s; see `xpkg describe %s`.", errcode.From(err).Error(), done,
		strings.Join(rest, ", "), rest[len(rest)-1],
	)
}
