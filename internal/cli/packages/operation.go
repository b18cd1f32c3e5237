package packages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/packages/undomark"
	"github.com/xpkg-dev/xpkg/internal/cli/plantext"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/origin"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// operation changes several packages: it plans all steps, asks once, and then makes the writes. A step that is refused
// refuses the operation before the first write.
type operation struct {
	dryRun bool
	wait   time.Duration
	// needsPlan makes the operation fail if a step cannot be planned here. Otherwise it continues without a plan.
	needsPlan bool
	// asksToRemove makes every uninstall need consent, not only one that deletes custom resources.
	asksToRemove bool
	// onlyOrphans limits the removals to packages that are orphans when they are removed, also with --yes.
	onlyOrphans bool
	// others returns the steps of an update of the named packages alone. It is set if the user has selected all packages, instead of
	// naming them.
	others func(env *terminal.Env, names []string) ([]*step, error)
	atomicFlag
	terminal.ConsentFlag
	connection.ClusterFlags
	terminal.OutputFlag
}

// change carries out the steps that a function returns for the installed packages.
func (o operation) change(env *terminal.Env, f planFlags, steps func(*clusterPlanner, *inventory.Inventory) ([]*step, error)) (err error) {
	pl, err := f.open(env.Context, o.ClusterFlags)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, pl.close()) }()
	all, err := inventory.LoadNamed(env.Context, pl.client)
	if err != nil {
		return err
	}
	changes, err := steps(pl, all)
	if err != nil {
		return err
	}
	return o.run(env, pl, changes)
}

// run carries out the steps in their order.
func (o operation) run(env *terminal.Env, pl *clusterPlanner, steps []*step) error {
	if err := o.plan(env, pl, steps); err != nil {
		return err
	}
	if o.dryRun {
		return o.preview(env, steps)
	}
	if err := o.consent(env, steps); err != nil {
		return err
	}
	if err := o.checkSteps(env, pl, steps); err != nil {
		return err
	}
	return o.carryOut(env, pl, steps)
}

// plan plans each step on the assumption that the previous steps are done. It fails if a step is refused, or
// if the lock file contradicts the content of a package. A dry run shows the changes of packages that install objects maintain.
func (o operation) plan(env *terminal.Env, pl *clusterPlanner, steps []*step) error {
	refused, err := o.planSteps(env, pl, steps)
	if err == nil || o.others == nil || !isRefusal(err) {
		return err
	}
	var names []string
	for _, s := range steps {
		if !s.same && !slices.Contains(refused, s) {
			names = append(names, inventory.ShortName(s.subject()))
		}
	}
	return o.adviseOthers(env, err, names, o.planner(pl))
}

// planFunc plans steps. With an error, it returns those that it refuses.
type planFunc func(*terminal.Env, []*step) (refused []*step, err error)

// planner returns the function that plans steps with a planner.
func (o operation) planner(pl *clusterPlanner) planFunc {
	return func(env *terminal.Env, steps []*step) ([]*step, error) { return o.planSteps(env, pl, steps) }
}

// planSteps plans the steps as plan does. With an error, it returns the steps that it refuses: several ones if each of them is
// in conflict with what remains when all others are planned.
func (o operation) planSteps(env *terminal.Env, pl *clusterPlanner, steps []*step) ([]*step, error) {
	pending := len(slices.DeleteFunc(slices.Clone(steps), func(s *step) bool { return s.same }))
	progress := terminal.StartTask(env.Stderr, "planning the changes of %s", wording.Count(pending, "package"))
	defer progress.End()
	planned := 0
	foreseen := &overlayReader{Reader: origin.ListOnce(pl.Reader)}
	pl = pl.clone()
	pl.Reader, pl.ChangedTogether, pl.RemovedTogether = foreseen, map[string]bool{}, nil
	objects := &releasedCluster{Cluster: pl.Cluster, owners: map[plan.Ref][]metav1.OwnerReference{}, by: map[plan.Ref]*step{}}
	pl.Cluster = objects
	pl.ShowMaintained = o.dryRun
	for _, s := range steps {
		pl.ChangedTogether[inventory.ShortName(s.subject())] = !s.same
		if s.remove {
			pl.RemovedTogether = append(pl.RemovedTogether, s.live)
		}
	}
	// A new version can have a dependency that the installed one does not have, so a step that is refused is planned again after the
	// others, until none of them can be planned.
	var refused error
	for next, deferred := 0, 0; next < len(steps); {
		s := steps[next]
		if s.same {
			next++
			continue
		}
		progress.Step(planned, pending, ": to "+s.String())
		p, err := terminal.Interruptible(env.Context, func() (*planner.Plan, error) { return s.makePlan(env.Context, pl) })
		if err = planError(err, s.String()); isPlanUnavailable(err, s.want) && !o.needsPlan && !s.remove {
			progress.End()
			printPlanUnavailable(env, err)
			return nil, nil
		}
		if err == nil && s.live != nil && !s.remove {
			err = checkRead(p, s.live)
		}
		if err == nil && s.live == nil && p.Operation != planner.Install {
			err = existsError(p, s.want)
		}
		if err == nil {
			err = p.RefusalError()
		}
		if o.dryRun && errors.Is(err, planner.ErrMaintained) {
			err = nil
		}
		waits := err == nil && !s.remove && p.WaitsForDependencies()
		if err == nil && !o.Yes && !o.dryRun && !env.Interactive() {
			err = consentError(p)
		}
		if err == nil && s.locked != nil {
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
			if isConflict(err) {
				return steps[next:], cmp.Or(refused, err)
			}
			return steps[next : next+1], cmp.Or(refused, err)
		}
		planned++
		next, deferred = next+1, 0
		s.plan = p
		if s.remove {
			foreseen.removed = append(foreseen.removed, s.live)
		} else {
			foreseen.packages = append(foreseen.packages, s.want)
			objects.record(s)
		}
	}
	return nil, nil
}

// isConflict reports whether a step is refused because of other packages or objects, so that it can be planned after other steps.
func isConflict(err error) bool { return errcode.From(err).Code.Class.Name == errcode.Conflict.Name }

// isRefusal reports whether an error concerns the package of a step alone, so that others can be updated.
func isRefusal(err error) bool {
	return isConflict(err) || errcode.From(err).Code.Class.Name == errcode.Invalid.Name
}

// adviseOthers adds to the refusal of an update of all packages the command that updates the named ones, without those that are refused
// too. It plans this update, so that the command works.
func (o operation) adviseOthers(env *terminal.Env, why error, names []string, plan planFunc) error {
	quiet := *env
	quiet.Stderr = &terminal.MessageWriter{Writer: env.Stderr, Quiet: true}
	progress := terminal.StartTask(env.Stderr, "looking for packages that can be updated")
	defer progress.End()
	var refused []string
	for len(names) > 0 {
		steps, err := o.others(&quiet, names)
		if err != nil {
			return why
		}
		failed, err := plan(&quiet, steps)
		if err == nil {
			break
		}
		before := len(names)
		for _, s := range failed {
			name := inventory.ShortName(s.subject())
			if i := slices.Index(names, name); i >= 0 {
				names, refused = slices.Delete(names, i, i+1), append(refused, name)
			}
		}
		if !isRefusal(err) || len(names) == before {
			return why
		}
	}
	if len(names) == 0 {
		return why
	}
	fail, except := errcode.From(why), ""
	if len(refused) > 0 {
		except = " except " + strings.Join(refused, ", ") + ", which would be refused too,"
	}
	return fail.WithDo("%s To update the other packages%s run `xpkg update %s`.", fail.Do, cmp.Or(except, ","), strings.Join(names, " "))
}

// truthful compares the lock file with the dependencies of the content in the plan.
func truthful(s *step, p *planner.Plan) error {
	if s.want.PackageSpec().SkipDependencyResolution {
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
	return s.locked.Matches(s.locked.Kind, needs, kinds)
}

// preview prints the plans, and ends with the exit code for pending changes.
func (o operation) preview(env *terminal.Env, steps []*step) error {
	plans := []*planner.Plan{}
	var broken error
	isLabelled := false
	for _, s := range steps {
		if s.markDependency && s.live != nil {
			isLabelled = true
			fmt.Fprintf(env.Stderr, "note: %s will be labelled as a dependency, because an install of it as a dependency was interrupted.\n", inventory.ShortName(s.live))
		}
		if s.plan != nil {
			plans = append(plans, s.plan)
			if broken == nil {
				broken = adviseYes(s.plan.ConsentError(), toContinue(s.plan, afterDryRun))
			}
		}
	}
	err := o.Print(env.Stdout, plans, func(w io.Writer) error { return writePlans(w, plans) })
	switch {
	case err != nil:
		return err
	case broken != nil:
		return broken
	case len(plans) > 0, isLabelled:
		return terminal.ChangesPending
	}
	return nil
}

func writePlans(w io.Writer, plans []*planner.Plan) error {
	if len(plans) == 0 {
		_, err := io.WriteString(w, "Nothing to do.\n")
		return err
	}
	return plantext.Write(w, plans...)
}

// consent shows the plans and asks for confirmation, as the commands for one package do. Without a terminal, packages
// that change and custom resources that are deleted need --yes.
func (o operation) consent(env *terminal.Env, steps []*step) error {
	changes, updates, removals := 0, 0, 0
	var plans []*planner.Plan
	var resources int64
	var uncounted int
	for _, s := range steps {
		if s.same {
			continue
		}
		changes++
		switch {
		case s.remove:
			removals++
		case s.live != nil:
			updates++
		}
		if s.plan == nil {
			continue
		}
		plans = append(plans, s.plan)
		if s.remove {
			counted, unknown := s.plan.CountCustomResources()
			resources, uncounted = resources+counted, uncounted+unknown
		}
	}
	if !o.Asks(env) {
		for _, p := range plans {
			printNotes(env, p)
		}
	}
	switch {
	case o.Yes || changes == 0:
		return nil
	case env.Interactive():
		if err := writePlans(env.Stderr, plans); err != nil {
			return err
		}
		return env.Confirm()
	case resources > 0 || uncounted > 0:
		return o.ask(env, "uninstall "+wording.Count(removals, "package")+": "+strings.TrimSuffix(plantext.Lost(resources, uncounted), "."))
	case removals > 0 && o.asksToRemove:
		return o.ask(env, "uninstall "+wording.Count(removals, "package"))
	case updates > 0:
		return o.ask(env, "change "+wording.Count(updates, "installed package"))
	}
	return nil
}

// ask asks for consent. Without a terminal it fails with the command that shows the changes.
func (o operation) ask(env *terminal.Env, what string) error {
	return adviseDryRun(env, o.Consent(env, what))
}

// checkSteps fails if a package is not as it was planned with, before the first write, or if the removals have other consequences than
// those that a user was asked about.
func (o operation) checkSteps(env *terminal.Env, pl *clusterPlanner, steps []*step) error {
	load := inventory.LoadPackages
	if o.comparesRemovals(steps) {
		load = inventory.LoadNamed
	}
	all, err := load(env.Context, pl.client)
	if err != nil {
		return err
	}
	for _, s := range steps {
		if s.same {
			if err := s.refresh(all.Named(s.live)); err != nil {
				return err
			}
		}
		if s.plan == nil || s.plan.Operation == planner.Install {
			continue
		}
		if err := planner.MovedError(s.plan, s.plan.CheckPackage(all.Named(s.live))); err != nil {
			return err
		}
	}
	if o.comparesRemovals(steps) {
		return o.checkRemovals(env, pl, all, steps, steps)
	}
	return nil
}

// comparesRemovals reports whether steps remove packages that are compared with their plans. With --yes, the user agrees to all
// consequences of removals, but not to the removal of a package that is no orphan any more.
func (o operation) comparesRemovals(steps []*step) bool {
	return (!o.Yes || o.onlyOrphans) && slices.ContainsFunc(steps, func(s *step) bool { return s.remove && s.plan != nil })
}

// checkRemovals plans the removals among the rest of the steps again, and fails if they would delete more custom resources, or break other
// dependents, than their plans list, or if a dependency that they remove was installed explicitly or is required since: the user agreed to
// the plans alone. All are the installed packages.
func (o operation) checkRemovals(env *terminal.Env, pl *clusterPlanner, all *inventory.Inventory, steps, rest []*step) error {
	present := slices.DeleteFunc(slices.Clone(all.Packages), inventory.IsDeleting)
	all, err := awaitNeeds(env, pl.client, all, present)
	if err != nil {
		return err
	}
	again := map[*step]*step{}
	var removals []*step
	for _, s := range rest {
		if !s.remove || s.plan == nil {
			continue
		}
		now := all.Named(s.live)
		if now == nil || now.GetUID() != s.live.GetUID() || inventory.IsDeleting(now) {
			continue // The manager can have deleted a dependency.
		}
		if err := planner.MovedError(s.plan, planner.CheckDependency(s.live, now)); err != nil {
			return err
		}
		again[s] = &step{live: s.live, remove: true, group: s.group}
		removals = append(removals, again[s])
	}
	if o.onlyOrphans {
		if err := o.checkOrphans(env, pl.client, all, removals); err != nil || o.Yes {
			return err
		}
	}
	if _, err := o.planSteps(env, pl, removals); err != nil {
		return err
	}
	// A dependent that the operation changes too was planned as it is afterwards.
	changes := func(b planner.Broken) bool {
		return slices.ContainsFunc(steps, func(s *step) bool {
			return s.live != nil && s.live.PackageKind() == b.Kind && s.live.GetName() == b.Name
		})
	}
	for _, s := range rest {
		if now := again[s]; now != nil {
			now.plan.Breaks = slices.DeleteFunc(now.plan.Breaks, changes)
			if err := planner.CheckConsequences(s.plan, now.plan); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkOrphans fails if a package that a step removes is no orphan any more, or if this is not known.
func (o operation) checkOrphans(env *terminal.Env, cluster client.Client, all *inventory.Inventory, removals []*step) error {
	names, err := orphans(env.Context, cluster, o.ClusterFlags, all)
	if err != nil {
		return err
	}
	for _, s := range removals {
		if !slices.Contains(names, v1.ObjectName(s.live.PackageKind(), s.live.GetName())) {
			return planner.ErrPlanMoved.New(nil, "the plan to uninstall %s is stale: another package or an install object requires it now", inventory.ShortName(s.live))
		}
	}
	return nil
}

// carryOut writes the objects, and waits for all of them if requested.
func (o operation) carryOut(env *terminal.Env, pl *clusterPlanner, steps []*step) error {
	cluster := pl.client
	done, err := o.write(env, pl, steps)
	concerned, unhealthy := splitUnhealthy(done)
	if err == nil {
		err = o.waitFor(env, cluster, concerned)
	}
	if err != nil {
		return o.undo(env, cluster, pl.planUndo, err, changesOf(done)...)
	}
	keep(env, cluster, changesOf(done)...)
	err = o.waitFor(env, cluster, unhealthy)
	var objects []v1.Package
	for _, d := range done {
		objects = append(objects, d.object)
	}
	printed := o.Print(env.Stdout, inventory.List(objects), func(w io.Writer) error {
		for _, d := range done {
			line := inventory.ShortName(d.object) + " " + d.word
			if !d.remove {
				line += " (" + d.object.PackageSpec().Package + ")"
			}
			if _, err := fmt.Fprintln(w, terminal.Safe(line)); err != nil {
				return err
			}
		}
		return nil
	})
	return cmp.Or(err, printed)
}

// splitUnhealthy separates the packages that were not healthy before the operation and are not changed by it. The operation waits for
// them last, and their failure undoes nothing.
func splitUnhealthy(done []*doneStep) (concerned, unhealthy []*doneStep) {
	for _, d := range done {
		if d.same && d.live != nil && d.live.GetCondition(v1.TypeHealthy).Status != corev1.ConditionTrue {
			unhealthy = append(unhealthy, d)
		} else {
			concerned = append(concerned, d)
		}
	}
	return concerned, unhealthy
}

// doneStep is a step that was carried out.
type doneStep struct {
	*step
	// before is the package before the step, or nil for a new one, and object is the package after it.
	before, object v1.Package
	// written is the state of the object when it was written.
	written undomark.State
	// word describes the result.
	word string
	// owned is what a deleted package owned, and deletion what the command waits for.
	owned, deletion deletionSummary
	// isGone reports whether the deleted package is known to be gone.
	isGone bool
}

// write writes the objects of all steps. After an error, it returns the steps that were carried out.
func (o operation) write(env *terminal.Env, pl *clusterPlanner, steps []*step) ([]*doneStep, error) {
	cluster := pl.client
	var out []*doneStep
	waited := false // since the consequences of removals were compared
	for i, s := range steps {
		gone, err := o.awaitDependents(env, cluster, s, out)
		if err != nil {
			return out, o.notUninstalled(err, steps[i:])
		}
		released, err := o.awaitRelease(env, cluster, s, out)
		if err != nil {
			return out, err
		}
		if waited = waited || gone || released; waited && s.remove && o.comparesRemovals(steps[i:]) {
			all, err := inventory.LoadNamed(env.Context, cluster)
			if err == nil {
				err = o.checkRemovals(env, pl, all, steps, steps[i:])
			}
			if err != nil {
				return out, o.partlyDone(err, out, steps[i:])
			}
			waited = false
		}
		d := &doneStep{step: s}
		if s.remove {
			s.asPlanned = !o.Yes || o.onlyOrphans
			if d.owned, err = newDeletionSummary(env.Context, cluster, s.live); err != nil && o.wait > 0 {
				return out, o.partlyDone(err, out, steps[i:])
			}
			if o.wait > 0 {
				d.deletion = d.owned
			}
		}
		if d.before, d.object, d.word, err = s.carryOut(env.Context, undomark.New(cluster, o.Atomic)); err != nil {
			return out, o.partlyDone(err, out, steps[i:])
		}
		d.written = undomark.StateOf(d.object)
		out = append(out, d)
	}
	for _, d := range out {
		if d.markDependency {
			labelled, err := labelDependency(env.Context, cluster, d.object)
			if err != nil {
				return out, err
			}
			if labelled {
				d.written = d.written.AsDependency()
			}
		}
	}
	return out, nil
}

// groupWait is the time in which the packages of a group must be gone without --wait, before the packages that they require are deleted.
const groupWait = 2 * time.Minute

// awaitDependents waits until the packages in the groups before that of a removal are gone. The manager installs a missing dependency again
// for a package that still exists. It reports whether it has waited.
func (o operation) awaitDependents(env *terminal.Env, cluster client.Client, s *step, done []*doneStep) (waited bool, err error) {
	for _, d := range done {
		if !s.remove || !d.remove || d.isGone || d.group >= s.group {
			continue
		}
		if err := waitGone(env, o.ClusterFlags, cluster, d.object, d.deletion, cmp.Or(o.limit(o.wait), groupWait)); err != nil {
			return true, err
		}
		waited, d.isGone = true, true
	}
	return waited, nil
}

// awaitRelease waits until the packages that release objects to the package of a step are healthy. The manager refuses an object that another
// package still controls. It reports whether it has waited.
func (o operation) awaitRelease(env *terminal.Env, cluster client.Client, s *step, done []*doneStep) (waited bool, err error) {
	for _, d := range done {
		if slices.Contains(s.after, d.step) {
			waited = true
			if err := waitInstalled(env, cluster, d.object, cmp.Or(o.limit(o.wait), groupWait), nil); err != nil {
				failed := errcode.From(err)
				return true, failed.WithDo("%s %s takes objects over from it and was not changed yet: run the same command again afterwards.", failed.Do, inventory.ShortName(s.subject()))
			}
		}
	}
	return waited, nil
}

// notUninstalled returns the error of an interrupted operation with the command for the rest of its removals.
func (o operation) notUninstalled(err error, steps []*step) error {
	failed := errcode.From(err)
	if o.onlyOrphans { // The packages can be required until then.
		return failed.WithDo("%s Continue afterwards with `xpkg autoremove`.", failed.Do)
	}
	return failed.WithDo("%s Uninstall the packages that it required afterwards, with `xpkg uninstall %s`.", failed.Do, strings.Join(removed(steps), " "))
}

// removed returns the names of the packages that steps remove.
func removed(steps []*step) []string {
	var names []string
	for _, s := range steps {
		if s.remove {
			names = append(names, inventory.ShortName(s.live))
		}
	}
	return names
}

// partlyDone returns the error of an operation that failed after some of its steps were carried out. It names these, and the command for
// the rest.
func (o operation) partlyDone(err error, done []*doneStep, rest []*step) error {
	var changed []string
	for _, d := range done {
		if !d.same {
			changed = append(changed, inventory.ShortName(d.object)+" was "+d.word)
		}
	}
	if len(changed) == 0 || errors.Is(err, context.Canceled) {
		return err
	}
	failed := errcode.From(err)
	isStale := slices.ContainsFunc([]error{planner.ErrPlanMoved, planner.ErrDependentsBroken, terminal.ErrNotConfirmed}, func(code error) bool { return errors.Is(err, code) })
	switch {
	case o.Atomic && isStale: // The changes are undone.
		return failed.WithDo("Run the command again: it plans with the current state.")
	case o.Atomic:
		return err
	}
	advice := "run the command again: it plans with the current state."
	if names := removed(rest); len(names) > 0 {
		advice = "see `xpkg uninstall " + strings.Join(names, " ") + " --dry-run`."
	}
	if o.onlyOrphans {
		advice = "see `xpkg autoremove --dry-run`."
	}
	cause := ""
	if !isStale { // The advice of a stale plan is that of an operation that has written nothing.
		cause = failed.Do + " "
	}
	return failed.WithDo("%s%s. For the rest, %s", cause, strings.Join(changed, ", "), advice)
}

// waitFor waits until each package is healthy or deleted, if requested.
func (o operation) waitFor(env *terminal.Env, cluster client.Client, done []*doneStep) error {
	limit, outcome := o.limit(o.wait), outcomesOfWait(env)
	for _, d := range done {
		switch {
		case limit == 0 && d.remove:
			d.owned.noteDefinitions(env, d.object, d.plan)
		case limit == 0:
		case d.isGone:
			d.word = "gone"
		case d.remove:
			if err := waitGone(env, o.ClusterFlags, cluster, d.object, d.deletion, limit); err != nil {
				return err
			}
			d.word = "gone"
		default:
			if err := waitInstalled(env, cluster, d.object, limit, nil); err != nil {
				return adviseList(err, len(changesOf(done))-1)
			}
			d.word = outcome(d.object)
		}
	}
	return nil
}

// adviseList adds the command that lists the other packages of an operation to the advice of an interrupted wait, which names one package.
func adviseList(err error, count int) error {
	if count < 1 || !errors.Is(err, errcode.ErrInterrupted) {
		return err
	}
	failed := errcode.From(err)
	return failed.WithDo("%s The command has written %s: `xpkg list --watch` shows all of them.", failed.Do, wording.Count(count, "other package"))
}

// changesOf returns the packages that steps have written.
func changesOf(done []*doneStep) []*change {
	var out []*change
	for _, d := range done {
		if !d.same && !d.remove {
			out = append(out, &change{before: d.before, after: d.object, written: d.written})
		}
	}
	return out
}

// releasedCluster reads a cluster in which the objects that planned steps release have no controller.
type releasedCluster struct {
	planner.Cluster
	// owners are the owners of the released objects, and by the steps that release them.
	owners map[plan.Ref][]metav1.OwnerReference
	by     map[plan.Ref]*step
}

// record adds the objects that the plan of a step releases, and the steps that must be carried out before it.
func (r *releasedCluster) record(s *step) {
	s.after = nil
	for _, c := range s.plan.Objects.Changes {
		if by := r.by[c.Ref]; by != nil {
			s.after = append(s.after, by)
		}
		if c.Action == plan.Release {
			r.owners[c.Ref], r.by[c.Ref] = c.Owners, s
		}
	}
}

// Metadata implements [planner.Cluster].
func (r *releasedCluster) Metadata(ctx context.Context, refs []plan.Ref) (map[plan.Ref]plan.Live, error) {
	live, err := r.Cluster.Metadata(ctx, refs)
	for ref, owners := range r.owners {
		if l, ok := live[ref]; ok {
			l.Owners = owners
			live[ref] = l
		}
	}
	return live, err
}

// overlayReader reads a cluster in which some packages are replaced by their planned state, and others are removed.
type overlayReader struct {
	client.Reader
	packages, removed []v1.Package
}

// List implements client.Reader.
func (f *overlayReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := f.Reader.List(ctx, list, opts...); err != nil {
		return err
	}
	switch l := list.(type) {
	case *v1.ProviderList:
		l.Items = overlay(l.Items, f.packages, f.removed)
	case *v1.ConfigurationList:
		l.Items = overlay(l.Items, f.packages, f.removed)
	case *v1.FunctionList:
		l.Items = overlay(l.Items, f.packages, f.removed)
	}
	return nil
}

// overlay puts packages of one kind in the place of those with their names, or beside
// them, and leaves out the removed ones.
func overlay[T any, P interface {
	*T
	v1.Package
}](items []T, packages, removed []v1.Package) []T {
	items = slices.DeleteFunc(items, func(item T) bool {
		return slices.ContainsFunc(removed, func(p v1.Package) bool {
			gone, ok := p.(P)
			return ok && gone.GetName() == P(&item).GetName()
		})
	})
	for _, p := range packages {
		wanted, ok := p.(P)
		if !ok {
			continue
		}
		found := false
		for i := range items {
			if P(&items[i]).GetName() == p.GetName() {
				items[i], found = *wanted, true
			}
		}
		if !found {
			items = append(items, *wanted)
		}
	}
	return items
}
