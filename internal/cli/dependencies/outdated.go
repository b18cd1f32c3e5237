package dependencies

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/selection"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/origin"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
	"github.com/xpkg-dev/xpkg/pkg/solver"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

// ErrNoVersion is the code for an update without a compatible version.
var ErrNoVersion = errcode.Code{
	Name: "NoCompatibleVersion", Class: errcode.NotFound,
	Cause: "No release in the repository of the package is compatible with the installed packages, or the versions are unknown.",
	Fix:   "Compare the versions with `xpkg outdated`, and name one after the package in `xpkg update`.",
}

// OutdatedCmd implements `xpkg outdated`.
type OutdatedCmd struct {
	Names     []string `arg:"" optional:"" name:"name" complete:"package" help:"Packages, each as NAME, KIND/NAME or KIND NAME, or as a repository. With --lock, packages of the lock file, each as its repository or the end of it. Default is all packages."`
	All       bool     `help:"Also show packages that are up to date."`
	Namespace string   `default:"crossplane-system" config:"" help:"Namespace of the manager, which contains the pull secrets."`
	TreeFlags
	selection.SelectorFlag
	connection.ClusterFlags
	terminal.ListOutputFlag
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

// outdatedView is a package and its available versions.
type outdatedView struct {
	Package   string `json:"package"`
	Installed string `json:"installed"`
	// Compatible is the newest release that all dependents accept and whose own dependencies have a solution,
	// and Newest the newest release. They are empty if there is none.
	Compatible string `json:"compatible"`
	Newest     string `json:"newest"`
	// HeldBy lists the dependents that do not accept the newest release.
	HeldBy []string `json:"heldBy,omitempty"`
	// Needs lists the dependencies of the newest release on packages that users installed at another version.
	Needs []string `json:"needs,omitempty"`
	// ListedBy is the repository that has listed the versions, if it is a different one, such as a mirror,
	// which can be outdated.
	ListedBy string `json:"listedBy,omitempty"`
	// Tag reports that the tag was moved or deleted since the package was locked or installed.
	Tag string `json:"tag,omitempty"`
	// Status describes the status of the installed version, if it was yanked, retracted or deprecated.
	Status string `json:"status,omitempty"`
	// NewestStatus describes the status of the newest release, if it was yanked, retracted or deprecated.
	NewestStatus string `json:"newestStatus,omitempty"`
	// Unknown is the reason why the versions, or the compatible ones, are unknown.
	Unknown string `json:"unknown,omitempty"`
	// digest is the short digest of the package.
	digest string
	// accepted are the versions that all dependents accept, newest first.
	accepted []string
	// tags are all tags of the repository.
	tags []string
}

// Run compares the installed or locked versions with the versions in registries.
func (c *OutdatedCmd) Run(env *terminal.Env) (err error) {
	f, roots, locate, err := c.closure(env)
	if err != nil {
		return err
	}
	r, err := c.open(env, locate)
	if err != nil {
		return err
	}
	defer terminal.Close(&err, r)
	packages, err := c.selected(env, f)
	if err != nil {
		return err
	}
	rows, err := outdated(env, r, f, packages, roots)
	if err != nil {
		return err
	}
	noteListings(env, rows)
	var shown []outdatedView
	noted := false
	for _, row := range rows {
		if row.Unknown != "" {
			fmt.Fprintf(env.Stderr, "note: the %s of %s are unknown: %s\n", row.unknown(), terminal.Safe(row.Package), terminal.Safe(row.Unknown))
		}
		if row.Status != "" {
			other := ""
			if !row.behind() {
				other = fmt.Sprintf("; `xpkg versions %s` shows the other versions", terminal.Safe(row.Package))
			}
			fmt.Fprintf(env.Stderr, "note: %s %s is %s%s\n", terminal.Safe(row.Package), terminal.Safe(row.Installed), terminal.Safe(row.Status), other)
		}
		if row.Tag != "" {
			fmt.Fprintf(env.Stderr, "note: %s, but %s is %s\n", terminal.Safe(row.Tag), terminal.Safe(row.digest), c.state())
		}
		if c.All || row.behind() {
			shown = append(shown, row)
		}
		noted = noted || row.Status != "" || row.Tag != "" || row.Unknown != ""
	}
	var names []string
	for _, x := range shown {
		names = append(names, x.Package)
	}
	table := terminal.Table{Header: []string{"PACKAGE", "INSTALLED", "COMPATIBLE", "NEWEST", "HELD BY"}, Empty: "All packages are up to date."}
	switch {
	case noted:
		table.Empty = "No newer version is available."
	case len(c.Names) > 0:
		table.Empty = strings.Join(c.Names, ", ") + ": up to date."
	}
	together := false
	for _, x := range shown {
		table.Rows = append(table.Rows, []string{x.Package, x.Installed, cmp.Or(x.Compatible, "-"), cmp.Or(x.Newest, "-"), x.held()})
		together = together || len(x.Needs) > 0
	}
	if err := c.Print(env.Stdout, terminal.List{Value: append([]outdatedView{}, shown...), Names: names, Table: table, Empty: env.Stderr}); err != nil {
		return err
	}
	if together && c.Lock == "" {
		fmt.Fprintln(env.Stderr, "note: COMPATIBLE is the version for an update of one package. `xpkg update --all --dry-run` shows the newest versions that work together.")
	}
	return nil
}

// unknown returns the words for the versions that are unknown: the compatible ones if the repository was read.
func (v outdatedView) unknown() string {
	if v.Newest != "" {
		return "compatible versions"
	}
	return "versions"
}

// held returns why the newest release is not compatible with the other packages.
func (v outdatedView) held() string {
	reasons := slices.Clone(v.HeldBy)
	for _, dep := range v.Needs {
		reasons = append(reasons, "needs "+dep)
	}
	if v.NewestStatus != "" && v.Compatible != v.Newest {
		reasons = append(reasons, "it is "+v.NewestStatus)
	}
	if len(reasons) == 0 && v.Compatible != v.Newest && v.Unknown == "" && slices.Contains(v.accepted, v.Newest) {
		return "its dependencies"
	}
	return strings.Join(reasons, ", ")
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
	return slices.DeleteFunc(slices.Clone(f.Packages), func(p lockfile.Package) bool { return !repositories[p.Repository] }), nil
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

// open returns a resolver that asks the registry only once for each version.
func (c *OutdatedCmd) open(env *terminal.Env, locate locateFunc) (*rootResolver, error) {
	r, err := c.resolverFlags.open(env, locate)
	if err != nil {
		return nil, err
	}
	r.Registry = &rememberingRegistry{Registry: r.Registry}
	return r, nil
}

// state returns the word for the compared packages: installed or locked.
func (c *OutdatedCmd) state() string {
	if c.Lock != "" {
		return "locked"
	}
	return "installed"
}

// noteListings prints which repositories have listed the versions of packages, if these are not their own.
func noteListings(env *terminal.Env, rows []outdatedView) {
	const most = 3
	listed := slices.DeleteFunc(slices.Clone(rows), func(row outdatedView) bool { return row.ListedBy == "" })
	if len(listed) > most {
		fmt.Fprintf(env.Stderr, "note: the versions of %s are listed by other repositories, which -o json names: those of %s by %s\n",
			wording.Count(len(listed), "package"), terminal.Safe(listed[0].Package), terminal.Safe(listed[0].ListedBy))
		return
	}
	for _, row := range listed {
		fmt.Fprintf(env.Stderr, "note: the versions of %s are listed by %s\n", terminal.Safe(row.Package), terminal.Safe(row.ListedBy))
	}
}

// NewestCompatible returns the newest version of an installed package that its dependents accept and whose own
// dependencies have a solution: the installed version, if there is no newer one. Notes name newer versions and why they
// are not compatible.
func (c *OutdatedCmd) NewestCompatible(env *terminal.Env, p v1.Package) (tag string, notes []string, err error) {
	f, roots, locate, err := c.closure(env)
	if err != nil {
		return "", nil, err
	}
	r, err := c.open(env, locate)
	if err != nil {
		return "", nil, err
	}
	defer terminal.Close(&err, r)
	i := slices.IndexFunc(f.Packages, func(l lockfile.Package) bool { return l.Repository == inventory.RepositoryOf(p) })
	if i < 0 {
		return "", nil, ErrNoVersion.New(nil, "%s is not installed from a registry", inventory.ShortName(p)).
			WithDo("Install it from a registry, which has versions to update to.")
	}
	rows, err := outdated(env, r, f, f.Packages[i:i+1], roots)
	if err != nil {
		return "", nil, err
	}
	row := rows[0]
	switch {
	case row.Compatible == "" && row.Unknown != "":
		return "", nil, ErrNoVersion.New(errors.New(row.Unknown), "the %s of %s are unknown", row.unknown(), row.Package).
			WithDo("List the versions with `xpkg versions %s`, and name one in `xpkg update`.", row.Package)
	case row.Compatible == "":
		return "", nil, ErrNoVersion.New(nil, "no release of %s is compatible with the installed packages", row.Package).
			WithDo("Compare the versions with `xpkg outdated --all`. To plan one, run `xpkg plan update %s %s`.", inventory.ShortName(p), cmp.Or(row.Newest, row.Installed))
	case row.Compatible == row.Newest:
	case row.NewestStatus != "":
		notes = append(notes, fmt.Sprintf("%s %s exists, but is %s", row.Package, row.Newest, row.NewestStatus))
	case len(row.HeldBy) > 0:
		notes = append(notes, fmt.Sprintf("%s %s exists, but is not accepted by %s", row.Package, row.Newest, strings.Join(row.HeldBy, ", ")))
	case len(row.Needs) > 0:
		notes = append(notes, fmt.Sprintf("%s %s exists, but needs %s; `xpkg update --all --dry-run` shows the newest versions that work together", row.Package, row.Newest, strings.Join(row.Needs, ", ")))
	default:
		notes = append(notes, fmt.Sprintf("%s %s exists, but its dependencies have no solution with the installed packages", row.Package, row.Newest))
	}
	return row.Compatible, notes, nil
}

// closure returns the packages to compare, the roots that an upgrade of one of them keeps, and the function
// that locates packages with the configuration of the cluster.
func (c *OutdatedCmd) closure(env *terminal.Env) (lockfile.File, []dependency.Root, locateFunc, error) {
	if c.Lock != "" {
		f, err := c.of(env, nil)
		return f, f.Roots, nil, err
	}
	cluster, all, err := selection.Read(env.Context, c.ClusterFlags, inventory.LoadNamed)
	if err != nil {
		return lockfile.File{}, nil, nil, err
	}
	f := all.Closure()
	roots := f.Roots
	f.Roots = nil // Users can update the packages that they installed.
	return f, roots, locator(cluster, c.Namespace, all), nil
}

// locator returns the function that locates packages with the configuration of a cluster.
func locator(cluster client.Reader, namespace string, all *inventory.Inventory) locateFunc {
	finder := origin.Finder{Reader: origin.ListOnce(cluster), Secrets: cluster, Namespace: namespace}
	secrets := pullSecrets(all.Packages)
	return func(ctx context.Context, ref oci.Reference) (fetch.Origin, error) {
		o, _, err := finder.Find(ctx, ref.String(), secrets[ref.Location()])
		return o, err
	}
}

// pullSecrets returns the pull secrets of installed packages, by the locations of their repositories.
func pullSecrets(packages []v1.Package) map[string][]string {
	out := map[string][]string{}
	for _, p := range packages {
		at := oci.RepositoryLocation(p.PackageSpec().Package)
		for _, s := range p.PackageSpec().PackagePullSecrets {
			out[at] = append(out[at], s.Name)
		}
	}
	return out
}

// lookups is the maximum number of concurrent requests for lists of versions.
const lookups = 16

// outdated compares packages of a closure with the versions in their repositories. It fails if
// no repository can be read.
func outdated(env *terminal.Env, r *rootResolver, f lockfile.File, packages []lockfile.Package, roots []dependency.Root) ([]outdatedView, error) {
	p := terminal.StartTask(env.Stderr, "reading the versions of %s", wording.Count(len(packages), "package"))
	defer p.End()
	out, errs := make([]outdatedView, len(packages)), make([]error, len(packages))
	var group errgroup.Group
	group.SetLimit(lookups)
	for i, p := range packages {
		group.Go(func() error {
			var list fetch.TagList
			list, errs[i] = r.tags(env.Context, p)
			out[i] = compareVersions(&f, p, list.Tags)
			if status := r.status(env.Context, p, p.Version, p.Digest, list.Tags); status != nil {
				out[i].Status = resolver.Describe(*status)
			}
			if from := list.From.Name(); errs[i] == nil && from != p.Repository {
				out[i].ListedBy = from
			}
			if change, err := tagChange(env.Context, r.content, r.locate, p); errs[i] == nil && err == nil {
				out[i].Tag = change
			}
			if errs[i] != nil {
				out[i].Unknown = errs[i].Error()
			}
			return nil
		})
	}
	_ = group.Wait() // Each row has its own error.
	for i, p := range packages {
		if errs[i] == nil {
			out[i].Compatible = r.newestSolvable(env.Context, f, roots, p, &out[i])
			out[i].Needs = r.unsatisfied(env.Context, f, roots, p, out[i])
		}
	}
	if len(errs) > 0 && !slices.Contains(errs, nil) {
		return nil, errs[0]
	}
	return out, env.Context.Err()
}

// tags returns the tags of the repository of a package.
func (r *rootResolver) tags(ctx context.Context, p lockfile.Package) (fetch.TagList, error) {
	ref := p.RepositoryReference()
	ref.Tag = cmp.Or(p.Version, "latest") // Prefixes are compared with whole references.
	o, err := r.locate(ctx, ref)
	if err != nil {
		return fetch.TagList{}, err
	}
	return r.content.Tags(ctx, o)
}

// compareVersions selects the suitable versions among the tags.
func compareVersions(f *lockfile.File, p lockfile.Package, tags []string) outdatedView {
	out := outdatedView{Package: p.Repository, Installed: p.ShortVersion(), digest: p.Digest.Short(), tags: tags}
	releases := version.ParseConstraint("*").Filter(tags)
	if len(releases) == 0 {
		return out
	}
	out.Newest = releases[0]
	for _, by := range binding(f, p.Repository) {
		if !version.ParseConstraint(by.Constraint).Accepts(out.Newest) {
			out.HeldBy = append(out.HeldBy, fmt.Sprintf("%s (%s)", cmp.Or(by.By, path.Base(by.Package)), by.Constraint))
		}
	}
	for _, tag := range releases {
		if acceptedByAll(f, p.Repository, tag) {
			out.accepted = append(out.accepted, tag)
		}
	}
	return out
}

// newestSolvable returns the newest accepted version with a solution in which the other roots keep their
// versions and dependencies can change. The installed version always has a solution. As in other solutions, a yanked or retracted version
// is not selected, and a deprecated one only if there is no other.
func (r *rootResolver) newestSolvable(ctx context.Context, f lockfile.File, roots []dependency.Root, p lockfile.Package, row *outdatedView) string {
	q := resolver.Request{}
	for _, root := range roots {
		if root.Package != p.Repository {
			q.Roots = append(q.Roots, root)
		}
	}
	for _, other := range f.Packages {
		if other.Repository != p.Repository {
			q.Locked = append(q.Locked, other)
		}
	}
	deprecated := ""
	for _, tag := range row.accepted {
		if tag == p.Version {
			if row.Status != "" && deprecated != "" {
				return deprecated
			}
			return tag
		}
		with := q
		with.Roots = append(slices.Clip(q.Roots), dependency.Root{Package: p.Repository, Constraint: tag, Exact: true})
		got, err := r.resolveConnected(ctx, f, with, p.Repository)
		if err == nil {
			to, _ := got.Find(p.Repository)
			status := r.status(ctx, p, to.Version, to.Digest, row.tags)
			if status == nil {
				return tag
			}
			if tag == row.Newest {
				row.NewestStatus = resolver.Describe(*status)
			}
			if !status.Excludes() {
				deprecated = cmp.Or(deprecated, tag)
			}
			continue
		}
		if errcode.From(err).Code.Class != errcode.Conflict {
			row.Unknown = err.Error()
			return ""
		}
	}
	return deprecated
}

// resolveConnected resolves a request for one more version of a package. If that fails, only the roots that dependencies connect with the
// package are resolved: a dependency of another package that cannot be read, or a conflict of other packages, does not concern it.
// The solution is then a conflict if it moves one of the other roots, or a package to a version that the others do not accept.
func (r *rootResolver) resolveConnected(ctx context.Context, f lockfile.File, q resolver.Request, repository string) (resolver.Result, error) {
	got, failed := r.Resolve(ctx, q)
	if failed == nil {
		return got, nil
	}
	connected := f.Graph().Component(repository)
	others := slices.DeleteFunc(slices.Clone(q.Roots), func(root dependency.Root) bool { return connected[root.Package] })
	if len(others) == 0 {
		return got, failed
	}
	q.Roots = slices.DeleteFunc(slices.Clone(q.Roots), func(root dependency.Root) bool { return !connected[root.Package] })
	got, err := r.Resolve(ctx, q)
	if err != nil {
		return got, err
	}
	for _, to := range got.Packages {
		before, ok := f.Find(to.Repository)
		if !ok || connected[to.Repository] || to.Digest == before.Digest {
			continue
		}
		isRoot := slices.ContainsFunc(others, func(root dependency.Root) bool { return root.Package == to.Repository })
		if isRoot || !acceptedByAll(&f, to.Repository, to.Version) {
			return got, solver.ErrUnsolvable.New(nil, "it needs another version of %s", to.Repository)
		}
	}
	return got, nil
}

// unsatisfied returns the dependencies of the newest release of a package that other roots do not satisfy at their
// versions, each with its constraint. It returns none for a compatible release.
func (r *rootResolver) unsatisfied(ctx context.Context, f lockfile.File, roots []dependency.Root, p lockfile.Package, row outdatedView) []string {
	if row.Unknown != "" || row.Compatible == row.Newest {
		return nil
	}
	ref := p.RepositoryReference()
	ref.Tag = row.Newest
	newest, err := r.Registry.Metadata(ctx, ref)
	if err != nil {
		return nil
	}
	var out []string
	for _, d := range newest.Meta.Dependencies() {
		name := oci.RepositoryName(d.Package)
		other, ok := f.Find(name)
		isRoot := slices.ContainsFunc(roots, func(root dependency.Root) bool { return root.Package == name })
		if ok && isRoot && !version.ParseConstraint(d.Constraint).Accepts(other.Version) {
			out = append(out, path.Base(name)+" "+d.Constraint)
		}
	}
	return out
}

// status returns the status of a version of a package, and nil if it has none or if it cannot be read: it is only a note.
func (r *rootResolver) status(ctx context.Context, p lockfile.Package, tag string, d oci.Digest, tags []string) *catalog.Status {
	ref := p.RepositoryReference()
	ref.Tag = cmp.Or(tag, "latest") // Prefixes are compared with whole references.
	status, err := resolver.StatusOf(ctx, r.Registry, ref.WithDigest(d), tags)
	if err != nil {
		return nil
	}
	return status
}

// binding returns the dependents that constrain the version of a package.
func binding(f *lockfile.File, repository string) []lockfile.Dependent {
	return append(f.Dependents(repository), f.OptionalDependents(repository)...)
}

func acceptedByAll(f *lockfile.File, repository, tag string) bool {
	for _, by := range binding(f, repository) {
		if !version.ParseConstraint(by.Constraint).Accepts(tag) {
			return false
		}
	}
	return true
}

// behind reports whether a newer version exists. It returns false for a package that was installed without a version.
func (v outdatedView) behind() bool {
	is, err := semver.NewVersion(v.Installed)
	if err != nil {
		return v.Newest != ""
	}
	newest, err := semver.NewVersion(v.Newest)
	return err == nil && newest.GreaterThan(is)
}
