package packages

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// ApplyCmd implements `xpkg apply`.
type ApplyCmd struct {
	File string        `arg:"" help:"Plan file that xpkg plan --out wrote, or - for standard input."`
	Wait time.Duration `short:"w" placeholder:"DURATION" help:"Wait this long, such as 2m, until the package is healthy or deleted."`
	Yes  bool          `short:"y" help:"Apply the plan even if it breaks dependencies of other packages."`
	connection.ClusterFlags
	planFlags
	view.OutputFlag
}

// Run carries out saved plans, unless one of them is stale.
func (c *ApplyCmd) Run(env *terminal.Env) (err error) {
	plans, isList, err := readPlans(env, c.File)
	if err != nil {
		return err
	}
	for _, p := range plans {
		if err := p.RefusalError(); err != nil {
			return err
		}
	}
	pl, err := c.open(env, c.ClusterFlags)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, pl.close()) }()
	pl.Pin = true
	all, err := inventory.LoadNamed(env.Context, pl.Client)
	if err != nil {
		return err
	}
	steps, pending, err := pl.SavedSteps(env.Context, all, plans)
	if err != nil {
		return err
	}
	r := review{
		one: !isList, wait: c.Wait, needsPlan: true, ConsentFlag: terminal.ConsentFlag{Yes: c.Yes},
		ClusterFlags: c.ClusterFlags, OutputFlag: c.OutputFlag,
	}
	if len(plans) > 0 {
		pl.Upgrades = plans[0].Upgrades
	}
	if _, _, err := r.finish(env, pl.Engine, all, uninstalled(plans)); err != nil {
		return err
	}
	o := r.operation(env, pl)
	again := o
	again.DryRun = r.one // A refusal is a difference then.
	if len(pending) == 0 {
		fmt.Fprintln(env.Stderr, "the plan is already applied")
	} else if _, err := again.Plan(env.Context, steps); err != nil {
		return err
	}
	advice := "Make the plans again with the command that made them, and review them."
	if !isList {
		advice = planAgain(plans[0], c.File)
	}
	for _, s := range steps {
		if planned := pending[s]; planned != nil {
			if err := checkMoved(env, planned, s.Plan, advice); err != nil {
				return err
			}
			if err := s.Plan.AnswerError(); err != nil {
				return err
			}
			if err := consentError(s.Plan); err != nil && !c.Yes {
				return err
			}
			view.Notes(env.Stderr, append(slices.Clone(s.Plan.Warnings), leftOut(s.Plan)...)...)
		}
	}
	return r.carryOut(env, o, steps)
}

// uninstalled returns the names of the packages that plans uninstall.
func uninstalled(plans []*planner.Plan) []inventory.Name {
	var names []inventory.Name
	for _, p := range plans {
		if p.Operation == planner.Uninstall {
			names = append(names, inventory.Name(p.Package.Short()))
		}
	}
	return names
}

// checkMoved returns an error with the advice if a plan that is made now differs from the saved one, and prints all
// differences.
func checkMoved(env *terminal.Env, planned, now *planner.Plan, advice string) error {
	moved := planner.Compare(planned, now)
	for _, d := range moved {
		fmt.Fprintf(env.Stderr, "changed since the plan: %s\n", terminal.Safe(d.String()))
	}
	if len(moved) == 0 {
		return nil
	}
	return errcode.From(planner.MovedError(planned, moved)).WithDo("Nothing was written. %s", advice)
}

// planAgain returns how a plan is made and saved again.
func planAgain(p *planner.Plan, file string) string {
	words := []string{"xpkg plan", string(p.Operation)}
	switch {
	case p.Operation == planner.Install && p.Package.To != nil:
		words = append(words, strings.ToLower(p.Package.Kind), p.Package.To.Reference, p.Package.Name)
	case p.Operation == planner.Update && p.Package.To != nil:
		words = append(words, p.Package.Short(), p.Package.To.Reference)
	default:
		words = append(words, p.Package.Short())
	}
	flags := ""
	if len(p.FieldChanges) > 0 {
		flags = " and the flags that change its other fields"
	}
	return fmt.Sprintf(
		"Make the plan again with `%s --out %s`%s, and review it.", strings.Join(words, " "), wording.ShellWord(file), flags,
	)
}
