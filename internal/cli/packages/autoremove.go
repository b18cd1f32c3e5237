package packages

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/selection"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
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
	terminal.OutputFlag
}

// Run uninstalls automatically installed packages that no package requires and no object of the first generation uses any more,
// dependents first.
func (c *AutoremoveCmd) Run(env *terminal.Env) error {
	cluster, all, err := selection.Read(env.Context, c.ClusterFlags, inventory.LoadNamed)
	if err != nil {
		return err
	}
	present := slices.DeleteFunc(slices.Clone(all.Packages), func(p v1.Package) bool { return p.GetDeletionTimestamp() != nil })
	if all, err = awaitNeeds(env, cluster, all, present); err != nil {
		return err
	}
	names, err := orphans(env.Context, cluster, c.ClusterFlags, all)
	if err != nil {
		return err
	}
	if len(names) == 0 {
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
		Wait: c.Wait, DryRun: c.DryRun, ConsentFlag: c.ConsentFlag, ClusterFlags: c.ClusterFlags, planFlags: c.planFlags, OutputFlag: c.OutputFlag, onlyOrphans: true,
	}
	for _, name := range names {
		remove.Names = append(remove.Names, inventory.Name(name))
	}
	return remove.runSeveral(env, remove.Names)
}

// orphans returns the automatically installed packages that no package requires and no object of the first generation uses any more, as KIND/NAME.
func orphans(ctx context.Context, cluster client.Client, flags connection.ClusterFlags, all *inventory.Inventory) ([]string, error) {
	uses, err := selection.ReadUses(ctx, cluster, flags)
	if err != nil {
		return nil, err
	}
	g, err := all.Graph(uses)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, o := range g.Orphans() {
		names = append(names, v1.ObjectName(o.Kind, o.Name))
	}
	return names, nil
}
