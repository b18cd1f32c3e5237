package indexer

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// A Problem is a repository that an update could not read. The index keeps its former content.
type Problem struct {
	Repository string
	Err        error
}

// Update returns a catalog after the changes of its sources: one request for the tags of each repository, and two for each new
// version. Repositories whose tags cannot be listed keep their content and are returned as problems.
func (b *Builder) Update(ctx context.Context, c *catalog.Catalog, config catalog.Config) (catalog.Catalog, []Problem, error) {
	repositories, indexes, err := b.sources(ctx, config.Sources)
	if err != nil {
		return catalog.Catalog{}, nil, err
	}
	next, problems, err := b.refresh(ctx, c, repositories, repositories)
	if err != nil {
		return catalog.Catalog{}, nil, err
	}
	for i := range indexes {
		next = next.Include(&indexes[i])
	}
	next.Config = config
	next.Config.Shards = c.Config.Shards
	return recount(next), problems, nil
}

// UpdateRepositories returns the catalog of a registry, which has the given repositories, after changes of some of them, such as a push. A
// changed repository that cannot be listed keeps its content, and is returned as a problem.
func (b *Builder) UpdateRepositories(ctx context.Context, c *catalog.Catalog, existing, changed []string) (catalog.Catalog, []Problem, error) {
	return b.refresh(ctx, c, listedRepositories(existing), listedRepositories(changed))
}

// listedRepositories returns repositories that a registry lists.
func listedRepositories(names []string) []repository {
	out := make([]repository, len(names))
	for i, name := range names {
		out[i] = repository{oci.RepositoryName(name), true}
	}
	return out
}

// refresh reads the changed repositories, and removes the packages that are in none of the existing ones.
func (b *Builder) refresh(ctx context.Context, c *catalog.Catalog, existing, changed []repository) (catalog.Catalog, []Problem, error) {
	changes := make([][]catalog.Facts, len(changed))
	problems := make([]error, len(changed))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(b.opts.Parallel)
	for i, r := range changed {
		g.Go(func() error {
			changes[i], problems[i] = b.updateRepository(gctx, c, r)
			return gctx.Err()
		})
	}
	if err := g.Wait(); err != nil {
		return catalog.Catalog{}, nil, err
	}
	next, err := c.Replace(replacements(c, existing, changed, changes))
	if err != nil {
		return catalog.Catalog{}, nil, err
	}
	return next, problemsOf(changed, problems), nil
}

// recount sets the counts of a catalog.
func recount(c catalog.Catalog) catalog.Catalog {
	c.Config.Counts = catalog.Counts{Packages: len(c.Packages), Kinds: len(c.Kinds)}
	for i := range c.Histories {
		c.Config.Counts.Versions += len(c.Histories[i].Versions)
	}
	return c
}

func problemsOf(repositories []repository, errs []error) []Problem {
	var out []Problem
	for i, err := range errs {
		if err != nil {
			out = append(out, Problem{repositories[i].name, err})
		}
	}
	return out
}

// replacements returns the packages to replace. A package that no source contains any more, and the packages of other indexes,
// which are included again, are removed.
func replacements(c *catalog.Catalog, existing, changed []repository, changes [][]catalog.Facts) map[string][]catalog.Facts {
	exists := make(map[string]bool, len(existing))
	for _, r := range existing {
		exists[r.name] = true
	}
	out := map[string][]catalog.Facts{}
	for _, p := range c.Packages {
		if !exists[p.Repository] {
			out[p.Repository] = nil
		}
	}
	for i, facts := range changes {
		if facts != nil && exists[changed[i].name] {
			out[changed[i].name] = facts
		}
	}
	return out
}

// updateRepository returns the facts of a repository, and nil with an error if it keeps its content.
func (b *Builder) updateRepository(ctx context.Context, c *catalog.Catalog, r repository) ([]catalog.Facts, error) {
	name := r.name
	ref, err := oci.ParseReference(name, oci.ParseOptions{AllowUntagged: true})
	if err != nil {
		return nil, err
	}
	tags, err := b.tags(ctx, ref)
	if err != nil {
		facts := r.unlisted(err)
		if c.Package(name) == nil || len(facts) == 0 {
			return facts, nil
		}
		return nil, keepReason(err)
	}
	statuses, err := b.statuses(ctx, ref, tags)
	if err != nil {
		return nil, err
	}
	known, err := c.FactsFrom(name)
	if err != nil {
		return nil, err
	}
	facts, err := b.merge(ctx, ref, known, versionTags(tags))
	if err != nil {
		return nil, err
	}
	facts = r.packages(applyStatuses(name, facts, statuses))
	return b.complete(ctx, ref, facts)
}

// keepReason returns the error of a repository that keeps its content.
func keepReason(err error) error {
	if errcode.Known(err) {
		return err
	}
	return remote.ErrRepositoryNotFound.New(err, "the repository cannot be listed")
}

// merge returns the facts of the versions with tags: those that are known, and those of new or moved tags.
func (b *Builder) merge(ctx context.Context, ref oci.Reference, known []catalog.Facts, tags []string) ([]catalog.Facts, error) {
	var out []catalog.Facts
	var read []string
	for _, tag := range tags {
		i := slices.IndexFunc(known, func(f catalog.Facts) bool { return f.Version.Tag == tag })
		switch {
		case i < 0, known[i].Version.Error != nil, known[i].Version.Status != nil && known[i].Version.Status.State == catalog.Removed:
			read = append(read, tag)
		case b.opts.Moved && b.moved(ctx, ref.WithTag(tag), known[i].Version.Digest):
			read = append(read, tag)
		default:
			out = append(out, known[i])
		}
	}
	added, err := b.versions(ctx, ref, read)
	return append(out, added...), err
}

// moved reports whether a tag refers to another digest.
func (b *Builder) moved(ctx context.Context, ref oci.Reference, digest oci.Digest) bool {
	d, err := b.opts.Remote.Resolve(ctx, ref)
	return err == nil && d.Digest != digest
}

// complete adds the descriptions that a catalog needs, from the package cache or the registry.
func (b *Builder) complete(ctx context.Context, ref oci.Reference, facts []catalog.Facts) ([]catalog.Facts, error) {
	for missing := catalog.Missing(facts); len(missing) > 0; missing = catalog.Missing(facts) {
		for _, i := range missing {
			f := &facts[i]
			m, err := b.opts.Remote.FetchManifest(ctx, ref.WithTag(f.Version.Tag).WithDigest(f.Version.Digest), b.opts.Store, remote.FetchOptions{})
			if err != nil {
				return nil, err
			}
			read, err := b.facts(ctx, ref.WithTag(f.Version.Tag), m, false)
			if err != nil {
				return nil, err
			}
			f.Head = read.Head
		}
	}
	return facts, b.addTexts(ctx, ref, facts)
}
