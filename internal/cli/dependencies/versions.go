package dependencies

import (
	"slices"
	"strings"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/inventory"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

// VersionsCmd implements `xpkg versions`.
type VersionsCmd struct {
	Repository string `arg:"" complete:"package" help:"Repository of a package, for example xpkg.crossplane.io/crossplane-contrib/provider-nop, or an installed package, as NAME or KIND/NAME."`
	All        bool   `help:"Also show prereleases, and tags that are no versions."`
	resolverFlags
	connection.ClusterFlags
	terminal.ListOutputFlag
}

// versionView is a tag of a repository.
type versionView struct {
	Tag        string `json:"tag"`
	Prerelease bool   `json:"prerelease,omitempty"`
	// Unusable is the reason why the tag is not a version.
	Unusable string `json:"unusable,omitempty"`
}

// Run prints the versions in a repository, newest first.
func (c *VersionsCmd) Run(env *terminal.Env) error {
	views, err := c.list(env)
	if err != nil {
		return err
	}
	var names []string
	for _, v := range views {
		names = append(names, v.Tag)
	}
	table := terminal.Table{Header: []string{"VERSION", "NOTE"}, Empty: "The repository has no releases. --all also shows prereleases and other tags."}
	for _, v := range views {
		table.Rows = append(table.Rows, []string{v.Tag, v.note()})
	}
	return c.Print(env.Stdout, terminal.List{Value: views, Names: names, Table: table, Empty: env.Stderr})
}

// Releases returns the tags of the releases in a repository, newest first.
func (c *VersionsCmd) Releases(env *terminal.Env) ([]string, error) {
	views, err := c.list(env)
	out := make([]string, len(views))
	for i, v := range views {
		out[i] = v.Tag
	}
	return out, err
}

// installed returns the installed package that the argument names, or nil. A cluster that cannot be read has none.
func (c *VersionsCmd) installed(env *terminal.Env) v1.Package {
	name := inventory.Name(c.Repository)
	if strings.ContainsAny(c.Repository, ".:@") || inventory.ValidateNames([]inventory.Name{name}) != nil {
		return nil
	}
	_, all, err := inventory.Read(env.Context, c.ClusterFlags, inventory.LoadPackages)
	if err != nil {
		return nil
	}
	p, err := all.Find(name)
	if err != nil {
		return nil
	}
	return p
}

// list returns the versions in the repository.
func (c *VersionsCmd) list(env *terminal.Env) (_ []versionView, err error) {
	if p := c.installed(env); p != nil {
		c.Repository = inventory.RepositoryOf(p)
	}
	ref, err := oci.ParseReference(c.Repository, oci.ParseOptions{DefaultRegistry: flags.DefaultRegistry, AllowUntagged: true})
	if err != nil {
		return nil, err
	}
	if ref.Tag == "" {
		// Prefixes of ImageConfigs are compared with whole references.
		ref.Tag = "latest"
	}
	r, err := c.open(env, nil)
	if err != nil {
		return nil, err
	}
	defer terminal.Close(&err, r)
	origin, err := r.locate(env.Context, ref)
	if err != nil {
		return nil, err
	}
	progress := terminal.StartTask(env.Stderr, "listing the versions of %s", ref.Name())
	list, err := r.content.Tags(env.Context, origin)
	progress.End()
	if err != nil {
		return nil, err
	}
	if len(list.Tags) == 0 {
		// Many registries return an empty list for a missing repository.
		return nil, remote.ErrRepositoryNotFound.New(nil, "%s has no tags: it does not exist or is empty", ref.Name())
	}
	return versionViews(list.Tags, c.All), nil
}

func (v versionView) note() string {
	if v.Prerelease {
		return "prerelease"
	}
	return v.Unusable
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
