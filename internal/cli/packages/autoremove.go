package packages

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/inventory"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/planner"
)

// AutoremoveCmd implements `xpkg autoremove`.
type AutoremoveCmd struct {
	Wait   time.Duration `short:"w" placeholder:"DURATION" help:"Wait this long, such as 2m, until each package and its objects are deleted."`
	DryRun bool          `help:"Show the deletions without making them. Exits with code 2 if there are any."`
	terminal.ConsentFlag
	connection.ClusterFlags
	planFlags
	terminal.OutputFlag
}

// Run uninstalls automatically installed packages that no package requires and no object of the first generation uses any more,
// dependents first.
func (c *AutoremoveCmd) Run(env *terminal.Env) error {
	cluster, all, err := inventory.Read(env.Context, c.ClusterFlags, inventory.LoadNamed)
	if err != nil {
		return err
	}
	present := slices.DeleteFunc(slices.Clone(all.Packages), func(p v1.Package) bool { return p.GetDeletionTimestamp() != nil })
	if all, err = awaitNeeds(env, cluster, all, present); err != nil {
		return err
	}
	uses, err := inventory.ReadUses(env.Context, cluster, c.ClusterFlags)
	if err != nil {
		return err
	}
	g, err := all.Graph(uses)
	if err != nil {
		return err
	}
	orphans := g.Orphans()
	if len(orphans) == 0 {
		// The output has the shape of an operation without packages.
		nothing := inventory.List[v1.Package](nil)
		if c.DryRun {
			nothing = []*planner.Plan{}
		}
		return c.Print(env.Stdout, nothing, func(w io.Writer) error {
			_, err := fmt.Fprintln(w, "Nothing to remove: every dependency is still needed.")
			return err
		})
	}
	remove := UninstallCmd{
		Wait: c.Wait, DryRun: c.DryRun, ConsentFlag: c.ConsentFlag, ClusterFlags: c.ClusterFlags, planFlags: c.planFlags, OutputFlag: c.OutputFlag,
	}
	for _, o := range orphans {
		remove.Names = append(remove.Names, inventory.Name(strings.ToLower(o.Kind)+"/"+o.Name))
	}
	return remove.runSeveral(env, remove.Names)
}
