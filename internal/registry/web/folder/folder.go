// Package folder provides the pages of packages in memory, such as the packages of a folder.
package folder

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/xpkg-dev/xpkg/internal/registry/web"
	"github.com/xpkg-dev/xpkg/internal/registry/web/recent"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/catalog/docs"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/packagediff"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// A Version is one version of a package.
type Version struct {
	Repository, Tag string
	Digest          oci.Digest
	Created         time.Time
	Package         *xpkg.Package
	// Examples are added to the examples of their kinds.
	Examples []docs.Example
	// Readme, ReleaseNotes and Icon replace those of the package if they are not empty.
	Readme, ReleaseNotes string
	Icon                 []byte
	// Status and Signatures are those of the index.
	Status     *catalog.Status
	Signatures []string
}

// Options configure a Source.
type Options struct {
	// Name is the name of the index.
	Name string
	// May reports whether the client of a request may read a repository; nil permits everything.
	May func(r *http.Request, repository string) bool
	// Owners are the owners of API groups that the index states, in its order.
	Owners []catalog.GroupOwner
	// Removed are the versions of the index that were deleted, without heads. They are listed with their package, and have
	// no pages of their own.
	Removed []catalog.Facts
	// Verified are publishers whose packages are marked as verified, with the reason.
	Verified map[string]string
}

// A Source provides the pages of packages in memory. It implements web.Source.
type Source struct {
	options  Options
	catalog  catalog.Catalog
	versions map[key]*version
	// removed are the versions without content, by repository.
	removed map[string][]catalog.Facts
	diffs   *recent.Results[compared, packagediff.Diff]
}

// compared are two versions of a package.
type compared struct{ repository, from, to string }

// mostDiffs is the number of differences of versions that are kept.
const mostDiffs = 16

type key struct{ repository, tag string }

// A version is a version with its documentation, which is made on first use.
type version struct {
	Version
	facts catalog.Facts
	once  sync.Once
	pack  docs.Pack
	err   error
}

// New returns the source of packages.
func New(versions []Version, options Options) (*Source, error) {
	s := &Source{
		options: options, versions: map[key]*version{}, removed: map[string][]catalog.Facts{},
		diffs: recent.New[compared, packagediff.Diff](mostDiffs),
	}
	var facts []catalog.Facts
	for _, v := range versions {
		f, err := catalog.FactsOf(v.Repository, v.Tag, v.Digest, v.Created, v.Package)
		if err != nil {
			return nil, fmt.Errorf("%s:%s: %w", v.Repository, v.Tag, err)
		}
		f.Version.Status, f.Version.Signatures = v.Status, v.Signatures
		if how := options.Verified[f.Head.Package.Publisher]; how != "" {
			f.Head.Package.Verified = how
		}
		v.Repository = f.Repository
		s.versions[key{f.Repository, v.Tag}] = &version{Version: v, facts: f}
		facts = append(facts, f)
	}
	for _, f := range options.Removed {
		if _, pushedAgain := s.versions[key{f.Repository, f.Version.Tag}]; !pushedAgain {
			s.removed[f.Repository] = append(s.removed[f.Repository], f)
			facts = append(facts, f)
		}
	}
	var err error
	s.catalog, err = catalog.Build(catalog.Config{Name: options.Name, Owners: options.Owners}, facts)
	return s, err
}

// View implements web.Source.
func (s *Source) View(r *http.Request) web.View {
	if s.options.May == nil {
		return &view{s, &s.catalog}
	}
	visible := s.restrict(func(repository string) bool { return s.options.May(r, repository) })
	return &view{s, visible}
}

// restrict returns the catalog of the repositories that a client may read.
func (s *Source) restrict(may func(string) bool) *catalog.Catalog {
	out := catalog.Catalog{Config: s.catalog.Config}
	var facts []catalog.Facts
	for k, v := range s.versions {
		if may(k.repository) {
			facts = append(facts, v.facts)
		}
	}
	for repository, removed := range s.removed {
		if may(repository) {
			facts = append(facts, removed...)
		}
	}
	if c, err := catalog.Build(out.Config, facts); err == nil {
		return &c
	}
	return &out
}

// documentation returns the documentation of the version.
func (v *version) documentation() (*docs.Pack, error) {
	v.once.Do(func() {
		if v.pack, v.err = docs.FromPackage(v.Package); v.err != nil {
			return
		}
		if v.Readme != "" {
			v.pack.Readme = v.Readme
		}
		if v.ReleaseNotes != "" {
			v.pack.ReleaseNotes = v.ReleaseNotes
		}
		if len(v.Icon) > 0 {
			v.pack.Icon = &docs.Icon{Data: v.Icon}
		}
		v.pack.Examples = v.Examples
	})
	return &v.pack, v.err
}

// view is the content that one client may read.
type view struct {
	*Source
	visible *catalog.Catalog
}

// Status implements web.View.
func (v *view) Status(context.Context) (web.Status, error) {
	c := v.visible.Config
	return web.Status{Name: c.Name, Sequence: c.Sequence, Created: c.Created, Expires: c.Expires, Counts: c.Counts}, nil
}

// Packages implements web.View.
func (v *view) Packages(context.Context) ([]catalog.Package, error) { return v.visible.Packages, nil }

// Package implements web.View.
func (v *view) Package(_ context.Context, repository string) (catalog.Package, catalog.History, error) {
	p, history := v.visible.Package(repository), v.visible.History(repository)
	if p == nil || history == nil || p.Repository != repository {
		return catalog.Package{}, catalog.History{}, web.ErrNotFound
	}
	return *p, *history, nil
}

// Published implements web.View. The only times are those that authors state.
func (v *view) Published(context.Context, string) (map[string]time.Time, error) { return nil, nil }

// Dependents implements web.View.
func (v *view) Dependents(_ context.Context, repository string) ([]web.Dependent, error) {
	var out []web.Dependent
	for _, p := range v.visible.Packages {
		n := v.newest(p)
		if n == nil {
			continue
		}
		for _, d := range n.Dependencies {
			if d.Package == repository {
				out = append(out, web.Dependent{
					Repository: p.Repository, Tag: n.Tag, Constraint: d.Constraint, Optional: d.Optional,
				})
			}
		}
	}
	return out, nil
}

// newest returns the newest version of a package; nil if it has none.
func (v *view) newest(p catalog.Package) *catalog.Version {
	history := v.visible.History(p.Repository)
	if history == nil {
		return nil
	}
	for i := range history.Versions {
		if history.Versions[i].Tag == p.Latest {
			return &history.Versions[i]
		}
	}
	return nil
}

// Kinds implements web.View.
func (v *view) Kinds(_ context.Context, group, kind string, limit int) ([]catalog.Kind, error) {
	var out []catalog.Kind
	for _, k := range v.visible.Kinds {
		if (group == "" || k.Group == group) && (kind == "" || k.Kind == kind) && len(out) < limit {
			out = append(out, k)
		}
	}
	return out, nil
}

// GroupOwner implements web.View.
func (v *view) GroupOwner(_ context.Context, group string) (web.Owner, error) {
	if owner, stated := v.visible.Config.GroupOwner(group); stated {
		return web.Owner{Publisher: owner.Owner, Repository: owner.Owner, Proof: "configuration of the index"}, nil
	}
	publishers := map[string]bool{}
	for _, k := range v.visible.Kinds {
		if k.Group == group {
			if p := v.visible.Package(k.Repository); p != nil && p.Publisher != "" {
				publishers[p.Publisher] = true
			}
		}
	}
	if len(publishers) != 1 {
		return web.Owner{}, nil
	}
	for p := range publishers {
		return web.Owner{Publisher: p, Proof: "The only publisher of kinds of this group in the index."}, nil
	}
	return web.Owner{}, nil
}

// Search implements web.View.
func (v *view) Search(_ context.Context, q catalog.Query, limit int) ([]catalog.Hit, error) {
	return v.visible.Search(q, limit), nil
}

// version returns a version that the client may read.
func (v *view) version(repository, tag string) (*version, error) {
	if v.visible.History(repository) == nil {
		return nil, web.ErrNotFound
	}
	found, ok := v.versions[key{repository, tag}]
	if !ok {
		return nil, web.ErrNotFound
	}
	return found, nil
}

// Content implements web.View.
func (v *view) Content(_ context.Context, repository, tag string) (*web.Content, error) {
	found, err := v.version(repository, tag)
	if err != nil {
		return nil, err
	}
	pack, err := found.documentation()
	if err != nil {
		return nil, err
	}
	c := &web.Content{
		Info: pack.Info, Kinds: found.facts.Head.Kinds, Compositions: pack.Compositions, Readme: pack.Readme,
		ReleaseNotes: pack.ReleaseNotes,
	}
	if pack.Icon != nil {
		c.Icon = pack.Icon.Data
	}
	return c, nil
}

// Kind implements web.View.
func (v *view) Kind(_ context.Context, repository, tag, group, kind string) (docs.Kind, error) {
	found, err := v.version(repository, tag)
	if err != nil {
		return docs.Kind{}, err
	}
	return found.kind(group, kind)
}

func (v *version) kind(group, kind string) (docs.Kind, error) {
	pack, err := v.documentation()
	if err != nil {
		return docs.Kind{}, err
	}
	k, ok := pack.Kind(group, kind)
	if !ok {
		return docs.Kind{}, web.ErrNotFound
	}
	return k, nil
}

// Since implements web.View.
func (v *view) Since(_ context.Context, repository, tag, group, kind, apiVersion string) (map[string]string, error) {
	history := v.visible.History(repository)
	if history == nil {
		return nil, web.ErrNotFound
	}
	var crds []web.TaggedCRD
	for _, version := range history.Versions {
		found := v.versions[key{repository, version.Tag}]
		if found == nil {
			continue
		}
		k, err := found.kind(group, kind)
		if err != nil && !errors.Is(err, web.ErrNotFound) {
			return nil, err
		}
		crds = append(crds, web.TaggedCRD{Tag: version.Tag, CRD: k.CRD})
		if version.Tag == tag {
			break
		}
	}
	return web.FieldsSince(crds, apiVersion)
}

// Diff implements web.View.
func (v *view) Diff(ctx context.Context, repository, from, to string) (packagediff.Diff, error) {
	a, err := v.version(repository, from)
	if err != nil {
		return packagediff.Diff{}, err
	}
	b, err := v.version(repository, to)
	if err != nil {
		return packagediff.Diff{}, err
	}
	return v.diffs.Get(
		ctx, compared{repository, from, to},
		func(context.Context) (packagediff.Diff, error) { return packagediff.Compare(a.Package, b.Package) },
	)
}
