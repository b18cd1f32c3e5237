package packages

import (
	"context"
	"io"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/inventory"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/revision"
)

// ListCmd implements `xpkg list`.
type ListCmd struct {
	connection.ClusterFlags
	terminal.OutputFlag
}

// Run prints the packages that are installed.
func (c *ListCmd) Run(env *terminal.Env) error {
	cluster, all, err := inventory.Read(env.Context, c.ClusterFlags, inventory.LoadPackages)
	if err != nil {
		return err
	}
	return c.Print(env.Stdout, inventory.List(all.Packages), func(w io.Writer) error {
		if len(all.Packages) == 0 {
			_, err := io.WriteString(w, "No packages are installed.\n")
			return err
		}
		var rows [][]string
		for _, p := range all.Packages {
			rows = append(rows, []string{
				inventory.ShortName(p), inventory.InstalledStatus(p), inventory.Status(p, v1.TypeHealthy), c.runningPackage(env.Context, cluster, p),
				terminal.Age(p.GetCreationTimestamp().Time, time.Now()), string(inventory.ReasonOf(p)),
			})
		}
		return terminal.WriteTable(w, []string{"NAME", "INSTALLED", "HEALTHY", "PACKAGE", "AGE", "INSTALL REASON"}, rows)
	})
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
