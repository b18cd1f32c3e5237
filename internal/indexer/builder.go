package indexer

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/xpkg-dev/xpkg/internal/fetch"
	program "github.com/xpkg-dev/xpkg/internal/version"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
	"github.com/xpkg-dev/xpkg/pkg/version"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// defaultParallel is the number of versions that are read at the same time.
const defaultParallel = 32

// Options configures a Builder.
type Options struct {
	Remote *remote.Client
	// Source reads packages without an index layer.
	Source *fetch.Source
	// Store keeps what was read.
	Store *store.Store
	// Keys are public keys of which one must have signed each index among the sources; empty verifies no signatures.
	Keys Keys
	// Texts adds field names, descriptions and readmes of the newest versions to the index. It costs the base layer of
	// each newest version.
	Texts bool
	// Moved makes updates read the digests of all tags, to detect tags that moved.
	Moved bool
	// Digests returns the digests of the tags of a repository, without those that do not exist although the registry lists
	// them; nil asks the registry for each of them.
	Digests func(repository string) (map[string]oci.Digest, error)
	// Remember makes updates ask only for digests that the states of the repositories do not have; see [States.Forget].
	Remember bool
	// Parallel is the number of versions that are read at the same time; zero means 32.
	Parallel     int
	FormatLimits xpkg.Limits
	// Program identifies the program among those that share the store; empty for [program.Version], if it is that of a
	// release. The reasons for which it refuses versions are kept for it.
	Program string
	// Progress, if set, is called after each version, with the number of versions that are read and known so far. Calls
	// are concurrent.
	Progress func(done, known int)
}

// Builder reads packages for an index.
type Builder struct {
	opts     Options
	requests *semaphore.Weighted
	progress progress
	// unread are the problems of Build.
	unread struct {
		sync.Mutex
		problems []Problem
	}
}

// progress counts versions.
type progress struct {
	sync.Mutex
	done, known int
}

// NewBuilder returns a builder.
func NewBuilder(o Options) *Builder {
	if o.Parallel == 0 {
		o.Parallel = defaultParallel
	}
	if o.Program == "" && program.Released() {
		o.Program = program.Version
	}
	return &Builder{opts: o, requests: semaphore.NewWeighted(int64(o.Parallel))}
}

// Build returns the catalog of sources. It fails if a source cannot be listed, or if the context ends; a package that
// cannot be read is in the catalog with its error.
func (b *Builder) Build(ctx context.Context, config catalog.Config) (catalog.Catalog, error) {
	repositories, indexes, err := b.sources(ctx, config.Sources)
	if err != nil {
		return catalog.Catalog{}, err
	}
	entries, err := b.readAll(ctx, repositories)
	if err != nil {
		return catalog.Catalog{}, err
	}
	c, err := catalog.Build(config, nil)
	if err != nil {
		return catalog.Catalog{}, err
	}
	c = c.Replace(entries)
	for i := range indexes {
		c = c.Include(&indexes[i])
	}
	c = c.Fit()
	c.Config.Shards = 0 // Encode selects the number for the final number of packages.
	return c, nil
}

// Unread returns the repositories of which a build could not read all, for reasons that can pass.
func (b *Builder) Unread() []Problem {
	b.unread.Lock()
	defer b.unread.Unlock()
	return slices.Clone(b.unread.problems)
}

// note records that not all of a repository could be read.
func (b *Builder) note(repository string, err error) {
	if isTransient(err) {
		b.unread.Lock()
		defer b.unread.Unlock()
		b.unread.problems = append(b.unread.problems, Problem{repository, err})
	}
}

// readAll returns the entries of repositories, by name.
func (b *Builder) readAll(ctx context.Context, repositories []repository) (map[string]*catalog.Entry, error) {
	read := make([]*catalog.Entry, len(repositories))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(b.opts.Parallel)
	for i, r := range repositories {
		g.Go(func() (err error) {
			read[i], err = b.repository(ctx, r)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	out := make(map[string]*catalog.Entry, len(read))
	for i, r := range repositories {
		out[r.name] = read[i]
	}
	return out, nil
}

// repository returns the entry of a repository; nil if it has no package and a registry listed it. The error is that of
// the context.
func (b *Builder) repository(ctx context.Context, r repository) (*catalog.Entry, error) {
	ref, err := oci.ParseReference(r.name, oci.ParseOptions{AllowUntagged: true})
	if err != nil {
		return nil, err
	}
	tags, err := b.tags(ctx, ref)
	if err != nil {
		b.note(r.name, err)
		return b.failedEntry(ctx, r.unlisted(err))
	}
	statuses, err := b.statuses(ctx, ref, tags, nil)
	if err != nil {
		b.note(r.name, err)
		return b.failedEntry(ctx, []catalog.Facts{failed(r.name, "", err)})
	}
	facts, _, err := b.versions(ctx, ref, versionTags(tags))
	if err != nil {
		return nil, err
	}
	return b.entry(ctx, ref, r.packages(applyStatuses(r.name, facts, statuses)))
}

// failedEntry returns the entry of a repository that cannot be read.
func (b *Builder) failedEntry(ctx context.Context, facts []catalog.Facts) (*catalog.Entry, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return catalog.NewEntry(facts)
}

// unlisted returns the facts of a repository whose tags cannot be listed.
func (r repository) unlisted(err error) []catalog.Facts {
	if r.listed && errors.Is(err, remote.ErrRepositoryNotFound) {
		return []catalog.Facts{} // It was deleted, or only its name remains.
	}
	return []catalog.Facts{failed(r.name, "", err)}
}

// packages returns the facts of the versions that are packages. A repository without any is an error, unless a registry
// listed it.
func (r repository) packages(facts []catalog.Facts) []catalog.Facts {
	if r.listed {
		facts = slices.DeleteFunc(facts, func(f catalog.Facts) bool { return isOther(&f) })
	} else if len(facts) == 0 {
		facts = []catalog.Facts{failed(r.name, "", errNoVersions)}
	}
	return slices.Concat([]catalog.Facts{}, facts)
}

// isOther reports whether the content of a version is known to be no package.
func isOther(f *catalog.Facts) bool {
	return f.Version.Error != nil && f.Version.Error.Code == oci.ErrNotAPackage.Name
}

// errNoVersions is the reason of a repository without packages.
var errNoVersions = remote.ErrTagNotFound.New(nil, "the repository has no tag that is a version")

func (b *Builder) tags(ctx context.Context, ref oci.Reference) ([]string, error) {
	if err := b.requests.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer b.requests.Release(1)
	return b.opts.Remote.Tags(ctx, ref)
}

// versions returns the facts of versions, and of each whether reading it again has the same result while its digest is
// the same.
func (b *Builder) versions(
	ctx context.Context, ref oci.Reference, tags []string,
) (facts []catalog.Facts, isFinal []bool, err error) {
	b.progress.add(b.opts.Progress, 0, len(tags))
	facts, isFinal = make([]catalog.Facts, len(tags)), make([]bool, len(tags))
	var kinds atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	for i, tag := range tags {
		if err := b.requests.Acquire(ctx, 1); err != nil {
			return nil, nil, errors.Join(g.Wait(), err)
		}
		g.Go(func() error {
			defer b.requests.Release(1)
			facts[i], isFinal[i] = b.version(ctx, ref.WithTag(tag))
			if catalog.TooManyKinds(int(kinds.Add(int64(facts[i].Version.Kinds)))) != nil {
				// The package has no entry, and the kinds of all versions need not fit into memory.
				facts[i].Head, facts[i].Served = nil, nil
			}
			b.progress.add(b.opts.Progress, 1, 0)
			return ctx.Err()
		})
	}
	err = g.Wait()
	return facts, isFinal, err
}

func (p *progress) add(report func(done, known int), done, known int) {
	p.Lock()
	defer p.Unlock()
	p.done, p.known = p.done+done, p.known+known
	if report != nil {
		report(p.done, p.known)
	}
}

// versionTags returns the tags that are versions. A repository without any has its other tags as versions, apart from
// those that tools give to signatures and similar artifacts.
func versionTags(tags []string) []string {
	var versions, others []string
	for _, tag := range tags {
		_, _, isArtifact := oci.ParseArtifactTag(tag)
		switch v := version.Parse(tag); {
		case v.Usable():
			versions = append(versions, tag)
		case !isArtifact:
			others = append(others, tag)
		}
	}
	if len(versions) > 0 {
		return versions
	}
	return others
}

// failed returns the facts of a version, or of a repository if the tag is empty, that cannot be read.
func failed(repository, tag string, err error) catalog.Facts {
	e := errcode.From(err)
	return catalog.Failed(repository, tag, oci.Digest{}, zeroTime, catalog.IndexError{
		Code: e.Code.Name, Message: e.Error(),
	})
}
