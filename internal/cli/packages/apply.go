package packages

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/operation"
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
	if isList {
		return c.runList(env, pl, plans)
	}
	return c.runOne(env, pl, plans[0])
}

// runList carries out the plans of several packages.
func (c *ApplyCmd) runList(env *terminal.Env, pl *clusterPlanner, plans []*planner.Plan) error {
	all, err := inventory.LoadNamed(env.Context, pl.Client)
	if err != nil {
		return err
	}
	steps, pending, err := pl.SavedSteps(env.Context, all, plans)
	if err != nil {
		return err
	}
	r := review{wait: c.Wait, needsPlan: true, ConsentFlag: terminal.ConsentFlag{Yes: c.Yes}, ClusterFlags: c.ClusterFlags, OutputFlag: c.OutputFlag}
	pl.Upgrades = plans[0].Upgrades
	o := r.operation(env, pl)
	if len(pending) == 0 {
		fmt.Fprintln(env.Stderr, "the plans are already applied")
	} else {
		if _, err := o.Plan(env.Context, steps); err != nil {
			return err
		}
	}
	for _, s := range steps {
		if planned := pending[s]; planned != nil {
			if err := checkMoved(env, planned, s.Plan, "Make the plans again with the command that made them, and review them."); err != nil {
				return err
			}
			if err := consentError(s.Plan); err != nil && !c.Yes {
				return err
			}
		}
	}
	return r.carryOut(env, o, steps)
}

// runOne carries out the plan of one package.
func (c *ApplyCmd) runOne(env *terminal.Env, pl *clusterPlanner, p *planner.Plan) error {
	live, err := inventory.Get(env.Context, pl.Client, p.Package.Kind, p.Package.Name)
	if err != nil {
		return err
	}
	applied, err := p.IsApplied(live)
	if err != nil {
		return err
	}
	removes := p.Operation == planner.Uninstall
	step := &operation.Step{Plan: p, Live: live, Remove: removes, Same: applied && !removes, RollsBack: p.RollsBack}
	if applied {
		fmt.Fprintln(env.Stderr, "the plan is already applied")
		if live == nil {
			return c.finishDeleted(env, pl.Engine, p.Package.Kind, p.Package.Name)
		}
	} else {
		// A consent is a matter of the plan only while it is current.
		if err := c.compare(env, pl, p); err != nil {
			return err
		}
		if err := consentError(p); err != nil && !c.Yes {
			return err
		}
	}
	return carryOutOne(env, operation.Operation{Engine: pl.Engine, Wait: c.Wait, Yes: c.Yes}, c.OutputFlag, step, "")
}

// compare returns an error for a stale plan, and prints all reasons.
func (c *ApplyCmd) compare(env *terminal.Env, pl *clusterPlanner, planned *planner.Plan) error {
	now, err := interruptible(env, "checking the plan again", func() (*planner.Plan, error) { return replan(env.Context, pl, planned) })
	if err != nil {
		return err
	}
	flags := ""
	if len(planned.FieldChanges) > 0 {
		flags = " and the flags that change its other fields"
	}
	again := fmt.Sprintf("Make the plan again with `%s`%s, and review it.", planCommand(planned, c.File), flags)
	if err := checkMoved(env, planned, now, again); err != nil {
		return err
	}
	view.Notes(env.Stderr, append(slices.Clone(now.Warnings), leftOut(now)...)...)
	return nil
}

// checkMoved returns an error with the advice if a plan that is made now differs from the saved one, and prints all differences.
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

// planCommand returns the command that plans the same change again and writes the plan to a file.
func planCommand(p *planner.Plan, file string) string {
	words := []string{"xpkg plan", string(p.Operation)}
	switch {
	case p.Operation == planner.Install && p.Package.To != nil:
		words = append(words, strings.ToLower(p.Package.Kind), p.Package.To.Reference, p.Package.Name)
	case p.Operation == planner.Update && p.Package.To != nil:
		words = append(words, p.Package.Short(), p.Package.To.Reference)
	default:
		words = append(words, p.Package.Short())
	}
	words = append(words, "--out", wording.ShellWord(file))
	return strings.Join(words, " ")
}

func replan(ctx context.Context, pl *clusterPlanner, planned *planner.Plan) (*planner.Plan, error) {
	now, err := pl.Replan(ctx, planned, pl.Options)
	return now, operation.PlanError(err, fmt.Sprintf("%s %s again", planned.Operation, planned.Package.Name))
}

// finishDeleted prints a package that was deleted before, of which only the kind and the name are known. It waits for its objects if
// requested.
func (c *ApplyCmd) finishDeleted(env *terminal.Env, engine *operation.Engine, kind, name string) error {
	p := v1.NewPackage(kind)
	p.GetObjectKind().SetGroupVersionKind(v1.GroupVersion.WithKind(kind))
	p.SetName(name)
	_, err := engine.FinishDeletions(env.Context, c.Wait, func(k, n string) bool { return k == kind && n == name })
	if err != nil {
		return err
	}
	return c.Print(env.Stdout, p, func(w io.Writer) {
		fmt.Fprintf(w, "%s gone\n", inventory.ShortName(p))
	})
}
