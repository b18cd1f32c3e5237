package packages

import (
	"fmt"
	"slices"
	"time"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/dependencies"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/operation"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
)

// syncArgs select the packages of a sync.
type syncArgs struct {
	Lock  string `required:"" placeholder:"FILE" config:"" help:"Lock file, or - for standard input."`
	Prune bool   `help:"Uninstall the packages that the lock file does not contain."`
}

// SyncCmd implements `xpkg sync`.
type SyncCmd struct {
	syncArgs
	Wait   time.Duration `short:"w" placeholder:"DURATION" help:"Wait this long, such as 5m, for each package until it is healthy or deleted."`
	DryRun bool          `help:"Show the changes without making them. Exits with code 2 if there are any."`
	terminal.ConsentFlag
	connection.ClusterFlags
	planFlags
	view.OutputFlag
}

// Run installs, updates and uninstalls packages until the installed packages equal the lock file.
func (c *SyncCmd) Run(env *terminal.Env) error {
	err := c.run(env, review{
		dryRun: c.DryRun, wait: c.Wait, needsPlan: true, asksToRemove: true,
		ConsentFlag: c.ConsentFlag, ClusterFlags: c.ClusterFlags, OutputFlag: c.OutputFlag,
	}, c.planFlags)
	if err != nil || !c.Prune || c.Wait == 0 || c.DryRun {
		return err
	}
	return c.finish(env)
}

// run changes the installed packages to equal the lock file.
func (c *syncArgs) run(env *terminal.Env, r review, p planFlags) error {
	f, err := dependencies.ReadClosure(env, c.Lock)
	if err != nil {
		return err
	}
	return r.change(env, p, func(pl *clusterPlanner, all *inventory.Inventory) ([]*operation.Step, error) {
		steps, err := c.steps(env, pl, all, f)
		if err == nil {
			warnOfTags(env, pl, steps)
		}
		return steps, err
	})
}

// finish waits for the objects of packages that are deleted already, as by an interrupted command.
func (c *SyncCmd) finish(env *terminal.Env) error {
	engine, err := newEngine(env, c.ClusterFlags)
	if err != nil {
		return err
	}
	all, err := inventory.LoadPackages(env.Context, engine.Client)
	if err != nil {
		return err
	}
	_, err = engine.FinishDeletions(env.Context, c.Wait, func(kind, name string) bool {
		return !slices.ContainsFunc(
			all.Packages, func(p v1.Package) bool { return p.PackageKind() == kind && p.GetName() == name },
		)
	})
	return err
}

// steps returns the steps that make the installed packages equal to a lock file. Without --prune, it prints a note
// about packages that the lock file does not contain.
func (c *syncArgs) steps(
	env *terminal.Env, pl *clusterPlanner, all *inventory.Inventory, f lockfile.File,
) ([]*operation.Step, error) {
	steps, err := operation.LockSteps(all, f, func(v1.Package) {})
	if err != nil {
		return nil, err
	}
	for _, s := range steps {
		if s.Live != nil {
			if err := inventory.CheckNotDeleting(s.Live); err != nil {
				return nil, err
			}
		}
	}
	surplus := surplus(all, f)
	if !c.Prune {
		reportSurplus(env, surplus)
		return steps, nil
	}
	removals, err := pl.RemovalSteps(env.Context, all, surplus)
	return append(steps, removals...), err
}

// surplus returns the installed packages that a lock file does not contain, except for packages that are being deleted.
func surplus(all *inventory.Inventory, f lockfile.File) []v1.Package {
	locked := map[v1.Package]bool{}
	for _, p := range f.Packages {
		if live := all.Locked(p); live != nil {
			locked[live] = true
		}
	}
	return slices.DeleteFunc(
		slices.Clone(all.Packages), func(p v1.Package) bool { return locked[p] || inventory.IsDeleting(p) },
	)
}

// shownSurplus is the number of packages that the note about packages outside of the lock file names.
const shownSurplus = 5

func reportSurplus(env *terminal.Env, packages []v1.Package) {
	if len(packages) == 0 {
		return
	}
	var names []string
	for _, p := range packages {
		names = append(names, inventory.ShortName(p))
	}
	slices.Sort(names)
	fmt.Fprintf(env.Stderr, "note: the lock file does not contain %s: %s; --prune uninstalls what it does not contain\n",
		wording.Count(len(names), "installed package"), terminal.Safe(wording.Few(names, shownSurplus, ", ")))
}
