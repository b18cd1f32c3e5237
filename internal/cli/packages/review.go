package packages

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/plantext"
	"github.com/xpkg-dev/xpkg/internal/cli/report"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/operation"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// review shows the changes of packages as one plan, asks once, and carries them out.
type review struct {
	dryRun bool
	// one reports whether the command changes one package: it prints the package or its plan then, in place of a list.
	one  bool
	wait time.Duration
	// needsPlan makes the operation fail if a step cannot be planned here. Otherwise it continues without a plan.
	needsPlan bool
	// asksToRemove makes every uninstall need consent, not only one that deletes custom resources.
	asksToRemove bool
	// isNew reports whether the command creates a package, which it does also for a user who may not list packages.
	isNew bool
	// onlyOrphans limits the removals to packages that are orphans when they are removed, also with --yes.
	onlyOrphans bool
	// verb names the change of an installed package, and consents are those that the command gives.
	verb string
	consents
	// save writes and prints the plans of a dry run. It is nil for --dry-run.
	save *planOutput
	// show prints the steps of a dry run in place of their plans. It can be nil.
	show func([]*operation.Step) error
	// others returns the steps of an update of the named packages alone. It is set if the user has selected all packages,
	// instead of naming them.
	others func(env *terminal.Env, names []string) ([]*operation.Step, error)
	atomicFlag
	terminal.ConsentFlag
	connection.ClusterFlags
	view.OutputFlag
}

// change carries out the steps that a function returns for the installed packages.
func (r review) change(
	env *terminal.Env, f planFlags, steps func(*clusterPlanner, *inventory.Inventory) ([]*operation.Step, error),
) (err error) {
	if r.save != nil {
		if err := r.save.check(); err != nil {
			return err
		}
	}
	pl, err := f.open(env, r.ClusterFlags)
	if err != nil {
		return err
	}
	pl.Pin = r.save != nil
	defer func() { err = cmp.Or(err, pl.close()) }()
	for {
		all, err := inventory.LoadNamed(env.Context, pl.Client)
		if r.isNew && operation.IsPlanUnavailable(err, nil) {
			all, err = &inventory.Inventory{}, nil
		}
		if err != nil {
			return err
		}
		changes, err := steps(pl, all)
		if err != nil {
			return err
		}
		if r.dryRun {
			return r.run(env, pl, changes)
		}
		o := r.operation(env, pl)
		t, err := o.Unfinished(env.Context, changes)
		if err != nil {
			return err
		}
		if t == nil {
			return r.run(env, pl, changes)
		}
		if done, err := o.Follow(env.Context, t); err != nil || o.Starts(t) {
			return r.report(env)(done, err)
		}
	}
}

// operation returns the operation of the command. Messages are written to the standard error of env.
func (r review) operation(env *terminal.Env, pl *clusterPlanner) operation.Operation {
	engine := *pl.Engine
	engine.Reporter = report.To(env.Stderr)
	o := operation.Operation{
		Engine: &engine, Options: pl.Options, Wait: r.limit(r.wait), Atomic: r.Atomic, DryRun: r.dryRun,
		NeedsPlan: r.needsPlan, OnlyOrphans: r.onlyOrphans, Yes: r.Yes, Cause: env.Command(),
	}
	if !r.Yes && !r.dryRun && !r.one && !env.Interactive() {
		o.Agree = consentError
	}
	return o
}

// run carries out the steps.
func (r review) run(env *terminal.Env, pl *clusterPlanner, steps []*operation.Step) error {
	if err := r.plan(env, pl, steps); err != nil {
		return err
	}
	if r.dryRun {
		return r.preview(env, steps)
	}
	if err := r.consent(env, steps); err != nil {
		return err
	}
	return r.carryOut(env, r.operation(env, pl), steps)
}

// carryOut carries out the steps to which the user has agreed, and prints their packages.
func (r review) carryOut(env *terminal.Env, o operation.Operation, steps []*operation.Step) error {
	if err := o.Check(env.Context, steps); err != nil {
		return err
	}
	return r.report(env)(o.Run(env.Context, steps))
}

// report returns a function that prints the packages of an operation, if it has not failed before, and returns its
// error.
func (r review) report(env *terminal.Env) func([]*operation.Done, error) error {
	return func(done []*operation.Done, err error) error {
		if waits, ok := errors.AsType[*operation.Waits](err); ok {
			view.Notes(env.Stderr, "the manager continues without this command; see its state with `"+waits.Command()+"`")
			return r.Print(env.Stdout, waits.Transaction, func(w io.Writer) {
				fmt.Fprintln(w, terminal.Safe(waits.Error()))
			})
		}
		if err != nil && (done == nil || r.one) {
			return err
		}
		return cmp.Or(err, r.print(env, done))
	}
}

// print prints the packages of the steps.
func (r review) print(env *terminal.Env, done []*operation.Done) error {
	var objects []v1.Package
	for _, d := range done {
		objects = append(objects, d.Object)
	}
	value := inventory.List(objects)
	if r.one && len(objects) == 1 {
		value = inventory.WithoutManagedFields(objects[0])
	}
	return r.Print(env.Stdout, value, func(w io.Writer) {
		for _, d := range done {
			line := inventory.ShortName(d.Object) + " " + d.Word
			if !d.Remove {
				line += " (" + d.Object.PackageSpec().Package + ")"
			}
			fmt.Fprintln(w, terminal.Safe(line))
		}
	})
}

// plan plans the steps. If an update of all packages is refused, the error names the packages that can be updated.
func (r review) plan(env *terminal.Env, pl *clusterPlanner, steps []*operation.Step) error {
	plan := r.planner(pl)
	refused, err := plan(env, steps)
	if err == nil || r.others == nil || !operation.IsRefusal(err) {
		if r.one && errors.Is(err, planner.ErrMaintained) && steps[0].Plan != nil {
			writePlans(env.Stderr, []*planner.Plan{steps[0].Plan})
		}
		for _, s := range steps {
			// Only the consents and the version that the user names are changed.
			s.Same = s.Same || r.one && s.Plan != nil && !s.Plan.WritesPackage()
		}
		return err
	}
	var names []string
	for _, s := range steps {
		if !s.Same && !slices.Contains(refused, s) {
			names = append(names, inventory.ShortName(s.Subject()))
		}
	}
	return r.adviseOthers(env, err, names, plan)
}

// planFunc plans steps. With an error, it returns those that it refuses.
type planFunc func(*terminal.Env, []*operation.Step) (refused []*operation.Step, err error)

// planner returns the function that plans steps with a planner.
func (r review) planner(pl *clusterPlanner) planFunc {
	return func(env *terminal.Env, steps []*operation.Step) ([]*operation.Step, error) {
		return r.operation(env, pl).Plan(env.Context, steps)
	}
}

// adviseOthers adds to the refusal of an update of all packages the command that updates the named ones, without those
// that are refused too. It plans this update, so that the command works.
func (r review) adviseOthers(env *terminal.Env, why error, names []string, plan planFunc) error {
	quiet := *env
	quiet.Stderr = &terminal.MessageWriter{Writer: env.Stderr, Quiet: true}
	progress := terminal.StartTask(env.Stderr, "looking for packages that can be updated")
	defer progress.End()
	var refused []string
	for len(names) > 0 {
		steps, err := r.others(&quiet, names)
		if err != nil {
			return why
		}
		failed, err := plan(&quiet, steps)
		if err == nil {
			break
		}
		before := len(names)
		for _, s := range failed {
			name := inventory.ShortName(s.Subject())
			if i := slices.Index(names, name); i >= 0 {
				names, refused = slices.Delete(names, i, i+1), append(refused, name)
			}
		}
		if !operation.IsRefusal(err) || len(names) == before {
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
	return fail.Also("To update the other packages%s run `xpkg update %s`.", cmp.Or(except, ","), strings.Join(names, " "))
}

// preview prints the plans, and ends with the exit code for pending changes.
func (r review) preview(env *terminal.Env, steps []*operation.Step) error {
	if r.show != nil {
		return r.show(steps)
	}
	plans := operation.Plans(steps)
	isLabelled := false
	for _, s := range steps {
		if s.WillBeLabelled() && s.Live != nil {
			isLabelled = true
			fmt.Fprintf(
				env.Stderr,
				"note: %s will be labelled as a dependency, because an install of it as a dependency was interrupted.\n",
				inventory.ShortName(s.Live),
			)
		}
	}
	if r.one && len(plans) == 0 {
		return nil // A note says why.
	}
	o := planOutput{planFormat: planFormat{string(r.Output)}, isDryRun: true}
	if r.save != nil {
		o = *r.save
	}
	err := o.show(env, r.one, plans)
	if err == nil && isLabelled {
		return terminal.ChangesPending
	}
	return err
}

func writePlans(w io.Writer, plans []*planner.Plan) {
	if len(plans) == 0 {
		fmt.Fprintln(w, "Nothing to do.")
		return
	}
	plantext.Write(w, plans...)
}

// consent shows the plans and asks for confirmation. Without a terminal, installed packages that change and custom
// resources that are deleted need --yes.
func (r review) consent(env *terminal.Env, steps []*operation.Step) error {
	var updates, removals []string
	var plans []*planner.Plan
	changes := 0
	for _, s := range steps {
		if s.Same || s.Remove && s.Plan == nil {
			continue
		}
		changes++
		switch name := inventory.ShortName(s.Subject()); {
		case s.Remove:
			removals = append(removals, name)
		case s.Live != nil:
			updates = append(updates, name)
		}
		if s.Plan != nil {
			plans = append(plans, s.Plan)
		}
	}
	asks := r.Asks(env) && changes > 0
	isShown := asks || r.one && (len(updates) > 0 || r.consents.given()) && !terminal.IsQuiet(env.Stderr)
	isShown = isShown && len(plans) > 0
	if isShown {
		writePlans(env.Stderr, plans)
	}
	for _, p := range plans {
		if err := p.AnswerError(); err != nil && (r.Yes || !env.Interactive()) {
			return adviseDryRun(env, err)
		}
		if err := consentError(p); err != nil && !r.Yes && !env.Interactive() {
			return err
		}
	}
	if !isShown {
		printNotes(env, plans...)
	}
	switch {
	case r.Yes || changes == 0:
		return nil
	case env.Interactive():
		err := env.Confirm()
		for _, p := range plans {
			p.AgreeToDelete() // The plan has shown the number.
		}
		return err
	case len(removals) > 0 && r.asksToRemove:
		return r.ask(env, "uninstall "+nameOrCount(removals, "package"))
	case len(updates) == 1:
		without := ""
		if len(plans) < changes {
			without = " without a plan"
		}
		return r.ask(env, cmp.Or(r.verb, "change")+" "+updates[0]+without)
	case len(updates) > 0:
		return r.ask(env, "change "+wording.Count(len(updates), "installed package"))
	}
	return nil
}

// nameOrCount returns the only name, or the number of names.
func nameOrCount(names []string, noun string) string {
	if len(names) == 1 {
		return names[0]
	}
	return wording.Count(len(names), noun)
}

// ask asks for consent. Without a terminal it fails with the command that shows the changes.
func (r review) ask(env *terminal.Env, what string) error {
	return adviseDryRun(env, r.Consent(env, what))
}
