package packages

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/inventory"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// ListCmd implements `xpkg list`.
type ListCmd struct {
	Watch bool `short:"w" help:"Print the list, and then a line for each change of a package, until interrupted."`
	inventory.SelectorFlag
	connection.ClusterFlags
	terminal.ListOutputFlag
}

// Run prints the packages that are installed, and the install objects of the first generation.
func (c *ListCmd) Run(env *terminal.Env) error {
	selector, err := c.Labels()
	if err != nil {
		return err
	}
	if c.Watch {
		return c.watch(env, selector)
	}
	cluster, all, err := inventory.Read(env.Context, c.ClusterFlags, inventory.LoadPackages)
	if err != nil {
		return err
	}
	return c.Print(env.Stdout, c.list(env.Context, cluster, all, selector))
}

// list returns the packages and the install objects with the selected labels.
func (c *ListCmd) list(ctx context.Context, cluster client.Client, all *inventory.Inventory, selector labels.Selector) terminal.List {
	found, installs := inventory.Selected(all.Packages, selector), inventory.Selected(inventory.ReadInstalls(ctx, cluster), selector)
	table := packageTable
	if !selector.Empty() {
		table.Empty = fmt.Sprintf("No installed package has the labels %s.", selector)
	}
	for _, p := range found {
		table.Rows = append(table.Rows, c.row(ctx, cluster, p))
	}
	for _, in := range installs {
		table.Rows = append(table.Rows, c.installRow(ctx, cluster, all, in))
	}
	names := slices.Concat(inventory.ResourceNames(found), inventory.InstallResourceNames(installs))
	return terminal.List{Value: inventory.List(found, installs...), Names: names, Table: table}
}

// packageTable is the table of packages without its rows.
var packageTable = terminal.Table{
	Header: []string{"NAME", "INSTALLED", "HEALTHY", "PACKAGE", "AGE", "INSTALL REASON"}, WideHeader: []string{"REVISION", "DIGEST", "TITLE", "CATEGORY"},
	Empty: "No packages are installed.",
}

// row returns the cells of a package in the table.
func (c *ListCmd) row(ctx context.Context, cluster client.Client, p v1.Package) []string {
	title, category := c.presentation(ctx, cluster, p)
	running := c.runningPackage(ctx, cluster, p)
	if c.Output != "wide" {
		running = inventory.ShortenDigests(running)
	}
	return []string{
		inventory.ShortName(p), inventory.InstalledStatus(p), inventory.Status(p, v1.TypeHealthy), running,
		terminal.Age(p.GetCreationTimestamp().Time, time.Now()), string(inventory.ReasonOf(p)),
		p.PackageStatus().CurrentRevision, p.PackageStatus().ResolvedDigest, title, category,
	}
}

// installRow returns the cells of an install object in the table. Whether it is installed, and the cells of -o wide, are
// those of the package that it uses.
func (c *ListCmd) installRow(ctx context.Context, cluster client.Client, all *inventory.Inventory, in packagesv1alpha1.Install) []string {
	used, installed := all.InstalledBy(in), string(corev1.ConditionFalse)
	switch {
	case in.GetDeletionTimestamp() != nil:
		installed = "Deleting"
	case used != nil:
		installed = inventory.InstalledStatus(used)
	}
	row := []string{
		inventory.InstallName(in), installed, inventory.Status(in, v1.TypeReady), inventory.RequestedPackage(in),
		terminal.Age(in.GetCreationTimestamp().Time, time.Now()), string(inventory.Explicit),
	}
	if used != nil && c.Output == "wide" {
		return append(row, c.row(ctx, cluster, used)[len(row):]...)
	}
	return append(row, make([]string, len(packageTable.WideHeader))...)
}

// presentation returns the title and the category of a package for a wide table. A user may read packages only; they are
// then empty.
func (c *ListCmd) presentation(ctx context.Context, cluster client.Client, p v1.Package) (title, category string) {
	name := p.PackageStatus().CurrentRevision
	if c.Output != "wide" || name == "" {
		return "", ""
	}
	rev := p.NewRevision()
	if err := cluster.Get(ctx, client.ObjectKey{Name: name}, rev); err != nil {
		return "", ""
	}
	shown := presentationOf(rev)
	return firstLine(shown.Title), firstLine(shown.Category)
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

// ageColumn is the column of packageTable that changes without a change of the package.
const ageColumn = 4

// watch prints the packages, and then a row for each change of a row, until the command is interrupted.
func (c *ListCmd) watch(env *terminal.Env, selector labels.Selector) error {
	if c.Output != "" && c.Output != "wide" {
		return terminal.ErrUsage.New(nil, "--watch prints a table").WithDo("Omit -o %s, or use `kubectl get pkg --watch`.", c.Output)
	}
	cluster, err := c.Client(env.Context)
	if err != nil {
		return err
	}
	var watches []*inventory.Watch
	header := c.Columns(packageTable)
	rows, printed := [][]string{header}, map[string][]string{}
	for _, kind := range v1.PackageKinds() {
		w := &inventory.Watch{Cluster: cluster, Kind: kind, Selector: selector}
		all, err := w.List(env.Context)
		if err != nil {
			return connection.Classify(err, "list %ss", strings.ToLower(kind))
		}
		for _, e := range all {
			if row := c.change(env.Context, cluster, printed, e); row != nil {
				rows = append(rows, row)
			}
		}
		watches = append(watches, w)
	}
	table := terminal.NewRows(env.Stdout, rows...)
	for _, row := range rows {
		if err := table.Write(row...); err != nil {
			return err
		}
	}
	// Events of all kinds are printed in the order in which they arrive.
	events := make(chan inventory.Event)
	group, ctx := errgroup.WithContext(env.Context)
	for _, w := range watches {
		group.Go(func() error { return w.Run(ctx, events) })
	}
	group.Go(func() error {
		for {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case e := <-events:
				if err := table.Write(c.change(ctx, cluster, printed, e)...); err != nil {
					return err
				}
			}
		}
	})
	err = group.Wait()
	if env.Context.Err() != nil && errors.Is(err, context.Canceled) {
		return terminal.ExitCode(errcode.Interrupted.Exit) // The usual end of a watch needs no message.
	}
	return err
}

// change returns the row of a changed package, or nil if it is the row that was printed before.
func (c *ListCmd) change(ctx context.Context, cluster client.Client, printed map[string][]string, e inventory.Event) []string {
	name, row := inventory.ShortName(e.Package), c.row(ctx, cluster, e.Package)
	if e.Deleted {
		row[1], row[2] = "Deleted", "-"
	}
	row = c.Cells(packageTable, row)
	same := slices.Clone(row)
	same[ageColumn] = ""
	if slices.Equal(printed[name], same) {
		return nil
	}
	printed[name] = same
	if e.Deleted {
		delete(printed, name)
	}
	return row
}
