package packages

import (
	"fmt"
	"slices"
	"time"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/operation"
)

// AutoremoveCmd implements `xpkg autoremove`.
type AutoremoveCmd struct {
	Wait   time.Duration `short:"w" placeholder:"DURATION" help:"Wait this long, such as 2m, until each package and its objects are deleted."`
	DryRun bool          `help:"Show the deletions without making them. Exits with code 2 if there are any."`
	terminal.ConsentFlag
	connection.ClusterFlags
	planFlags
	view.OutputFlag
}

// Run uninstalls automatically installed packages that no package requires and no object of the first generation uses
// any more, dependents first.
func (c *AutoremoveCmd) Run(env *terminal.Env) error {
	r := review{
		dryRun: c.DryRun, wait: c.Wait, ConsentFlag: c.ConsentFlag, ClusterFlags: c.ClusterFlags, OutputFlag: c.OutputFlag,
	}
	return r.autoremove(env, c.planFlags)
}

// autoremove uninstalls the packages that no package needs.
func (r review) autoremove(env *terminal.Env, f planFlags) error {
	r.onlyOrphans = true
	return r.change(env, f, func(pl *clusterPlanner, all *inventory.Inventory) ([]*operation.Step, error) {
		present := slices.DeleteFunc(slices.Clone(all.Packages), inventory.IsDeleting)
		all, err := pl.AwaitNeeds(env.Context, all, present)
		if err != nil {
			return nil, err
		}
		orphans, err := pl.Orphans(env.Context, all)
		if err != nil {
			return nil, err
		}
		if len(orphans) == 0 {
			fmt.Fprintln(env.Stderr, "Nothing to remove: every dependency is still needed.")
		}
		packages := slices.DeleteFunc(slices.Clone(all.Packages), func(p v1.Package) bool {
			return !slices.Contains(orphans, v1.ObjectName(p.PackageKind(), p.GetName()))
		})
		return pl.RemovalSteps(env.Context, all, packages)
	})
}
