package versions

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/xpkg-dev/xpkg/internal/fetch"
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

// Row is a package and its available versions.
type Row struct {
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
	// Digest is the short digest of the package.
	Digest string `json:"-"`
	// accepted are the versions that all dependents accept, newest first.
	accepted []string
	// tags are all tags of the repository.
	tags []string
}

// AtOnce is the maximum number of concurrent requests for lists of versions.
const AtOnce = 16

// Compare compares packages of a closure with the versions in their repositories. It fails if
// no repository can be read.
func (r *Finder) Compare(
	ctx context.Context, f lockfile.File, packages []lockfile.Package, roots []dependency.Root,
) ([]Row, error) {
	p := r.Report.Task("reading the versions of %s", wording.Count(len(packages), "package"))
	defer p.End()
	out, errs := make([]Row, len(packages)), make([]error, len(packages))
	var group errgroup.Group
	group.SetLimit(AtOnce)
	for i, p := range packages {
		group.Go(func() error {
			var list fetch.TagList
			list, errs[i] = r.tags(ctx, p)
			out[i] = compareVersions(&f, p, list.Tags)
			if status := r.status(ctx, p, p.Version, p.Digest, list.Tags); status != nil {
				out[i].Status = resolver.Describe(*status)
			}
			if from := list.From.Name(); errs[i] == nil && from != p.Repository {
				out[i].ListedBy = from
			}
			if change, err := tagChange(ctx, r.Content, r.Locate, p.Reference()); errs[i] == nil && err == nil {
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
			out[i].Compatible = r.newestSolvable(ctx, f, roots, p, &out[i])
			out[i].Needs = r.unsatisfied(ctx, f, roots, p, out[i])
		}
	}
	if len(errs) > 0 && !slices.Contains(errs, nil) {
		return nil, errs[0]
	}
	return out, ctx.Err()
}

// tags returns the tags of the repository of a package.
func (r *Finder) tags(ctx context.Context, p lockfile.Package) (fetch.TagList, error) {
	ref := p.RepositoryReference()
	ref.Tag = cmp.Or(p.Version, "latest") // Prefixes are compared with whole references.
	o, err := r.Locate(ctx, ref)
	if err != nil {
		return fetch.TagList{}, err
	}
	return r.Content.Tags(ctx, o)
}

// compareVersions selects the suitable versions among the tags.
func compareVersions(f *lockfile.File, p lockfile.Package, tags []string) Row {
	out := Row{Package: p.Repository, Installed: p.ShortVersion(), Digest: p.Digest.Short(), tags: tags}
	releases := version.ParseConstraint("*").Filter(tags)
	out.accepted = acceptedVersions(f, p, releases)
	if len(releases) == 0 {
		return out
	}
	out.Newest = releases[0]
	for _, by := range Binding(f, p.Repository) {
		if !version.ParseConstraint(by.Constraint).Accepts(out.Newest) {
			out.HeldBy = append(out.HeldBy, fmt.Sprintf("%s (%s)", cmp.Or(by.By, path.Base(by.Package)), by.Constraint))
		}
	}
	return out
}

// acceptedVersions returns the releases that all dependents accept. A package at a prerelease, such as a build of
// xpkg dev, moves to newer releases only, and otherwise stays.
func acceptedVersions(f *lockfile.File, p lockfile.Package, releases []string) []string {
	is := version.Parse(p.Version)
	stays := is.Usable() && is.Prerelease()
	accepted := slices.DeleteFunc(slices.Clone(releases), func(tag string) bool {
		return stays && Older(tag, p.Version) || !acceptedByAll(f, p.Repository, tag)
	})
	if stays {
		accepted = append(accepted, p.Version)
	}
	return accepted
}

// newestSolvable returns the newest accepted version with a solution in which the other roots keep their versions and
// dependencies can change. The installed version always has a solution. As in other solutions, a yanked or retracted
// version is not selected, and a deprecated one only if there is no other.
func (r *Finder) newestSolvable(
	ctx context.Context, f lockfile.File, roots []dependency.Root, p lockfile.Package, row *Row,
) string {
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

// resolveConnected resolves a request for one more version of a package. If that fails, only the roots that
// dependencies connect with the package are resolved: a dependency of another package that cannot be read, or a
// conflict of other packages, does not concern it. The solution is then a conflict if it moves one of the other
// roots, or a package to a version that the others do not accept.
func (r *Finder) resolveConnected(
	ctx context.Context, f lockfile.File, q resolver.Request, repository string,
) (resolver.Result, error) {
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
func (r *Finder) unsatisfied(
	ctx context.Context, f lockfile.File, roots []dependency.Root, p lockfile.Package, row Row,
) []string {
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

// status returns the status of a version of a package, and nil if it has none or if it cannot be read: it is only a
// note.
func (r *Finder) status(
	ctx context.Context, p lockfile.Package, tag string, d oci.Digest, tags []string,
) *catalog.Status {
	ref := p.RepositoryReference()
	ref.Tag = cmp.Or(tag, "latest") // Prefixes are compared with whole references.
	status, err := resolver.StatusOf(ctx, r.Registry, ref.WithDigest(d), tags)
	if err != nil {
		return nil
	}
	return status
}

// Status describes the status of a package, or returns "" if it has none or if it cannot be read: it is only a note.
func (r *Finder) Status(ctx context.Context, p lockfile.Package) string {
	list, err := r.tags(ctx, p)
	if err != nil {
		return ""
	}
	status := r.status(ctx, p, p.Version, p.Digest, list.Tags)
	if status == nil {
		return ""
	}
	return resolver.Describe(*status)
}

// Binding returns the dependents that constrain the version of a package.
func Binding(f *lockfile.File, repository string) []lockfile.Dependent {
	return append(f.Dependents(repository), f.OptionalDependents(repository)...)
}

func acceptedByAll(f *lockfile.File, repository, tag string) bool {
	for _, by := range Binding(f, repository) {
		if !version.ParseConstraint(by.Constraint).Accepts(tag) {
			return false
		}
	}
	return true
}

// Behind reports whether a newer version exists. It returns false for a package that was installed without a version.
func (v Row) Behind() bool {
	if is := version.Parse(v.Installed); !is.Usable() {
		return v.Newest != ""
	}
	return Older(v.Installed, v.Newest)
}

// UnknownVersions returns the words for the versions that are unknown: the compatible ones if the repository was read.
func (v Row) UnknownVersions() string {
	if v.Newest != "" {
		return "compatible versions"
	}
	return "versions"
}

// Held returns why the newest release is not compatible with the other packages.
func (v Row) Held() string {
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

// SetAsideOf returns the tags of a repository that were not selected; see [resolver.Result.SetAside].
type SetAsideOf func(repository string) iter.Seq[solver.SetAside]

// Older reports whether the version a is lower than b. Tags that are not versions
// have no order, and those of xpkg dev have none among themselves.
func Older(a, b string) bool {
	x, y := version.Parse(a), version.Parse(b)
	return x.Usable() && y.Usable() && x.Compare(&y) < 0 && !(isDevelopment(a) && isDevelopment(b))
}

// isDevelopment reports whether a tag is that of a build of xpkg dev.
func isDevelopment(tag string) bool { return strings.HasPrefix(tag, DevelopmentPrefix) }

// DevelopmentPrefix is the prefix of the tags of the builds of xpkg dev, which end with the digest of the build.
const DevelopmentPrefix = "v0.0.0-dev.x"
