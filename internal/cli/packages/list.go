package packages

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/inventory"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/revision"
)

// ListCmd implements `xpkg list`.
type ListCmd struct {
	Selector string `short:"l" placeholder:"SELECTOR" help:"Labels of the packages to list, such as team=ships,env!=test."`
	connection.ClusterFlags
	terminal.ListOutputFlag
}

// Run prints the packages that are installed.
func (c *ListCmd) Run(env *terminal.Env) error {
	selector, err := labels.Parse(c.Selector)
	if err != nil {
		return terminal.ErrUsage.New(err, "cannot read the selector %s", c.Selector).WithDo("Write it as in kubectl, such as team=ships,env!=test.")
	}
	cluster, all, err := inventory.Read(env.Context, c.ClusterFlags, inventory.LoadPackages)
	if err != nil {
		return err
	}
	found := slices.DeleteFunc(all.Packages, func(p v1.Package) bool { return !selector.Matches(labels.Set(p.GetLabels())) })
	return c.Print(env.Stdout, terminal.List{Value: inventory.List(found), Names: inventory.ResourceNames(found), Table: func(w io.Writer, wide bool) error {
		switch {
		case len(found) == 0 && !selector.Empty():
			_, err := fmt.Fprintf(w, "No installed package has the labels %s.\n", selector)
			return err
		case len(found) == 0:
			_, err := io.WriteString(w, "No packages are installed.\n")
			return err
		}
		header := []string{"NAME", "INSTALLED", "HEALTHY", "PACKAGE", "AGE", "INSTALL REASON"}
		if wide {
			header = append(header, "REVISION", "DIGEST")
		}
		var rows [][]string
		for _, p := range found {
			row := []string{
				inventory.ShortName(p), inventory.InstalledStatus(p), inventory.Status(p, v1.TypeHealthy), c.runningPackage(env.Context, cluster, p),
				terminal.Age(p.GetCreationTimestamp().Time, time.Now()), string(inventory.ReasonOf(p)),
			}
			if wide {
				row = append(row, p.PackageStatus().CurrentRevision, p.PackageStatus().ResolvedDigest)
			}
			rows = append(rows, row)
		}
		return terminal.WriteTable(w, header, rows)
	}})
}

// runningPackage returns the reference of the content that a package runs. After a rollback
// that is not spec.package, and the failed update is named beside it.
func (*ListCmd) runningPackage(ctx context.Context, cluster client.Client, p v1.Package) string {
	asked, back := p.PackageSpec().Package, revision.PolicyOf(p).Back
	if back == "" {
		return asked
	}
	rev := p.NewRevision()
	running := "revision " + back
	// A user may read packages only.
	if cluster.Get(ctx, client.ObjectKey{Name: back}, rev) == nil && rev.RevisionSpec().Image != "" {
		running = rev.RevisionSpec().Image
	}
	return running + " (rolled back: the update to " + asked + " failed)"
}
