package packages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apiserver"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/selection"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/frontend"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// ListCmd implements `xpkg list`.
type ListCmd struct {
	Namespace string `short:"n" placeholder:"NAMESPACE" help:"Print only the objects of the first generation in this namespace. This requires permissions in the namespace only."`
	Watch     bool   `short:"w" help:"Print the list, and then a line for each change of an object, until interrupted."`
	selection.SelectorFlag
	connection.ClusterFlags
	view.ListOutputFlag
}

// Run prints the packages that are installed, and the objects of the first generation.
func (c *ListCmd) Run(env *terminal.Env) error {
	selector, err := c.Labels()
	if err != nil {
		return err
	}
	if c.Watch {
		return c.watch(env, selector)
	}
	if c.Namespace != "" {
		return c.runNamespace(env, selector)
	}
	cluster, all, err := selection.Read(env.Context, c.ClusterFlags, inventory.LoadPackages)
	if err != nil {
		return adviseNamespace(err)
	}
	return c.Print(env.Stdout, c.list(env, cluster, all, allObjects(env, cluster, all), selector))
}

// allObjects returns the packages, and the objects of the first generation of all namespaces.
func allObjects(env *terminal.Env, cluster client.Client, all *inventory.Inventory) []inventory.Object {
	var found []inventory.Object
	for _, p := range all.Packages {
		found = append(found, p)
	}
	for _, o := range env.Frontend.All(env.Context, cluster) {
		found = append(found, o)
	}
	return found
}

// adviseNamespace adds to the error of a user without permissions for packages how the objects of a namespace are
// listed.
func adviseNamespace(err error) error {
	if !errors.Is(err, apply.ErrForbidden) {
		return err
	}
	failed := errcode.From(err)
	return failed.Also("With permissions in one namespace, name it with --namespace.")
}

// runNamespace prints the objects of the first generation of a namespace. It reads the packages that they use if it
// may.
func (c *ListCmd) runNamespace(env *terminal.Env, selector labels.Selector) error {
	cluster, err := c.Client(env.Context)
	if err != nil {
		return err
	}
	objects, forbidden, err := inventory.ReadNamespace(env.Context, cluster, env.Frontend, c.Namespace)
	if err != nil {
		return err
	}
	all, err := inventory.LoadAllowed(env.Context, cluster, inventory.LoadPackages)
	if err != nil {
		return err
	}
	if forbidden != nil {
		notePartial(env, "the list is not complete", forbidden)
	}
	if all.Forbidden != nil && c.Output == "wide" {
		notePartial(env, "the columns of the packages are empty", all.Forbidden)
	}
	found := make([]inventory.Object, len(objects))
	for i, o := range objects {
		found[i] = o
	}
	return c.Print(env.Stdout, c.list(env, cluster, all, found, selector))
}

// notePartial prints a note about a part of an answer that the user is not allowed to read.
func notePartial(env *terminal.Env, missing string, forbidden error) {
	fmt.Fprintf(env.Stderr, "note: %s: %s\n", missing, terminal.Safe(forbidden.Error()))
}

// list returns those of some packages and objects of the first generation that have the selected labels.
func (c *ListCmd) list(
	env *terminal.Env, cluster client.Client, all *inventory.Inventory, found []inventory.Object, selector labels.Selector,
) view.List {
	ctx := env.Context
	found = selection.Selected(found, selector)
	table := packageTable
	table.Empty = c.emptyText(selector)
	if c.Namespace != "" && selector.Empty() {
		if n := len(all.Packages); n > 0 {
			table.Empty += fmt.Sprintf(" Packages are cluster-scoped: run `xpkg list` to see %s.", wording.Count(n, "package"))
			if len(found) == 0 && c.Output != "" && c.Output != "wide" {
				fmt.Fprintf(env.Stderr, "note: %s\n", terminal.Safe(table.Empty)) // Only a table is replaced by the line.
			}
		}
	}
	for _, o := range found {
		table.Rows = append(table.Rows, c.row(ctx, cluster, o, all.InstalledBy))
	}
	return view.List{Value: inventory.List(found), Names: inventory.ResourceNames(found), Table: table, Empty: env.Stderr}
}

// emptyText returns the line for a list without rows.
func (c *ListCmd) emptyText(selector labels.Selector) string {
	switch {
	case !selector.Empty():
		return fmt.Sprintf("No installed package has the labels %s.", selector)
	case c.Namespace != "":
		return fmt.Sprintf("No objects of the first generation are in the namespace %s.", c.Namespace)
	}
	return packageTable.Empty
}

// packageTable is the table of packages without its rows.
var packageTable = view.Table{
	Header:     []string{"NAME", "INSTALLED", "HEALTHY", "VERSION", "PACKAGE", "AGE", "INSTALL REASON"},
	WideHeader: []string{"REVISION", "DIGEST", "KINDS", "TITLE", "CATEGORY"},
	Least:      []string{"INSTALL REASON", "PACKAGE", "AGE"},
	Empty:      "No packages are installed.",
}

// row returns the cells of an object in the table. The function used returns the package that an install object uses,
// or nil.
func (c *ListCmd) row(
	ctx context.Context, cluster client.Client, o inventory.Object, used func(*frontend.Object) v1.Package,
) []string {
	switch o := o.(type) {
	case v1.Package:
		return c.packageRow(ctx, cluster, o)
	case *frontend.Object:
		return c.objectRow(ctx, cluster, o, used(o))
	}
	return nil
}

func (c *ListCmd) packageRow(ctx context.Context, cluster client.Client, p v1.Package) []string {
	kinds, title, category := c.revisionCells(ctx, cluster, p)
	return []string{
		inventory.ShortName(p), inventory.InstalledStatus(p), inventory.Status(p, v1.TypeHealthy),
		c.versionCell(ctx, cluster, p),
		c.packageCell(p.PackageSpec().Package), age(p), string(inventory.ReasonOf(p)),
		p.PackageStatus().CurrentRevision, p.PackageStatus().ResolvedDigest, kinds, title, category,
	}
}

// objectRow returns the cells of an object of an API in the table. Whether an install object is installed, and its
// cells of -o wide, are those of the package that it uses, which may be nil.
func (c *ListCmd) objectRow(ctx context.Context, cluster client.Client, o *frontend.Object, used v1.Package) []string {
	installed, version := string(corev1.ConditionFalse), versionOf(o.Package)
	switch {
	case o.GetDeletionTimestamp() != nil:
		installed = deletingStatus
	case used != nil:
		installed, version = inventory.InstalledStatus(used), c.versionCell(ctx, cluster, used)
	case o.IsInstalled:
		installed = string(corev1.ConditionTrue)
	}
	row := []string{
		inventory.ShortName(o), installed, inventory.Status(o, v1.TypeReady), version, c.packageCell(o.Package),
		age(o), string(inventory.Explicit),
	}
	if used != nil && c.Output == "wide" {
		return append(row, c.packageRow(ctx, cluster, used)[len(row):]...)
	}
	return append(row, "", "", "", firstLine(o.Presentation.Title), firstLine(o.Presentation.Category))
}

// deletingStatus is the status of an object that is being deleted, in place of that of a condition.
const deletingStatus = "Deleting"

func age(o inventory.Object) string { return terminal.Age(o.GetCreationTimestamp().Time, time.Now()) }

// packageCell returns the repository of a reference, or all of it for a wide table.
func (c *ListCmd) packageCell(reference string) string {
	if c.Output == "wide" {
		return reference
	}
	return oci.RepositoryName(reference)
}

// revisionCells returns the numbers of active and offered kinds of a package, its title and its category for a wide
// table. A user may read packages only; they are then empty.
func (c *ListCmd) revisionCells(
	ctx context.Context, cluster client.Client, p v1.Package,
) (kinds, title, category string) {
	name := p.PackageStatus().CurrentRevision
	if c.Output != "wide" || name == "" {
		return "", "", ""
	}
	rev := p.NewRevision()
	if err := cluster.Get(ctx, client.ObjectKey{Name: name}, rev); err != nil {
		return "", "", ""
	}
	if k := rev.RevisionStatus().Kinds; k != nil && k.Offered > 0 {
		kinds = fmt.Sprintf("%d/%d", k.Active, k.Offered)
	}
	shown := presentationOf(rev)
	return kinds, firstLine(shown.Title), firstLine(shown.Category)
}

// versionOf returns the tag of a reference, or its short digest if it has none. The reference can lack its registry, as
// those of objects of the first generation do.
func versionOf(reference string) string {
	name, _, _ := strings.Cut(reference, " ")
	if version := inventory.ShortVersion(name); version != name {
		return version
	}
	if at := strings.LastIndexByte(name, ':'); at > strings.LastIndexByte(name, '/') {
		return name[at+1:]
	}
	return "-"
}

// versionCell returns the version that a package requests, and the one that runs in its place if it is not healthy.
func (c *ListCmd) versionCell(ctx context.Context, cluster client.Client, p v1.Package) string {
	cell := versionOf(p.PackageSpec().Package)
	if !inventory.MayRunAnother(p) {
		return cell
	}
	// A user may read packages only.
	revisions, _ := inventory.ReadRevisions(ctx, cluster, p)
	if running := inventory.RunningInstead(p, revisions); running != nil {
		cell += " (" + running.String() + ")"
	}
	return cell
}

// ageColumn is the column of packageTable that changes without a change of the object.
const ageColumn = 5

// watch prints the list, and then a row for each change of a row, until the command is interrupted. The header of a
// list that begins empty precedes the first row, as wide as that row.
func (c *ListCmd) watch(env *terminal.Env, selector labels.Selector) error {
	if c.Output != "" && c.Output != "wide" {
		return terminal.ErrUsage.New(nil, "--watch prints a table").
			WithDo("Omit -o %s, or use `kubectl get pkg --watch`.", c.Output)
	}
	cluster, err := c.Client(env.Context)
	if err != nil {
		return err
	}
	watches, rows, err := c.startWatches(env, cluster, selector)
	if err != nil {
		return err
	}
	all := newWatchedList(c, cluster)
	var table *view.Rows
	write := func(lines [][]string) (err error) {
		if table == nil && len(lines) > 0 {
			list := c.Selected(packageTable)
			list.Rows = lines
			table, err = list.Begin(env.Stdout)
			return err
		}
		for _, line := range lines {
			if err := table.Write(line...); err != nil {
				return err
			}
		}
		return nil
	}
	for _, e := range rows {
		all.note(e)
	}
	var lines [][]string
	for _, e := range rows {
		lines = append(lines, all.changed(env.Context, e.Object)...)
	}
	if len(lines) == 0 {
		fmt.Fprintln(env.Stderr, terminal.Safe(c.emptyText(selector)))
	}
	if err := write(lines); err != nil {
		return err
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
				if err := write(all.change(ctx, e)); err != nil {
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

// startWatches lists the objects of every kind, and returns the watches of their changes. Kinds of other APIs that the
// cluster does not serve, or that the user is not allowed to read, are left out, as in the list.
func (c *ListCmd) startWatches(
	env *terminal.Env, cluster client.WithWatch, selector labels.Selector,
) (watches []*inventory.Watch, found []inventory.Event, err error) {
	var forbidden error
	for _, kind := range inventory.WatchedKinds(env.Frontend) {
		if c.Namespace != "" && kind.Group == v1.Group {
			continue
		}
		w := &inventory.Watch{
			Cluster: cluster, Frontend: env.Frontend, Kind: kind, Selector: selector, Namespace: c.Namespace,
		}
		all, err := w.List(env.Context)
		failed := apiserver.Classify(err, "list %ss", strings.ToLower(kind.Kind))
		switch {
		case err == nil:
			watches, found = append(watches, w), append(found, all...)
		case c.Namespace != "" && apierrors.IsForbidden(err):
			forbidden = cmp.Or(forbidden, failed)
		case c.Namespace == "" && kind.Group != v1.Group:
			return watches, found, nil
		default:
			return nil, nil, failed
		}
	}
	if len(watches) == 0 {
		return nil, nil, forbidden
	}
	return watches, found, nil
}

// watchedList has the objects of a list that is watched, and the rows that were printed.
type watchedList struct {
	cmd     *ListCmd
	cluster client.Client
	objects map[string]inventory.Object
	printed map[string][]string
}

func newWatchedList(cmd *ListCmd, cluster client.Client) *watchedList {
	return &watchedList{cmd, cluster, map[string]inventory.Object{}, map[string][]string{}}
}

// note records an object that was read or changed, or that is not selected any more.
func (l *watchedList) note(e inventory.Event) {
	l.objects[inventory.ShortName(e.Object)] = e.Object
	if e.IsGone() {
		delete(l.objects, inventory.ShortName(e.Object))
	}
}

// change records a change, and returns the rows that differ from those that were printed before: that of the object,
// and those of the install objects that use it.
func (l *watchedList) change(ctx context.Context, e inventory.Event) [][]string {
	l.note(e)
	var out [][]string
	if e.IsGone() {
		name, row := inventory.ShortName(e.Object), l.row(ctx, e.Object)
		row[1], row[2] = "Deleted", "-"
		if e.Unselected {
			row[1] = "Unselected"
		}
		delete(l.printed, name)
		out = append(out, row)
	} else {
		out = l.changed(ctx, e.Object)
	}
	p, ok := e.Object.(*v1.Provider)
	if !ok {
		return out
	}
	for _, name := range slices.Sorted(maps.Keys(l.objects)) {
		if in, ok := l.objects[name].(*frontend.Object); ok && in.Provider == p.Name {
			out = append(out, l.changed(ctx, in)...)
		}
	}
	return out
}

// changed returns the row of an object, or none if it is the row that was printed before.
func (l *watchedList) changed(ctx context.Context, o inventory.Object) [][]string {
	name, row := inventory.ShortName(o), l.row(ctx, o)
	same := slices.Clone(row)
	same[ageColumn] = ""
	if slices.Equal(l.printed[name], same) {
		return nil
	}
	l.printed[name] = same
	return [][]string{row}
}

func (l *watchedList) row(ctx context.Context, o inventory.Object) []string {
	row := l.cmd.row(ctx, l.cluster, o, func(in *frontend.Object) v1.Package { return l.used(ctx, in) })
	return row[:len(l.cmd.Selected(packageTable).Header)]
}

// used returns the package that an install object uses, or nil. A package that the selector leaves out is read.
func (l *watchedList) used(ctx context.Context, in *frontend.Object) v1.Package {
	name := in.Provider
	if name == "" {
		return nil
	}
	p := v1.NewPackage(v1.ProviderKind)
	p.SetName(name)
	if o, ok := l.objects[inventory.ShortName(p)]; ok {
		return o.(v1.Package)
	}
	if err := l.cluster.Get(ctx, client.ObjectKey{Name: name}, p); err != nil {
		return nil
	}
	return p
}
