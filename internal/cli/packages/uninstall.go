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

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/plantext"
	"github.com/xpkg-dev/xpkg/internal/cli/selection"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/operation"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/wording"
)

// uninstallArgs select the package to uninstall.
type uninstallArgs struct {
	Name inventory.Name `arg:"" complete:"package" help:"Package to uninstall, as NAME, KIND/NAME or KIND NAME."`
}

// live reads the package.
func (c *uninstallArgs) live(ctx context.Context, cluster client.Client) (v1.Package, error) {
	kind, name, err := c.Name.Split()
	if err != nil {
		return nil, err
	}
	if kind != "" {
		p, err := inventory.Get(ctx, cluster, kind, name)
		if err != nil || p != nil {
			return p, err
		}
	}
	all, err := inventory.LoadPackages(ctx, cluster)
	if err != nil {
		return nil, err
	}
	return all.Find(c.Name)
}

// plan plans the uninstall.
func (c *uninstallArgs) plan(ctx context.Context, pl *clusterPlanner) (*planner.Plan, error) {
	p, err := c.live(ctx, pl.Client)
	if err != nil {
		return nil, err
	}
	pl.ShowMaintained = true
	out, err := pl.Uninstall(ctx, p, pl.Options)
	return out, operation.PlanError(err, "uninstall "+inventory.ShortName(p))
}

// UninstallCmd implements `xpkg uninstall`.
type UninstallCmd struct {
	Names []inventory.Name `arg:"" optional:"" name:"name" complete:"package" help:"Packages to uninstall, each as NAME, KIND/NAME or KIND NAME."`

	Wait   time.Duration `short:"w" placeholder:"DURATION" help:"Wait this long, such as 2m, until each package and its objects are deleted."`
	DryRun bool          `help:"Show the deletions without making them, like xpkg plan uninstall."`
	selection.SelectorFlag
	terminal.ConsentFlag
	connection.ClusterFlags
	planFlags
	view.OutputFlag
}

// Validate returns an error for a name that is not valid, and if no package is selected.
func (c *UninstallCmd) Validate() error {
	return cmp.Or(c.Check(len(c.Names)), inventory.ValidateNames(c.Names))
}

// Run deletes packages and the objects that only they own.
func (c *UninstallCmd) Run(env *terminal.Env) error {
	names, err := c.SelectorFlag.Names(env.Context, c.ClusterFlags, c.Names)
	if err != nil {
		return err
	}
	if len(names) > 1 || c.Selector != "" {
		return c.runSeveral(env, names)
	}
	one := uninstallArgs{Name: c.Names[0]}
	if c.DryRun {
		return planOutput{ClusterFlags: c.ClusterFlags, planFlags: c.planFlags, planFormat: planFormat{string(c.Output)}, isDryRun: true}.uninstall(env, one)
	}
	engine, err := newEngine(env, c.ClusterFlags)
	if err != nil {
		return err
	}
	p, err := one.live(env.Context, engine.Client)
	if errors.Is(err, inventory.ErrPackageNotFound) {
		return c.finish(env, engine, one.Name, err)
	}
	if err != nil {
		return err
	}
	step := &operation.Step{Live: p, Remove: true}
	if !c.Yes && !inventory.IsDeleting(p) { // A deletion that has begun continues, and cannot be stopped.
		if step.Plan, err = c.ask(env, one); err != nil {
			return err
		}
	}
	done, err := operation.Operation{Engine: engine, Wait: c.Wait, Yes: c.Yes}.CarryOut(env.Context, []*operation.Step{step})
	if err != nil {
		return err
	}
	return c.printRemoved(env, engine, p, done[0].Word)
}

// printRemoved reports that a package was uninstalled.
func (c *UninstallCmd) printRemoved(env *terminal.Env, engine *operation.Engine, p v1.Package, word string) error {
	noteOrphans(env, engine)
	return c.Print(env.Stdout, inventory.WithoutManagedFields(p), func(w io.Writer) {
		fmt.Fprintf(w, "%s %s\n", inventory.ShortName(p), word)
	})
}

// finish continues the uninstall of a package that was deleted before, as by an interrupted command, and of which Kubernetes still deletes
// objects. If there are none, it returns the error of the package that was not found.
func (c *UninstallCmd) finish(env *terminal.Env, engine *operation.Engine, name inventory.Name, notFound error) error {
	deleted, err := engine.FinishDeletions(env.Context, c.Wait, hasName(name))
	if err != nil {
		return err
	}
	if len(deleted) == 0 {
		return notFound
	}
	word := "deleted"
	if c.Wait > 0 {
		word = "gone"
	}
	return c.printRemoved(env, engine, deleted[0], word)
}

// hasName returns a function that reports whether a package has a name, with or without a kind.
func hasName(n inventory.Name) func(kind, name string) bool {
	return func(kind, name string) bool {
		wantKind, wantName, err := n.Split()
		return err == nil && name == wantName && (wantKind == "" || kind == wantKind)
	}
}

// runSeveral uninstalls several packages in one operation, dependents first. It needs consent for packages that the user
// has not named.
func (c *UninstallCmd) runSeveral(env *terminal.Env, names []inventory.Name) error {
	r := review{dryRun: c.DryRun, wait: c.Wait, asksToRemove: c.Selector != "", ConsentFlag: c.ConsentFlag, ClusterFlags: c.ClusterFlags, OutputFlag: c.OutputFlag}
	return r.uninstall(env, c.planFlags, names)
}

// uninstall uninstalls packages, dependents first, and names the dependencies that no package needs any more.
func (r review) uninstall(env *terminal.Env, f planFlags, names []inventory.Name) error {
	err := r.change(env, f, func(pl *clusterPlanner, all *inventory.Inventory) ([]*operation.Step, error) {
		names, err := r.finishSeveral(env, pl.Engine, all, names)
		if err != nil {
			return nil, err
		}
		packages, err := findAll(all, names)
		if err != nil {
			return nil, err
		}
		return pl.RemovalSteps(env.Context, all, packages)
	})
	if err != nil || r.dryRun {
		return err
	}
	engine, err := newEngine(env, r.ClusterFlags)
	if err != nil {
		return err
	}
	noteOrphans(env, engine)
	return nil
}

// finishSeveral is like finish for several packages, and returns the names of the others.
func (r review) finishSeveral(env *terminal.Env, engine *operation.Engine, all *inventory.Inventory, names []inventory.Name) ([]inventory.Name, error) {
	var rest []inventory.Name
	for _, name := range names {
		if _, err := all.Find(name); errors.Is(err, inventory.ErrPackageNotFound) && !r.dryRun {
			deleted, err := engine.FinishDeletions(env.Context, r.wait, hasName(name))
			if err != nil {
				return nil, err
			}
			if len(deleted) > 0 {
				continue
			}
		}
		rest = append(rest, name)
	}
	return rest, nil
}

// noteOrphans prints the dependencies that no package needs any more, and the command that uninstalls them. It prints nothing if they are not
// known, or if the manager removes them.
func noteOrphans(env *terminal.Env, engine *operation.Engine) {
	all, err := inventory.LoadNamed(env.Context, engine.Client)
	if err != nil || all.Lock.GetAnnotations()[graph.AnnotationRemovalPolicy] == string(graph.RemoveOrphans) {
		return
	}
	if names, err := engine.Orphans(env.Context, all); err == nil && len(names) > 0 {
		fmt.Fprintf(env.Stderr, "note: no package needs %s any more; `xpkg autoremove` uninstalls such dependencies\n", terminal.Safe(wording.Few(names, 3, ", ")))
	}
}

// findAll returns the packages with the names, each once.
func findAll(all *inventory.Inventory, names []inventory.Name) ([]v1.Package, error) {
	var out []v1.Package
	for _, name := range names {
		p, err := all.Find(name)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out, nil
}

// ask lists the objects to delete and asks for confirmation. Without a terminal, it fails if custom resources
// would be deleted or other packages require this one.
func (c *UninstallCmd) ask(env *terminal.Env, one uninstallArgs) (p *planner.Plan, err error) {
	pl, err := c.open(env, c.ClusterFlags)
	if err != nil {
		return nil, err
	}
	defer func() { err = cmp.Or(err, pl.close()) }()
	p, err = fileutil.Await(env.Context, func() (*planner.Plan, error) { return one.plan(env.Context, pl) })
	if err != nil {
		return nil, err
	}
	if refused := p.RefusalError(); refused != nil {
		plantext.Write(env.Stderr, p)
		return nil, refused
	}
	if env.Interactive() {
		plantext.Write(env.Stderr, p)
		if err := env.Confirm(); err != nil {
			return nil, err
		}
		now, err := one.plan(env.Context, pl)
		if err != nil {
			return nil, err
		}
		return p, planner.CheckConsequences(p, now)
	}
	if err := consentError(p); err != nil {
		return nil, err
	}
	if resources, uncounted := p.CountCustomResources(); resources > 0 || uncounted > 0 {
		return nil, adviseDryRun(env, c.Consent(env, fmt.Sprintf("uninstall %s: %s", p.Package.Short(), strings.TrimSuffix(plantext.Lost(resources, uncounted), "."))))
	}
	return p, nil
}
