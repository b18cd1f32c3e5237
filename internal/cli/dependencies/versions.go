package dependencies

import (
	"context"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/selection"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/versions"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

// VersionsCmd implements `xpkg versions`.
type VersionsCmd struct {
	Repository string `arg:"" complete:"package" help:"Repository of a package, for example xpkg.crossplane.io/crossplane-contrib/provider-nop, or an installed package, as NAME or KIND/NAME."`
	All        bool   `help:"Also show prereleases, and tags that are no versions."`
	Namespace  string `default:"crossplane-system" config:"" help:"Namespace of the manager, which contains the pull secrets."`
	resolverFlags
	connection.ClusterFlags
	view.ListOutputFlag
}

// versionView is a tag of a repository.
type versionView struct {
	Tag        string `json:"tag"`
	Prerelease bool   `json:"prerelease,omitempty"`
	// Unusable is the reason why the tag is not a version.
	Unusable string `json:"unusable,omitempty"`
	// Status is the status in the registry, such as yanked.
	Status *catalog.Status `json:"status,omitempty"`
}

// Run prints the versions in a repository, newest first.
func (c *VersionsCmd) Run(env *terminal.Env) error {
	views, err := c.list(env, true)
	if err != nil {
		return err
	}
	var names []string
	for _, v := range views {
		names = append(names, v.Tag)
	}
	table := view.Table{
		Header: []string{"VERSION", "NOTE"},
		Empty:  "The repository has no releases. --all also shows prereleases and other tags.",
	}
	for _, v := range views {
		table.Rows = append(table.Rows, []string{v.Tag, v.note()})
	}
	return c.Print(env.Stdout, view.List{Value: views, Names: names, Table: table, Empty: env.Stderr})
}

// Releases returns the tags of the releases in a repository, newest first.
func (c *VersionsCmd) Releases(env *terminal.Env) ([]string, error) {
	views, err := c.list(env, false)
	out := make([]string, len(views))
	for i, v := range views {
		out[i] = v.Tag
	}
	return out, err
}

// repository returns the repository of the argument, and for an installed package the function that locates it with the
// configuration of the cluster. An argument without a registry that has the form of a name is an installed package.
func (c *VersionsCmd) repository(env *terminal.Env) (string, versions.Locate, error) {
	name := inventory.Name(c.Repository)
	if strings.ContainsAny(c.Repository, ".:@") || inventory.ValidateNames([]inventory.Name{name}) != nil {
		return c.Repository, nil, nil
	}
	cluster, all, err := selection.Read(env.Context, c.ClusterFlags, inventory.LoadPackages)
	if err == nil {
		var p v1.Package
		if p, err = all.Find(name); err == nil {
			return inventory.RepositoryOf(p), versions.LocatorIn(cluster, c.Namespace, all), nil
		}
	}
	failed := errcode.From(err)
	return "", nil, failed.Also(
		"For a package that is not installed, write its repository with the registry, such as xpkg.crossplane.io/crossplane-contrib/provider-nop.",
	)
}

// list returns the versions in the repository, with their statuses if withStatus is true.
func (c *VersionsCmd) list(env *terminal.Env, withStatus bool) (_ []versionView, err error) {
	repository, locate, err := c.repository(env)
	if err != nil {
		return nil, err
	}
	ref, err := oci.ParseReference(repository, oci.ParseOptions{
		DefaultRegistry: flags.DefaultRegistry, AllowUntagged: true,
	})
	if err != nil {
		return nil, err
	}
	if ref.Tag == "" {
		// Prefixes of ImageConfigs are compared with whole references.
		ref.Tag = "latest"
	}
	r, err := c.open(env, locate)
	if err != nil {
		return nil, err
	}
	defer terminal.Close(&err, r)
	origin, err := r.locate(env.Context, ref)
	if err != nil {
		return nil, err
	}
	progress := terminal.StartTask(env.Stderr, "listing the versions of %s", ref.Name())
	defer progress.End()
	list, err := r.content.Tags(env.Context, origin)
	if err != nil {
		return nil, err
	}
	if len(list.Tags) == 0 {
		// Many registries return an empty list for a missing repository.
		return nil, remote.ErrRepositoryNotFound.New(nil, "%s has no tags: it does not exist or is empty", ref.Name())
	}
	views := versionViews(list.Tags, c.All)
	if withStatus {
		addStatuses(views, readStatuses(env.Context, r.content, origin, list.Tags))
		addRetractions(env.Context, views, r.Registry, ref, list.Tags)
	}
	return views, nil
}

// statusesAtOnce is the number of statuses that are read at the same time.
const statusesAtOnce = 8

// readStatuses returns the statuses in a repository, by tag. A status costs two requests, and is omitted if it cannot
// be read: it is only a note.
func readStatuses(
	ctx context.Context, source *fetch.Source, origin fetch.Origin, tags []string,
) map[string]*catalog.Status {
	var mu sync.Mutex
	found := map[string]*catalog.Status{}
	var g errgroup.Group
	g.SetLimit(statusesAtOnce)
	for _, tag := range tags {
		subject, isStatus := catalog.ParseStatusTag(tag)
		if !isStatus {
			continue
		}
		g.Go(func() error {
			if s, err := source.Status(ctx, origin, subject); err == nil && s != nil {
				mu.Lock()
				defer mu.Unlock()
				found[s.Tag] = s.Normalize()
			}
			return nil
		})
	}
	_ = g.Wait() // No task fails.
	return found
}

// addStatuses adds the statuses to the tags that have one.
func addStatuses(views []versionView, statuses map[string]*catalog.Status) {
	for i := range views {
		views[i].Status = statuses[views[i].Tag]
	}
}

// addRetractions adds the retractions by the newest release to the tags without a status. They are omitted if it cannot
// be read: they are only notes.
func addRetractions(
	ctx context.Context, views []versionView, registry resolver.Registry, repository oci.Reference, tags []string,
) {
	newest, err := resolver.NewestRelease(ctx, registry, repository, tags)
	if err != nil || newest == nil {
		return
	}
	for i := range views {
		if views[i].Status == nil && views[i].Unusable == "" {
			views[i].Status = resolver.RetractionBy(*newest, views[i].Tag)
		}
	}
}

func (v versionView) note() string {
	var notes []string
	if v.Prerelease {
		notes = append(notes, "prerelease")
	}
	if v.Unusable != "" {
		notes = append(notes, v.Unusable)
	}
	if v.Status != nil {
		notes = append(notes, resolver.Describe(*v.Status))
	}
	return strings.Join(notes, ", ")
}

// versionViews returns the releases among tags, newest first, and if all is true also the prereleases between
// them, followed by tags that are not versions.
func versionViews(tags []string, all bool) []versionView {
	var versions, others []version.Version
	for _, tag := range tags {
		switch v := version.Parse(tag); {
		case v.Unusable() != "":
			others = append(others, v)
		case all || !v.Prerelease():
			versions = append(versions, v)
		}
	}
	slices.SortFunc(versions, func(a, b version.Version) int {
		if order := b.Compare(&a); order != 0 {
			return order
		}
		return strings.Compare(a.Tag, b.Tag)
	})
	if all {
		versions = append(versions, others...)
	}
	out := []versionView{}
	for _, v := range versions {
		out = append(out, versionView{Tag: v.Tag, Prerelease: v.Usable() && v.Prerelease(), Unusable: v.Unusable()})
	}
	return out
}
