// Package packages contains the commands that change the packages of a cluster: install,
// update, uninstall, autoremove, approve, plan, apply and list.
package packages

import (
	"cmp"
	"fmt"
	"io"
	"time"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/plantext"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/operation"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// InstallCmd implements `xpkg install`.
type InstallCmd struct {
	installArgs
	Lock   string        `placeholder:"FILE" help:"Install all packages of this lock file at its digests."`
	Wait   time.Duration `short:"w" placeholder:"DURATION" help:"Wait this long, such as 2m, until the package is healthy."`
	DryRun bool          `help:"Show the changes without making them, like xpkg plan install."`
	atomicFlag
	terminal.ConsentFlag
	connection.ClusterFlags
	planFlags
	view.OutputFlag
}

// Run creates the object that installs a package, or the objects for a lock file.
func (c *InstallCmd) Run(env *terminal.Env) (err error) {
	if c.Lock != "" {
		return c.runLock(env)
	}
	if c.DryRun {
		preview := planInstallCmd{c.installArgs, planOutput{ClusterFlags: c.ClusterFlags, planFlags: c.planFlags, planFormat: planFormat{string(c.Output)}, isDryRun: true}}
		return preview.Run(env)
	}
	installed, err := c.selectProvider(env, c.planFlags, c.ClusterFlags)
	if err != nil {
		return err
	}
	if installed != nil {
		return c.finishProvider(env, installed)
	}
	if err := c.determineKind(env, c.planFlags, c.ClusterFlags); err != nil {
		return err
	}
	want, err := c.object()
	if err != nil {
		return err
	}
	pl, err := c.open(env, c.ClusterFlags)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, pl.close()) }()
	step, err := c.review(env, pl, want)
	if err != nil {
		return err
	}
	return carryOutOne(env, operation.Operation{Engine: pl.Engine, Wait: c.limit(c.Wait), Atomic: c.Atomic}, c.OutputFlag, step, "")
}

// finishProvider keeps a package that provides the kind of --kind already, and reports it.
func (c *InstallCmd) finishProvider(env *terminal.Env, p v1.Package) error {
	engine, err := newEngine(env, c.ClusterFlags)
	if err != nil {
		return err
	}
	return carryOutOne(env, operation.Operation{Engine: engine}, c.OutputFlag, &operation.Step{Live: p, Same: true}, ": it provides "+c.RequiredKind+" already")
}

// review plans the install, and fails with the error of the plan if the package can never be installed. On a
// terminal it shows the plan and asks for confirmation. The plan contains the user's consents to webhooks and to the
// adoption of objects. If this command has no access to the content of the package, the install
// continues without a plan, because the manager may have access.
func (c *InstallCmd) review(env *terminal.Env, pl *clusterPlanner, want v1.Package) (*operation.Step, error) {
	live, err := c.findInstalled(env.Context, pl, want)
	step := &operation.Step{Live: live, Want: want, Adopt: true}
	if live != nil && !c.given() {
		step.Same = true // Only the label of a dependency is changed.
		return step, err
	}
	var p *planner.Plan
	if err == nil {
		p, err = interruptible(env, "planning to install "+inventory.ShortName(want), func() (*planner.Plan, error) {
			pl.Upgrades = c.DependencyUpgrades
			return planInstall(env.Context, pl, want, live, c.consents)
		})
		err = c.adviseCache(err)
	}
	ask := c.Asks(env)
	switch {
	case operation.IsPlanUnavailable(err, want) && !c.given():
		pl.PlanUnavailable(err)
		if c.cached {
			fmt.Fprintln(env.Stderr, terminal.Safe(errcode.From(err).Do))
		}
		if ask {
			return step, env.Confirm()
		}
		return step, nil
	case err != nil:
		return nil, err
	case !p.WritesPackage():
		step.Same = true
		return step, nil
	}
	if err := p.RefusalError(); err != nil {
		return nil, err
	}
	if err := consentError(p); err != nil && !c.Yes && !ask {
		return nil, err
	}
	step.Plan = p
	if ask || c.given() && !terminal.IsQuiet(env.Stderr) {
		plantext.Write(env.Stderr, p)
	} else {
		printNotes(env, p)
	}
	if ask {
		return step, env.Confirm()
	}
	return step, nil
}

// carryOutOne carries out the only step of an operation, and prints the package with a remark.
func carryOutOne(env *terminal.Env, o operation.Operation, output view.OutputFlag, step *operation.Step, remark string) error {
	done, err := o.Run(env.Context, []*operation.Step{step})
	if err != nil {
		return err
	}
	p := done[0].Object
	return output.Print(env.Stdout, inventory.WithoutManagedFields(p), func(w io.Writer) {
		fmt.Fprintf(w, "%s %s (%s)%s\n", inventory.ShortName(p), done[0].Word, p.PackageSpec().Package, remark)
	})
}
