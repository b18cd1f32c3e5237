package packages

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/selection"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/operation"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/wording"
)

// UninstallCmd implements `xpkg uninstall`.
type UninstallCmd struct {
	Names []inventory.Name `arg:"" optional:"" name:"name" complete:"package" help:"Packages to uninstall, each as NAME, KIND/NAME or KIND NAME."`

	Wait time.Duration `short:"w" placeholder:"DURATION" help:"Wait this long, such as 2m, until each package and its objects are deleted."`
	OnDeleteFlag
	DryRun bool `help:"Show the deletions without making them, like xpkg plan uninstall."`
	selection.SelectorFlag
	terminal.ConsentFlag
	connection.ClusterFlags
	planFlags
	view.OutputFlag
}

// OnDeleteFlag answers what happens to the custom resources of uninstalled packages.
type OnDeleteFlag struct {
	OnDelete revision.OnDelete `placeholder:"ANSWER" help:"Answer what happens to custom resources of the packages: orphan keeps them, with all objects of the packages, and cascade=N deletes them if they are at most N."`
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
	r := review{
		dryRun: c.DryRun, one: len(c.Names) == 1, wait: c.Wait, asksToRemove: c.Selector != "",
		ConsentFlag: c.ConsentFlag, ClusterFlags: c.ClusterFlags, OutputFlag: c.OutputFlag,
	}
	return r.uninstall(env, c.planFlags, names, c.OnDelete)
}

// hasName returns a function that reports whether a package has a name, with or without a kind.
func hasName(n inventory.Name) func(kind, name string) bool {
	return func(kind, name string) bool {
		wantKind, wantName, err := n.Split()
		return err == nil && name == wantName && (wantKind == "" || kind == wantKind)
	}
}

// uninstall uninstalls packages, dependents first, and names the dependencies that no package needs any more.
func (r review) uninstall(env *terminal.Env, f planFlags, names []inventory.Name, answer revision.OnDelete) error {
	var engine *operation.Engine
	err := r.change(env, f, func(pl *clusterPlanner, all *inventory.Inventory) ([]*operation.Step, error) {
		engine = pl.Engine
		names, deleted, err := r.finish(env, pl.Engine, all, names)
		if err != nil {
			return nil, err
		}
		packages, err := findAll(all, names)
		if err != nil {
			return nil, err
		}
		steps, err := pl.RemovalSteps(env.Context, all, packages)
		for _, s := range steps {
			s.OnDelete = answer
		}
		return append(steps, operation.GoneSteps(deleted)...), err
	})
	if err == nil && !r.dryRun {
		noteOrphans(env, engine)
	}
	return err
}

// finish ends the deletion of the packages that were deleted before, as by an interrupted command, and of which
// Kubernetes still deletes objects. It returns the names of the others.
func (r review) finish(
	env *terminal.Env, engine *operation.Engine, all *inventory.Inventory, names []inventory.Name,
) (rest []inventory.Name, deleted []v1.Package, err error) {
	for _, name := range names {
		if _, err := all.Find(name); errors.Is(err, inventory.ErrPackageNotFound) && !r.dryRun {
			found, err := engine.FinishDeletions(env.Context, r.wait, hasName(name))
			if err != nil {
				return nil, nil, err
			}
			if len(found) > 0 {
				deleted = append(deleted, found...)
				continue
			}
		}
		rest = append(rest, name)
	}
	return rest, deleted, nil
}

// noteOrphans prints the dependencies that no package needs any more, and the command that uninstalls them. It prints
// nothing if they are not known, or if the manager removes them.
func noteOrphans(env *terminal.Env, engine *operation.Engine) {
	all, err := inventory.LoadNamed(env.Context, engine.Client)
	if err != nil || all.Lock.GetAnnotations()[graph.AnnotationRemovalPolicy] == string(graph.RemoveOrphans) {
		return
	}
	if names, err := engine.Orphans(env.Context, all); err == nil && len(names) > 0 {
		fmt.Fprintf(
			env.Stderr, "note: no package needs %s any more; `xpkg autoremove` uninstalls such dependencies\n",
			terminal.Safe(wording.Few(names, 3, ", ")),
		)
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
