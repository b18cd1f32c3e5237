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
	"github.com/xpkg-dev/xpkg/internal/apiserver"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/plantext"
	"github.com/xpkg-dev/xpkg/internal/cli/selection"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// ErrStillGoing is the code for an uninstall that is incomplete after the time of --wait.
var ErrStillGoing = errcode.Code{
	Name: "NotRemovedInTime", Class: errcode.Timeout,
	Cause: "The package or its objects were not deleted within the time of --wait.",
	Fix:   "The deletion continues. An object that remains has a finalizer: inspect it with kubectl.",
}

// ErrRecreated is the code for a package that was created again while an uninstall waited for its deletion.
var ErrRecreated = errcode.Code{
	Name: "PackageRecreated", Class: errcode.Conflict,
	Cause: "The package was deleted, and the package manager or another client created it again.",
	Fix:   "Run `xpkg plan uninstall` with the name of the package: it lists the packages and install objects that require it. Uninstall these first. If there are none, another client has installed the package again.",
}

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
	p, err := c.live(ctx, pl.client)
	if err != nil {
		return nil, err
	}
	pl.ShowMaintained = true
	out, err := pl.Uninstall(ctx, p)
	return out, planError(err, "uninstall "+inventory.ShortName(p))
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
	terminal.OutputFlag

	// onlyOrphans limits the command to packages that are orphans when they are removed.
	onlyOrphans bool
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
		plan := planUninstallCmd{one, planOutput{ClusterFlags: c.ClusterFlags, planFlags: c.planFlags, planFormat: planFormat{string(c.Output)}, isDryRun: true}}
		return plan.Run(env)
	}
	cluster, err := c.Client(env.Context)
	if err != nil {
		return err
	}
	p, err := one.live(env.Context, cluster)
	if errors.Is(err, inventory.ErrPackageNotFound) {
		return c.finish(env, cluster, one.Name, err)
	}
	if err != nil {
		return err
	}
	with, err := newDeletionSummary(env.Context, cluster, p)
	if err != nil && c.Wait > 0 {
		return err
	}
	planned, err := c.remove(env, cluster, one, p)
	if err != nil {
		return err
	}
	if c.Wait > 0 {
		if err := waitGone(env, c.ClusterFlags, cluster, p, with, c.Wait); err != nil {
			return err
		}
	} else {
		with.noteDefinitions(env, p, planned)
	}
	return c.printRemoved(env, cluster, p)
}

// printRemoved reports that a package was uninstalled.
func (c *UninstallCmd) printRemoved(env *terminal.Env, cluster client.Client, p v1.Package) error {
	noteOrphans(env, cluster, c.ClusterFlags)
	word := "deleted"
	if c.Wait > 0 {
		word = "gone"
	}
	return c.Print(env.Stdout, inventory.WithoutManagedFields(p), func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s %s\n", inventory.ShortName(p), word)
		return err
	})
}

// finish continues the uninstall of a package that was deleted before, as by an interrupted command, and of which Kubernetes still deletes
// objects. If there are none, it returns the error of the package that was not found.
func (c *UninstallCmd) finish(env *terminal.Env, cluster client.Client, name inventory.Name, notFound error) error {
	deleted, err := finishDeletions(env, c.ClusterFlags, cluster, c.Wait, hasName(name))
	if err != nil {
		return err
	}
	if len(deleted) == 0 {
		return notFound
	}
	return c.printRemoved(env, cluster, deleted[0].Package)
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
	if err := c.removeSeveral(env, names); err != nil || c.DryRun {
		return err
	}
	cluster, err := c.Client(env.Context)
	if err != nil {
		return err
	}
	noteOrphans(env, cluster, c.ClusterFlags)
	return nil
}

func (c *UninstallCmd) removeSeveral(env *terminal.Env, names []inventory.Name) error {
	o := operation{dryRun: c.DryRun, wait: c.Wait, asksToRemove: c.Selector != "", onlyOrphans: c.onlyOrphans, ConsentFlag: c.ConsentFlag, ClusterFlags: c.ClusterFlags, OutputFlag: c.OutputFlag}
	return o.change(env, c.planFlags, func(pl *clusterPlanner, all *inventory.Inventory) ([]*step, error) {
		names, err := c.finishSeveral(env, pl.client, all, names)
		if err != nil {
			return nil, err
		}
		packages, err := findAll(all, names)
		if err != nil {
			return nil, err
		}
		if all, err = awaitNeeds(env, pl.client, all, packages); err != nil {
			return nil, err
		}
		if packages, err = findAll(all, names); err != nil {
			return nil, err
		}
		return removals(all, packages), nil
	})
}

// finishSeveral is like finish for several packages, and returns the names of the others.
func (c *UninstallCmd) finishSeveral(env *terminal.Env, cluster client.Client, all *inventory.Inventory, names []inventory.Name) ([]inventory.Name, error) {
	var rest []inventory.Name
	for _, name := range names {
		if _, err := all.Find(name); errors.Is(err, inventory.ErrPackageNotFound) && !c.DryRun {
			deleted, err := finishDeletions(env, c.ClusterFlags, cluster, c.Wait, hasName(name))
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
func noteOrphans(env *terminal.Env, cluster client.Client, flags connection.ClusterFlags) {
	all, err := inventory.LoadNamed(env.Context, cluster)
	if err != nil || all.Lock.GetAnnotations()[graph.AnnotationRemovalPolicy] == string(graph.RemoveOrphans) {
		return
	}
	if names, err := orphans(env.Context, cluster, flags, all); err == nil && len(names) > 0 {
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

// lockTime is the time in which the manager that runs adds a new revision to the Lock.
const lockTime = 5 * time.Second

// awaitNeeds reads the packages again until the dependencies of the given ones are known: the manager adds a revision to the Lock after it
// has activated it. It returns what it knows when the time has passed.
func awaitNeeds(env *terminal.Env, cluster client.Client, all *inventory.Inventory, packages []v1.Package) (*inventory.Inventory, error) {
	progress := terminal.NewProgress(env.Stderr)
	defer progress.End()
	tick, deadline := time.NewTicker(pollInterval), time.After(lockTime)
	defer tick.Stop()
	for {
		unknown := slices.IndexFunc(packages, func(p v1.Package) bool { return !all.KnowsNeeds(p) })
		if unknown < 0 {
			return all, nil
		}
		progress.Set("waiting until the dependencies of %s are known", inventory.ShortName(packages[unknown]))
		select {
		case <-env.Context.Done():
			return nil, env.Context.Err()
		case <-deadline:
			return all, nil
		case <-tick.C:
		}
		var err error
		if all, err = inventory.LoadNamed(env.Context, cluster); err != nil {
			return nil, err
		}
	}
}

// remove deletes the package, and returns the plan: with --yes in its current state and without a plan, and otherwise only if the package
// has not changed, and its custom resources and dependents are not more, since the user saw the plan.
func (c *UninstallCmd) remove(env *terminal.Env, cluster client.Client, one uninstallArgs, p v1.Package) (*planner.Plan, error) {
	if inventory.IsDeleting(p) {
		return nil, nil // The deletion continues, and cannot be stopped.
	}
	if !c.Yes {
		agreed, err := c.ask(env, one)
		if err != nil {
			return nil, err
		}
		_, _, err = carryOut(env.Context, cluster, agreed)
		return agreed, err
	}
	if err := planner.CheckMaintained(env.Context, cluster, p, nil); err != nil {
		return nil, planError(err, "uninstall "+inventory.ShortName(p))
	}
	uid := p.GetUID()
	err := cluster.Delete(env.Context, p, client.Preconditions{UID: &uid}, client.PropagationPolicy(propagation))
	return nil, apiserver.Classify(client.IgnoreNotFound(err), "delete %s", inventory.ShortName(p))
}

// ask lists the objects to delete and asks for confirmation. Without a terminal, it fails if custom resources
// would be deleted or other packages require this one.
func (c *UninstallCmd) ask(env *terminal.Env, one uninstallArgs) (p *planner.Plan, err error) {
	pl, err := c.open(env.Context, c.ClusterFlags)
	if err != nil {
		return nil, err
	}
	defer func() { err = cmp.Or(err, pl.close()) }()
	p, err = terminal.Interruptible(env.Context, func() (*planner.Plan, error) { return one.plan(env.Context, pl) })
	if err != nil {
		return nil, err
	}
	if refused := p.RefusalError(); refused != nil {
		return nil, cmp.Or(showPlan(env, p), refused)
	}
	if env.Interactive() {
		if err := showPlan(env, p); err != nil {
			return nil, err
		}
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
