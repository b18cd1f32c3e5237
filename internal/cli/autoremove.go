package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// ErrNeedsUnknown is the failure of a cluster that does not say what its packages need.
var ErrNeedsUnknown = errcode.Code{
	Name: "NeedsUnknown", Class: errcode.Unavailable,
	Cause: "The Lock of the cluster does not say what a package needs, so nobody knows whether others are needed.",
	Fix:   "Wait until the package is installed, or uninstall it; a package manager that runs writes the Lock by itself.",
}

type autoremoveCmd struct {
	Wait   time.Duration `short:"w" placeholder:"DURATION" help:"Wait this long, such as 2m, for each package and its objects to be gone."`
	DryRun bool          `help:"Only list what would go."`
	consentFlag
	clusterFlags
	planFlags
	outputFlag
}

// Run uninstalls what was installed because others needed it, and that nobody needs
// any more. Whoever needs others goes before those.
func (c *autoremoveCmd) Run(env *Env) error {
	_, all, err := c.installed(env.Context, loadNamed)
	if err != nil {
		return err
	}
	g, err := all.graph()
	if err != nil {
		return err
	}
	orphans := g.Orphans()
	if len(orphans) == 0 || c.DryRun {
		return c.list(env.Stdout, orphans)
	}
	for _, o := range orphans {
		one := uninstallCmd{
			uninstallArgs: uninstallArgs{Kind: strings.ToLower(o.Kind), Name: o.Name}, Wait: c.Wait,
			consentFlag: c.consentFlag, clusterFlags: c.clusterFlags, planFlags: c.planFlags, outputFlag: c.outputFlag,
		}
		if err := one.Run(env); err != nil {
			return err
		}
	}
	return nil
}

// orphanView is a package that nobody needs.
type orphanView struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Package string `json:"package"`
}

func (c *autoremoveCmd) list(w io.Writer, orphans []graph.Node) error {
	views := []orphanView{}
	for _, o := range orphans {
		views = append(views, orphanView{o.Kind, o.Name, o.Reference()})
	}
	return c.print(w, views, func(w io.Writer) error {
		if len(views) == 0 {
			_, err := fmt.Fprintln(w, "Nothing to remove: somebody needs everything that was installed for others.")
			return err
		}
		for _, v := range views {
			fmt.Fprintf(w, "%s/%s  %s\n", strings.ToLower(v.Kind), v.Name, safe(v.Package))
		}
		return nil
	})
}

// graph is all packages with what they need, as the Lock says.
func (i *installed) graph() (*graph.Graph, error) {
	var nodes []graph.Node
	for _, p := range i.packages {
		needs, known := graph.LockedDependencies(p, i.lock.Packages)
		n, ok := graph.NodeFromPackage(p, needs)
		if !ok {
			continue // It is on its way out, or nobody can need it.
		}
		if !known {
			return nil, ErrNeedsUnknown.New(nil, "the Lock has no entry of %s at %s", shortName(p), p.PackageSpec().Package)
		}
		nodes = append(nodes, n)
	}
	return graph.New(nodes, nil), nil
}
