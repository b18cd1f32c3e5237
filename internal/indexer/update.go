package indexer

import (
	"context"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// A Problem is a repository that an update could not read, or of which it could not read each tag. The index keeps the
// former content of what was not read.
type Problem struct {
	Repository string
	Err        error
}

// Update returns a catalog after the changes of its sources: one request for the tags of each repository, and two for
// each new version. Repositories whose tags cannot be listed keep their content and are returned as problems. It fails
// with ErrEmptySource if a registry lists none of its packages any more.
func (b *Builder) Update(
	ctx context.Context, c *catalog.Catalog, config catalog.Config,
) (catalog.Catalog, []Problem, error) {
	repositories, indexes, err := b.sources(ctx, config.Sources)
	if err != nil {
		return catalog.Catalog{}, nil, err
	}
	changes, err := b.changes(ctx, c, nil, repositories)
	if err != nil {
		return catalog.Catalog{}, nil, err
	}
	next := c.Replace(replacements(c, repositories, changes))
	problems := problemsOf(changes)
	for i := range indexes {
		next = next.Include(&indexes[i])
	}
	if err := checkEmptied(c, &next, config.Sources); err != nil {
		return catalog.Catalog{}, nil, err
	}
	next = next.Fit()
	next.Config = config
	next.Config.Shards = c.Config.Shards
	return recount(next), problems, nil
}

// checkEmptied fails if a catalog has no package of a registry any more.
func checkEmptied(before, next *catalog.Catalog, sources []catalog.Source) error {
	has := func(c *catalog.Catalog, location string) bool {
		return slices.ContainsFunc(c.Packages, func(p catalog.Package) bool {
			return p.Repository == location || strings.HasPrefix(p.Repository, location+"/")
		})
	}
	for _, s := range sources {
		if s.Kind == catalog.SourceRegistry && has(before, s.Location) && !has(next, s.Location) {
			return ErrEmptySource.New(nil, "%s lists none of its packages any more", s.Location)
		}
	}
	return nil
}

// UpdateRepositories returns the catalog of a registry, which has the given repositories, after changes of some of
// them, such as a push, and the states of its repositories. With the states from which the catalog was built, a
// repository with the same tags and digests is not read. Without a change, the result shares the rows of the catalog. A
// changed repository that cannot be listed keeps its content, and is returned as a problem.
func (b *Builder) UpdateRepositories(
	ctx context.Context, c *catalog.Catalog, states States, existing, changed []string,
) (catalog.Catalog, States, []Problem, error) {
	repositories := listedRepositories(existing)
	changes, err := b.changes(ctx, c, states, listedRepositories(changed))
	if err != nil {
		return catalog.Catalog{}, nil, nil, err
	}
	return c.Replace(replacements(c, repositories, changes)), states.after(repositories, changes), problemsOf(changes), nil
}

// listedRepositories returns repositories that a registry lists.
func listedRepositories(names []string) []repository {
	out := make([]repository, len(names))
	for i, name := range names {
		out[i] = repository{oci.RepositoryName(name), true}
	}
	return out
}

// A change is what a catalog has to change for a repository.
type change struct {
	repository string
	// replaces means that the catalog gets the entry, or loses the package if it is nil. Otherwise the repository keeps
	// its content.
	replaces bool
	entry    *catalog.Entry
	// state is the state of the repository.
	state State
	// problem is the reason for which a repository, or a version of it, that may have changed keeps its content.
	problem error
}

// changes returns the changes of repositories, which have the states of the catalog, as far as they are known.
func (b *Builder) changes(
	ctx context.Context, c *catalog.Catalog, states States, repositories []repository,
) ([]change, error) {
	out := make([]change, len(repositories))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(b.opts.Parallel)
	for i, r := range repositories {
		g.Go(func() error {
			out[i] = b.updateRepository(ctx, c, states[r.name], r)
			return ctx.Err()
		})
	}
	return out, g.Wait()
}

// after returns the states of the existing repositories after changes.
func (s States) after(existing []repository, changes []change) States {
	out := make(States, len(existing))
	for _, r := range existing {
		if state, known := s[r.name]; known {
			out[r.name] = state
		}
	}
	for i := range changes {
		out[changes[i].repository] = changes[i].state
	}
	return out
}

// recount sets the counts of a catalog.
func recount(c catalog.Catalog) catalog.Catalog {
	c.Config.Counts = catalog.Counts{Packages: len(c.Packages), Kinds: len(c.Kinds)}
	for i := range c.Histories {
		c.Config.Counts.Versions += len(c.Histories[i].Versions)
	}
	return c
}

func problemsOf(changes []change) []Problem {
	var out []Problem
	for i := range changes {
		if changes[i].problem != nil {
			out = append(out, Problem{changes[i].repository, changes[i].problem})
		}
	}
	return out
}

// replacements returns the packages to replace. A package that no source contains any more, and the packages of other
// indexes, which are included again, are removed.
func replacements(c *catalog.Catalog, existing []repository, changes []change) map[string]*catalog.Entry {
	exists := make(map[string]bool, len(existing))
	for _, r := range existing {
		exists[r.name] = true
	}
	out := map[string]*catalog.Entry{}
	for i := range c.Packages {
		if name := c.Packages[i].Repository; !exists[name] {
			out[name] = nil
		}
	}
	for i := range changes {
		if name := changes[i].repository; changes[i].replaces && exists[name] {
			out[name] = changes[i].entry
		}
	}
	return out
}

// updateRepository returns the change of a repository that had a state.
func (b *Builder) updateRepository(ctx context.Context, c *catalog.Catalog, before State, r repository) change {
	kept := change{repository: r.name, state: before}
	fail := func(err error) change {
		kept.problem = err
		return kept
	}
	ref, err := oci.ParseReference(r.name, oci.ParseOptions{AllowUntagged: true})
	if err != nil {
		return fail(err)
	}
	tags, err := b.tags(ctx, ref)
	if err != nil {
		facts := r.unlisted(err)
		if c.Package(r.name) != nil && len(facts) > 0 {
			return fail(keepReason(err))
		}
		entry, err := catalog.NewEntry(facts)
		if err != nil {
			return fail(err)
		}
		return change{repository: r.name, replaces: true, entry: entry}
	}
	content := content{ref: ref, tags: tags, before: before}
	var state State
	var unread error
	if b.opts.Moved {
		if content.digests, state, unread, err = b.digests(ctx, ref, relevantTags(tags), before); err != nil {
			return fail(err)
		}
		if state.sum == before.sum && before.sum != (State{}).sum {
			return kept
		}
	}
	entry, final, err := b.updateEntry(ctx, c, r, &content)
	switch {
	case err != nil:
		return fail(err)
	case !final:
		state.sum = State{}.sum
	}
	state.failed = content.failed
	return change{repository: r.name, replaces: true, entry: entry, state: state, problem: unread}
}

// content is the content of a repository as an update finds it.
type content struct {
	ref  oci.Reference
	tags []string
	// digests are the digests of the tags. Those of tags that are missing are not known.
	digests map[string]oci.Digest
	// before is the state at the former update.
	before State
	// failed are the tags whose content cannot be read, for reasons that stay while their digests are the same.
	failed map[string]failure
}

// failure returns the known reason for which a tag cannot be read, and false if there is none.
func (c *content) failure(tag string) (failure, bool) {
	was, failed := c.before.failed[tag]
	d, known := c.digests[tag]
	return was, failed && known && d == was.digest
}

// updateEntry returns the entry of a repository, nil without packages, and whether reading its tags again has the same
// result while their digests are the same.
func (b *Builder) updateEntry(
	ctx context.Context, c *catalog.Catalog, r repository, now *content,
) (entry *catalog.Entry, final bool, err error) {
	statuses, err := b.statuses(ctx, now.ref, now.tags, now.digests)
	if err != nil {
		return nil, false, err
	}
	known, err := c.FactsFrom(r.name)
	if err != nil {
		return nil, false, err
	}
	facts, final, err := b.merge(ctx, known, now)
	if err != nil {
		return nil, false, err
	}
	facts = r.packages(applyStatuses(r.name, facts, statuses))
	if err := b.complete(ctx, now.ref, facts); err != nil {
		return nil, false, err
	}
	entry, err = b.entry(ctx, now.ref, facts)
	return entry, final, err
}

// keepReason returns the error of a repository that keeps its content.
func keepReason(err error) error {
	if errcode.Known(err) {
		return err
	}
	return remote.ErrRepositoryNotFound.New(err, "the repository cannot be listed")
}

// merge returns the facts of the versions: those that are known, and those of new or moved tags. It reports whether
// reading these again has the same result.
func (b *Builder) merge(ctx context.Context, known []catalog.Facts, now *content) ([]catalog.Facts, bool, error) {
	byTag := make(map[string]*catalog.Facts, len(known))
	for i := range known {
		byTag[known[i].Version.Tag] = &known[i]
	}
	var out []catalog.Facts
	var read []string
	versions := versionTags(now.tags)
	now.failed = map[string]failure{}
	for _, tag := range versions {
		former := byTag[tag]
		digest, isKnown := now.digests[tag]
		failure, hasFailed := now.failure(tag)
		if hasFailed && (failure.isOther || former != nil && former.Version.Error != nil) {
			now.failed[tag] = failure
			if !failure.isOther {
				v := &former.Version
				out = append(out, catalog.Failed(now.ref.Name(), tag, v.Digest, v.Created, *v.Error))
			}
			continue
		}
		switch {
		case former == nil, former.Version.Error != nil,
			former.Version.Status != nil && former.Version.Status.State == catalog.Removed,
			isKnown && digest != former.Version.Digest:
			read = append(read, tag)
		default:
			out = append(out, *former)
		}
	}
	added, isFinal, err := b.versions(ctx, now.ref, read)
	if err != nil {
		return nil, false, err
	}
	for i, tag := range read {
		if d, known := now.digests[tag]; known && isFinal[i] && added[i].Version.Error != nil {
			now.failed[tag] = failure{d, isOther(&added[i])}
		}
	}
	return append(out, added...), !slices.Contains(isFinal, false), nil
}

// complete adds the descriptions that a catalog needs, from the package cache or the registry.
func (b *Builder) complete(ctx context.Context, ref oci.Reference, facts []catalog.Facts) error {
	for missing := catalog.Missing(facts); len(missing) > 0; missing = catalog.Missing(facts) {
		for _, i := range missing {
			f := &facts[i]
			m, err := b.opts.Remote.FetchManifest(
				ctx, ref.WithTag(f.Version.Tag).WithDigest(f.Version.Digest), b.opts.Store, remote.FetchOptions{},
			)
			if err != nil {
				return err
			}
			read, err := b.facts(ctx, ref.WithTag(f.Version.Tag), m, false)
			if err != nil {
				return err
			}
			f.Head = read.Head
		}
	}
	return nil
}
