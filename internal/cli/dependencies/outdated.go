package dependencies

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/content"
	"github.com/xpkg-dev/xpkg/internal/cli/report"
	"github.com/xpkg-dev/xpkg/internal/cli/selection"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/versions"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
)

// OutdatedCmd implements `xpkg outdated`.
type OutdatedCmd struct {
	Names     []string `arg:"" optional:"" name:"name" complete:"package" help:"Packages, each as NAME, KIND/NAME or KIND NAME, or as a repository. With --lock, packages of the lock file, each as its repository or the end of it. Default is all packages."`
	All       bool     `help:"Also show packages that are up to date."`
	Namespace string   `default:"crossplane-system" config:"" help:"Namespace of the manager, which contains the pull secrets."`
	TreeFlags
	selection.SelectorFlag
	connection.ClusterFlags
	view.ListOutputFlag
}

// Validate returns an error for a selector with a lock file or with names.
func (c *OutdatedCmd) Validate() error {
	if c.Selector != "" && c.Lock != "" {
		return errors.New("--selector selects installed packages, and cannot be used with --lock")
	}
	if len(c.Names) > 0 {
		return c.Check(len(c.Names))
	}
	return nil
}

// Run compares the installed or locked versions with the versions in registries.
func (c *OutdatedCmd) Run(env *terminal.Env) (err error) {
	f, roots, locate, err := c.closure(env)
	if err != nil {
		return err
	}
	r, err := c.openRemembering(env, locate)
	if err != nil {
		return err
	}
	defer terminal.Close(&err, r)
	packages, err := c.selected(env, f)
	if err != nil {
		return err
	}
	rows, err := finder(env, r).Compare(env.Context, f, packages, roots)
	if err != nil {
		return err
	}
	var shown []versions.Row
	notes, noted := listings(rows), false
	for _, row := range rows {
		if row.Unknown != "" {
			notes = append(notes, fmt.Sprintf("the %s of %s are unknown: %s", row.UnknownVersions(), row.Package, row.Unknown))
		}
		if row.Status != "" {
			other := ""
			if !row.Behind() {
				other = fmt.Sprintf("; `xpkg versions %s` shows the other versions", row.Package)
			}
			notes = append(notes, fmt.Sprintf("%s %s is %s%s", row.Package, row.Installed, row.Status, other))
		}
		if row.Tag != "" {
			notes = append(notes, fmt.Sprintf("%s, but %s is %s", row.Tag, row.Digest, c.state()))
		}
		if c.All || row.Behind() {
			shown = append(shown, row)
		}
		noted = noted || row.Status != "" || row.Tag != "" || row.Unknown != ""
	}
	view.Notes(env.Stderr, notes...)
	var names []string
	for _, x := range shown {
		names = append(names, x.Package)
	}
	table := view.Table{
		Header: []string{"PACKAGE", "INSTALLED", "COMPATIBLE", "NEWEST", "HELD BY"}, Least: []string{"HELD BY"},
		Empty: "All packages are up to date.",
	}
	switch {
	case noted:
		table.Empty = "No newer version is available."
	case len(c.Names) > 0:
		table.Empty = strings.Join(c.Names, ", ") + ": up to date."
	}
	together := false
	for _, x := range shown {
		table.Rows = append(table.Rows, []string{
			x.Package, x.Installed, cmp.Or(x.Compatible, "-"), cmp.Or(x.Newest, "-"), x.Held(),
		})
		together = together || len(x.Needs) > 0
	}
	if err := c.Print(env.Stdout, view.List{
		Value: append([]versions.Row{}, shown...), Names: names, Table: table, Empty: env.Stderr,
	}); err != nil {
		return err
	}
	if together && c.Lock == "" {
		fmt.Fprintln(
			env.Stderr,
			"note: COMPATIBLE is the version for an update of one package. `xpkg update --all --dry-run` shows the newest versions that work together.",
		)
	}
	return nil
}

// selected returns the packages of a closure that the names or the selector select, or all without one.
func (c *OutdatedCmd) selected(env *terminal.Env, f lockfile.File) ([]lockfile.Package, error) {
	if len(c.Names) == 0 && c.Selector == "" {
		return f.Packages, nil
	}
	repositories := map[string]bool{}
	if c.Lock != "" {
		for _, name := range c.Names {
			p, err := findLocked(f, name)
			if err != nil {
				return nil, err
			}
			repositories[p.Repository] = true
		}
	} else {
		selected, err := c.selectedInstalled(env)
		if err != nil {
			return nil, err
		}
		for _, p := range selected {
			repositories[inventory.RepositoryOf(p)] = true
		}
	}
	return slices.DeleteFunc(
		slices.Clone(f.Packages), func(p lockfile.Package) bool { return !repositories[p.Repository] },
	), nil
}

// selectedInstalled returns the installed packages that the names or the selector select.
func (c *OutdatedCmd) selectedInstalled(env *terminal.Env) ([]v1.Package, error) {
	_, all, err := selection.Read(env.Context, c.ClusterFlags, inventory.LoadPackages)
	if err != nil {
		return nil, err
	}
	if c.Selector != "" {
		return c.Select(all.Packages)
	}
	var out []v1.Package
	for _, name := range c.Names {
		from := slices.IndexFunc(all.Packages, func(p v1.Package) bool { return all.IsFrom(p, name) })
		if from >= 0 {
			out = append(out, all.Packages[from])
			continue
		}
		p, err := all.Find(inventory.Name(name))
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// state returns the word for the compared packages: installed or locked.
func (c *OutdatedCmd) state() string {
	if c.Lock != "" {
		return "locked"
	}
	return "installed"
}

// listings returns notes on the repositories that have listed the versions of packages, if these are not their own.
func listings(rows []versions.Row) (notes []string) {
	for _, row := range rows {
		if row.ListedBy != "" {
			notes = append(notes, fmt.Sprintf("the versions of %s are listed by %s", row.Package, row.ListedBy))
		}
	}
	return notes
}

// closure returns the packages to compare, the roots that an upgrade of one of them keeps, and the function
// that locates packages with the configuration of the cluster.
func (c *OutdatedCmd) closure(env *terminal.Env) (lockfile.File, []dependency.Root, versions.Locate, error) {
	if c.Lock != "" {
		f, err := c.of(env, nil)
		return f, f.Roots, nil, err
	}
	cluster, all, err := selection.Read(env.Context, c.ClusterFlags, inventory.LoadNamed)
	if err != nil {
		return lockfile.File{}, nil, nil, err
	}
	f, roots := versions.Installed(all)
	return f, roots, versions.LocatorIn(cluster, c.Namespace, all), nil
}

// openRemembering returns a resolver that asks the registry only once for each version.
func (f resolverFlags) openRemembering(env *terminal.Env, locate versions.Locate) (*rootResolver, error) {
	r, err := f.open(env, locate)
	if err != nil {
		return nil, err
	}
	r.Registry = versions.Remembering(r.Registry)
	return r, nil
}

// finder returns a finder of versions with a resolver.
func finder(env *terminal.Env, r *rootResolver) *versions.Finder {
	return &versions.Finder{
		Resolver: r.Resolver, Content: r.content, Locate: r.locate, Report: report.To(env.Stderr),
		Explain: func(_ context.Context, q resolver.Request) (resolver.Result, error) { return r.resolve(env, q) },
	}
}

// OpenFinder returns a finder of the versions of the packages of a cluster. It must be closed.
func OpenFinder(
	env *terminal.Env, f content.ContentFlags, cluster client.Reader, namespace string, all *inventory.Inventory,
) (*versions.Finder, io.Closer, error) {
	r, err := resolverFlags{ContentFlags: f}.openRemembering(env, versions.LocatorIn(cluster, namespace, all))
	if err != nil {
		return nil, nil, err
	}
	return finder(env, r), r, nil
}
