// Package pages provides the web pages of a registry server with the packages of its index.
package pages

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/xpkg-dev/xpkg/internal/registry"
	"github.com/xpkg-dev/xpkg/internal/registry/web"
	"github.com/xpkg-dev/xpkg/internal/registry/web/recent"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/catalog/docs"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/packagediff"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

const (
	// mostPacks is the number of versions whose documentation is kept in memory.
	mostPacks = 8
	// mostSince is the number of versions that are read to determine since which version a field exists.
	mostSince = 20
	// mostDiffs is the number of differences of versions that are kept in memory.
	mostDiffs = 16
)

// New returns the handler of the pages of a site.
func New(site *registry.Site, packages *registry.Packages) (http.Handler, error) {
	return web.New(&source{
		site: site, packages: packages, packs: recent.New[content, *pack](mostPacks),
		diffs: recent.New[compared, packagediff.Diff](mostDiffs),
	}, web.Options{Login: registry.LoginPath, Log: site.Log()})
}

// source provides the content of the pages.
type source struct {
	site     *registry.Site
	packages *registry.Packages
	packs    *recent.Results[content, *pack]
	diffs    *recent.Results[compared, packagediff.Diff]
}

// content is the content of a version of a package.
type content struct {
	repository string
	digest     oci.Digest
}

// compared are two versions of a package.
type compared struct {
	repository string
	from, to   oci.Digest
}

// pack is the documentation of a version.
type pack struct {
	digest oci.Digest
	pkg    *xpkg.Package
	docs   docs.Pack
}

// View implements [web.Source].
func (s *source) View(r *http.Request) web.View { return &view{source: s, index: s.site.ViewOf(r)} }

// pack returns the documentation of a version.
func (s *source) pack(ctx context.Context, repository string, d oci.Digest) (*pack, error) {
	return s.packs.Get(ctx, content{repository, d}, func(ctx context.Context) (*pack, error) {
		pkg, err := s.packages.Read(ctx, repository, d)
		if err != nil {
			return nil, err
		}
		documentation, err := docs.FromPackage(pkg)
		if err != nil {
			return nil, err
		}
		examples, err := s.packages.Examples(ctx, repository, d)
		if err != nil {
			return nil, err
		}
		documentation.Examples = examples
		return &pack{d, pkg, documentation}, nil
	})
}

// view is the content that one client may read.
type view struct {
	*source
	index *registry.View
}

// Status implements [web.View].
func (v *view) Status(context.Context) (web.Status, error) {
	c := v.index.Config()
	return web.Status{Name: c.Name, Sequence: c.Sequence, Created: c.Created, Expires: c.Expires, Counts: c.Counts}, nil
}

// Packages implements [web.View].
func (v *view) Packages(context.Context) ([]catalog.Package, error) { return v.index.Packages(), nil }

// Package implements [web.View].
func (v *view) Package(_ context.Context, repository string) (catalog.Package, catalog.History, error) {
	p, h, ok := v.index.Package(repository)
	if !ok || p.Repository != repository {
		return catalog.Package{}, catalog.History{}, web.ErrNotFound
	}
	return p, h, nil
}

// Published implements [web.View].
func (v *view) Published(_ context.Context, repository string) (map[string]time.Time, error) {
	return v.index.Published(repository), nil
}

// Dependents implements [web.View].
func (v *view) Dependents(_ context.Context, repository string) ([]web.Dependent, error) {
	var out []web.Dependent
	for _, d := range v.index.Dependents(repository) {
		out = append(out, web.Dependent(d))
	}
	return out, nil
}

// Kinds implements [web.View].
func (v *view) Kinds(_ context.Context, group, kind string, limit int) ([]catalog.Kind, error) {
	found := v.index.Kinds(group, kind, limit)
	return slices.DeleteFunc(found, func(k catalog.Kind) bool { return kind != "" && k.Kind != kind }), nil
}

// GroupOwner implements [web.View].
func (v *view) GroupOwner(_ context.Context, group string) (web.Owner, error) {
	return web.Owner(v.index.GroupOwner(group)), nil
}

// Search implements [web.View].
func (v *view) Search(ctx context.Context, q catalog.Query, limit int) ([]catalog.Hit, error) {
	return v.index.Search(ctx, q, limit)
}

// version returns a version that the client may read, and the path of its repository.
func (v *view) version(repository, tag string) (path string, found catalog.Version, err error) {
	p, h, ok := v.index.Package(repository)
	if !ok || p.Repository != repository {
		return "", catalog.Version{}, web.ErrNotFound
	}
	version := h.Find(tag)
	if version == nil || version.Digest.IsZero() || version.Status != nil && version.Status.State == catalog.Removed {
		return "", catalog.Version{}, web.ErrNotFound
	}
	path, _ = v.site.Path(repository)
	return path, *version, nil
}

// read returns the documentation of a version that the client may read.
func (v *view) read(ctx context.Context, repository, tag string) (*pack, error) {
	path, version, err := v.version(repository, tag)
	if err != nil {
		return nil, err
	}
	return v.pack(ctx, path, version.Digest)
}

// Content implements [web.View].
func (v *view) Content(ctx context.Context, repository, tag string) (*web.Content, error) {
	p, err := v.read(ctx, repository, tag)
	if err != nil {
		return nil, err
	}
	facts, err := catalog.FactsOf(repository, tag, p.digest, time.Time{}, p.pkg)
	if err != nil {
		return nil, err
	}
	c := &web.Content{
		Info: p.docs.Info, Kinds: facts.Head.Kinds, Compositions: p.docs.Compositions, Readme: p.docs.Readme,
		ReleaseNotes: p.docs.ReleaseNotes,
	}
	if p.docs.Icon != nil {
		c.Icon = p.docs.Icon.Data
	}
	return c, nil
}

// Kind implements [web.View].
func (v *view) Kind(ctx context.Context, repository, tag, group, kind string) (docs.Kind, error) {
	p, err := v.read(ctx, repository, tag)
	if err != nil {
		return docs.Kind{}, err
	}
	k, ok := p.docs.Kind(group, kind)
	if !ok {
		return docs.Kind{}, web.ErrNotFound
	}
	return k, nil
}

// Since implements [web.View]. It returns nothing for a package with many versions, which would all have to be read.
func (v *view) Since(ctx context.Context, repository, tag, group, kind, apiVersion string) (map[string]string, error) {
	_, h, ok := v.index.Package(repository)
	if !ok {
		return nil, web.ErrNotFound
	}
	end := slices.IndexFunc(h.Versions, func(version catalog.Version) bool { return version.Tag == tag })
	if end < 0 || end >= mostSince {
		return nil, nil
	}
	var crds []web.TaggedCRD
	for _, version := range h.Versions[:end+1] {
		if version.Error != nil || version.Status != nil && version.Status.State == catalog.Removed {
			continue
		}
		crd := web.TaggedCRD{Tag: version.Tag}
		if k, err := v.Kind(ctx, repository, version.Tag, group, kind); err == nil {
			crd.CRD = k.CRD
		}
		crds = append(crds, crd)
	}
	return web.FieldsSince(crds, apiVersion)
}

// Diff implements [web.View].
func (v *view) Diff(ctx context.Context, repository, from, to string) (packagediff.Diff, error) {
	path, a, err := v.version(repository, from)
	if err != nil {
		return packagediff.Diff{}, err
	}
	_, b, err := v.version(repository, to)
	if err != nil {
		return packagediff.Diff{}, err
	}
	return v.diffs.Get(ctx, compared{path, a.Digest, b.Digest}, func(ctx context.Context) (packagediff.Diff, error) {
		before, err := v.pack(ctx, path, a.Digest)
		if err != nil {
			return packagediff.Diff{}, err
		}
		after, err := v.pack(ctx, path, b.Digest)
		if err != nil {
			return packagediff.Diff{}, err
		}
		return packagediff.Compare(before.pkg, after.pkg)
	})
}
