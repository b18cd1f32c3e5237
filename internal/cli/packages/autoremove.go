package packages

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/inventory"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/graph"
)

// AutoremoveCmd implements `xpkg autoremove`.
type AutoremoveCmd struct {
	Wait   time.Duration `short:"w" placeholder:"DURATION" help:"Wait this long, such as 2m, until each package and its objects are deleted."`
	DryRun bool          `help:"List the packages that would be removed without removing them."`
	terminal.ConsentFlag
	connection.ClusterFlags
	planFlags
	terminal.OutputFlag
}

// Run uninstalls automatically installed packages that no package requires and no install object uses any more, dependents
// first.
func (c *AutoremoveCmd) Run(env *terminal.Env) error {
	cluster, all, err := inventory.Read(env.Context, c.ClusterFlags, inventory.LoadNamed)
	if err != nil {
		return err
	}
	installs, err := inventory.ListInstalls(env.Context, cluster)
	if err != nil {
		return err
	}
	g, err := all.Graph(installs)
	if err != nil {
		return err
	}
	orphans := g.Orphans()
	if len(orphans) == 0 || c.DryRun {
		return c.list(env.Stdout, orphans)
	}
	remove := UninstallCmd{
		Wait: c.Wait, ConsentFlag: c.ConsentFlag, ClusterFlags: c.ClusterFlags, planFlags: c.planFlags, OutputFlag: c.OutputFlag,
	}
	for _, o := range orphans {
		remove.Names = append(remove.Names, inventory.Name(strings.ToLower(o.Kind)+"/"+o.Name))
	}
	return remove.Run(env)
}

// orphanView is a package that no package requires.
type orphanView struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Package string `json:"package"`
}

func (c *AutoremoveCmd) list(w io.Writer, orphans []graph.Node) error {
	views := []orphanView{}
	for _, o := range orphans {
		views = append(views, orphanView{o.Kind, o.Name, o.Reference()})
	}
	return c.Print(w, views, func(w io.Writer) error {
		if len(views) == 0 {
			_, err := fmt.Fprintln(w, "Nothing to remove: every dependency is still needed.")
			return err
		}
		for _, v := range views {
			fmt.Fprintf(w, "%s/%s  %s\n", strings.ToLower(v.Kind), v.Name, terminal.Safe(v.Package))
		}
		return nil
	})
}
