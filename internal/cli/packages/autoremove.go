package packages

import (
	"fmt"
	"io"
	"slices"
	"time"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/planner"
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

// Run uninstalls automatically installed packages that no package requires and no object of the first generation uses any more,
// dependents first.
func (c *AutoremoveCmd) Run(env *terminal.Env) error {
	engine, err := newEngine(env, c.ClusterFlags)
	if err != nil {
		return err
	}
	all, err := inventory.LoadNamed(env.Context, engine.Client)
	if err != nil {
		return err
	}
	present := slices.DeleteFunc(slices.Clone(all.Packages), func(p v1.Package) bool { return p.GetDeletionTimestamp() != nil })
	if all, err = engine.AwaitNeeds(env.Context, all, present); err != nil {
		return err
	}
	names, err := engine.Orphans(env.Context, all)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		// The output has the shape of an operation without packages.
		nothing := inventory.List[v1.Package](nil)
		if c.DryRun {
			nothing = []*planner.Plan{}
		}
		return c.Print(env.Stdout, nothing, func(w io.Writer) {
			fmt.Fprintln(w, "Nothing to remove: every dependency is still needed.")
		})
	}
	var remove []inventory.Name
	for _, name := range names {
		remove = append(remove, inventory.Name(name))
	}
	r := review{dryRun: c.DryRun, wait: c.Wait, onlyOrphans: true, ConsentFlag: c.ConsentFlag, ClusterFlags: c.ClusterFlags, OutputFlag: c.OutputFlag}
	return r.uninstall(env, c.planFlags, remove)
}
