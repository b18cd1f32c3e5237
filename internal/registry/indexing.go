package registry

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/xpkg-dev/xpkg/internal/indexer"
	"github.com/xpkg-dev/xpkg/internal/registry/access"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// LocalIndexer builds the indexes of a registry in this process with [indexer.Builder], like `xpkg index build`. Each
// version is read once, into the cache of the packages.
type LocalIndexer struct {
	packages *Packages
	name     string
	// texts adds the texts of the newest versions.
	texts bool
	// policy returns the policy with the owners of API groups; nil means that there are none.
	policy func() *access.Policy
	// publication publishes the index of the public packages; nil publishes nothing.
	publication *publication
	log         *slog.Logger
	// backend is the host of the registry behind the server; empty if there is none. With it, now returns the time.
	backend string
	now     func() time.Time
	// recorded returns the packages that a partition had last, also in an earlier process. It is set if backend is.
	recorded func(partition string) ([]string, error)
	// changedTags are the changes that the server knows if backend is set. lastCompared are the tags that were compared
	// last, by repository.
	changedTags  changedTags
	lastCompared map[string]string
	// mu is held during an update. It protects the publication, built and versions.
	mu sync.Mutex
	// versions find out whether the repositories of a partition have no versions any more.
	versions map[string]*emptyList
	// built are the results of the last updates, by partition.
	built map[string]built
}

// built is the result of an update.
type built struct {
	// catalog is the catalog that the update returned. All is the catalog with the packages that do not fit into a
	// published index, too, so that they are in the index as soon as there is space for them.
	catalog, all *catalog.Catalog
	// states are the states of the repositories.
	states indexer.States
}

// NewLocalIndexer returns an indexer of packages. The name is the name of the indexes.
func NewLocalIndexer(packages *Packages, name string) *LocalIndexer {
	return &LocalIndexer{
		packages: packages, name: name, log: slog.New(slog.DiscardHandler), built: map[string]built{},
		versions: map[string]*emptyList{}, lastCompared: map[string]string{},
	}
}

// Load implements Indexer.
func (x *LocalIndexer) Load(context.Context, string) (*catalog.Catalog, error) {
	return &catalog.Catalog{Config: catalog.Config{Name: x.name}}, nil
}

// Update implements Indexer. A repository that cannot be read keeps its content, and is read again by the next update
// of all.
func (x *LocalIndexer) Update(
	ctx context.Context, partition string, previous *catalog.Catalog, repositories, changed []string,
) (*catalog.Catalog, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	builder, err := x.packages.builder(x.texts)
	if err != nil {
		return nil, err
	}
	last := x.built[partition]
	if last.catalog == nil || !last.catalog.SharesRows(previous) {
		last = built{all: previous}
	}
	x.forget(last.states, changed)
	all, states, problems, err := builder.UpdateRepositories(
		ctx, last.all, last.states, x.packages.names(repositories), x.packages.names(changed),
	)
	if err != nil {
		return nil, err
	}
	if err := x.checkVersions(ctx, partition, previous, &all, x.packages.names(repositories)); err != nil {
		return nil, err
	}
	for _, p := range problems {
		x.log.Warn("a package keeps its former content in the index", "repository", p.Repository, "error", p.Err)
	}
	isPublished := partition == "" && x.publication != nil
	if isPublished && len(previous.Packages) == 0 && len(all.Unlisted()) > 0 {
		all = x.publication.keepPublished(ctx, all)
	}
	next := *previous
	if !all.SharesRows(last.all) {
		next = all
		if isPublished {
			next = all.Fit()
		}
		next.Config.Sequence++
		x.logExcluded(partition, previous, &next)
	}
	next.Config.Owners = x.owners(partition, &next)
	if isPublished {
		x.publish(ctx, &next, repositories)
	}
	x.built[partition] = built{&next, &all, states}
	return &next, nil
}

// checkVersions fails if the registry behind the server lists all repositories of a partition, and no version of them
// any more, until it has done so for a while.
func (x *LocalIndexer) checkVersions(
	ctx context.Context, partition string, previous, next *catalog.Catalog, repositories []string,
) error {
	if x.backend == "" {
		return nil
	}
	listed := x.versions[partition]
	if listed == nil {
		listed = &emptyList{}
		x.versions[partition] = listed
	}
	former := make([]string, len(previous.Packages))
	for i := range previous.Packages {
		former[i] = previous.Packages[i].Repository
	}
	if len(next.Packages) == 0 && !listed.accepted {
		var err error
		if former, err = x.formerPackages(ctx, partition); err != nil {
			return err
		}
	}
	isGone := func(name string) bool { return !slices.Contains(repositories, name) }
	if len(former) == 0 || slices.ContainsFunc(former, isGone) {
		listed.accept(0)
		return nil
	}
	listed.listed = true
	return listed.check(x.backend, "versions", len(next.Packages), x.now())
}

// hadPackages reports whether the index of a partition had packages before this process.
func (x *LocalIndexer) hadPackages(ctx context.Context, partitions []string) (bool, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, partition := range partitions {
		if former, err := x.formerPackages(ctx, partition); err != nil || len(former) > 0 {
			return true, err
		}
	}
	return false, nil
}

// formerPackages returns the packages that the index of a partition had before this process: those that the server has
// recorded, otherwise those of the published index, if the server publishes it. The mutex is held.
func (x *LocalIndexer) formerPackages(ctx context.Context, partition string) ([]string, error) {
	recorded, err := x.recorded(partition)
	if err != nil || len(recorded) > 0 || partition != "" || x.publication == nil {
		return recorded, err
	}
	return x.publication.publishedPackages(ctx)
}

// logExcluded reports the packages that the index leaves out, or of which it leaves out the newest version, unless it
// did so before for the same reason. The site can have the content of a private package that cannot be listed.
func (x *LocalIndexer) logExcluded(partition string, previous, next *catalog.Catalog) {
	var recorded []string
	if partition != "" {
		recorded = next.Unlisted()
	}
	for i := range next.Packages {
		row := &next.Packages[i]
		if row.Error == nil || slices.Contains(recorded, row.Repository) {
			continue
		}
		if before := previous.Package(row.Repository); before == nil || before.Error == nil || *before.Error != *row.Error {
			x.log.Warn(
				"the index leaves out a package or its newest version", "repository", row.Repository, "code", row.Error.Code,
				"error", row.Error.Message,
			)
		}
	}
}

// owners returns the owners of API groups in the policy that every client may know: those in public parts of the
// registry, also if they have no package yet or any more, and those with public packages. Without its owner, a group
// would belong to anyone. An index with former owners is better than none, because the next one may lack a package that
// is private now.
func (x *LocalIndexer) owners(partition string, c *catalog.Catalog) []catalog.GroupOwner {
	if x.policy == nil || partition != "" {
		return nil
	}
	var out []catalog.GroupOwner
	policy := x.policy()
	for _, g := range policy.Groups {
		owner := catalog.GroupOwner{Group: g.Group, Owner: x.packages.host + "/" + g.Owner}
		if policy.Partition(g.Owner) == "" ||
			slices.ContainsFunc(c.Packages, func(p catalog.Package) bool { return owner.Covers(p.Repository) }) {
			out = append(out, owner)
		}
	}
	sorted, err := catalog.SortOwners(out)
	if err != nil {
		x.log.Error("the index keeps its former owners of API groups", "error", err)
		return c.Config.Owners
	}
	return sorted
}

// names returns the names of repositories with the host.
func (p *Packages) names(repositories []string) []string {
	out := make([]string, len(repositories))
	for i, repository := range repositories {
		out[i] = p.host + "/" + repository
	}
	return out
}

// publish publishes the index of the public packages. The search does not depend on it, so an error is logged; the next
// update of the site publishes the index again.
func (x *LocalIndexer) publish(ctx context.Context, next *catalog.Catalog, repositories []string) {
	config, err := x.publication.publish(ctx, next, repositories)
	switch {
	case err == nil:
		next.Config = config
	case ctx.Err() == nil:
		x.log.Error("cannot publish the index; the next attempt follows", "error", err)
	}
}

// prune removes the oldest states until so many remain. A state that cannot be removed is reported once, and tried
// again by the next update: this server does not serve it if it names private packages.
func (p *publication) prune(ctx context.Context, keep int) {
	for len(p.states) > keep {
		oldest := p.states[len(p.states)-1]
		if err := p.remove(ctx, oldest); err != nil {
			if ctx.Err() == nil && p.kept != oldest {
				p.kept = oldest
				p.reportKept(keep, err)
			}
			return
		}
		p.states = p.states[:len(p.states)-1]
	}
	p.kept = oci.Digest{}
}

// reportKept logs that former states cannot be removed.
func (p *publication) reportKept(keep int, err error) {
	repository := p.packages.host + "/" + indexRepository
	if keep > 0 {
		p.log.Warn("the index is published, but its oldest states cannot be removed; allow deletions in the repository, or delete them there",
			"repository", repository, "states", len(p.states)-keep, "error", err)
		return
	}
	p.log.Error("the index is published, but its former states, which name packages that are not public any more, cannot be removed; this server does not serve "+
		"them to clients that may not read these packages, and clients of the registry behind it can read them until they are deleted there",
		"repository", repository, "states", len(p.states), "newest", p.states[0], "oldest", p.states[len(p.states)-1],
		"error", err)
}

// remove removes a state and its signature.
func (p *publication) remove(ctx context.Context, state oci.Digest) error {
	for _, d := range []oci.Digest{p.signatureOf(ctx, state), state} {
		if d.IsZero() {
			continue
		}
		if err := p.client.Remote.Delete(ctx, p.ref.WithDigest(d)); err != nil && !errors.Is(err, oci.ErrManifestNotFound) {
			return err
		}
	}
	return nil
}
