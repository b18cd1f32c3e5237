package registry

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/xpkg-dev/xpkg/internal/indexer"
	"github.com/xpkg-dev/xpkg/internal/leader"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

const (
	// indexRepository is the repository of the published index. Clients cannot push to it.
	indexRepository = "index"
	indexTag        = "main"
	// indexValidity is the time after which clients refuse a state of the index. A server publishes it again after half of
	// it.
	indexValidity = 30 * 24 * time.Hour
	// mostStates is the number of former states that stay in the registry, with which clients detect forks.
	mostStates = 32
	// mostWalked limits the former states that are read when a server starts.
	mostWalked = 1000
)

// publication is the index of the public packages as an artifact in the registry itself. Packages that are private are
// in no published index.
type publication struct {
	packages *Packages
	// guard states which packages of a state are not public.
	guard *indexGuard
	now   func() time.Time
	log   *slog.Logger
	// signer signs each state; nil signs none.
	signer *indexer.Signer
	// publisher states whether this server may publish in its backend; nil without a backend.
	publisher *publisher
	// election decides which one of several servers publishes; nil if there is only one. Term is the last term of this
	// server.
	election *election
	term     *term

	client *indexer.Client
	ref    oci.Reference
	former *catalog.Reader
	// content has the rows of former. After an update these are the rows of the catalog that was published, so that they
	// are in memory once.
	content catalog.Catalog
	states  []oci.Digest // The states before former that the registry has, newest first.
	// lost is the newest state that this server has published or followed, if the registry has none or an older one. The
	// next state continues it, so that clients accept it.
	lost indexer.Replaced
	// followed is the state of another server that was read last.
	followed state
	// kept is the state whose removal failed last.
	kept oci.Digest
}

// state is a state of the index.
type state struct {
	digest oci.Digest
	config catalog.Config
}

// publish publishes a catalog unless the published one is equal and current, or another server publishes. It returns
// the configuration of the published index.
func (p *publication) publish(
	ctx context.Context, next *catalog.Catalog, repositories []string,
) (catalog.Config, error) {
	if err := p.openClient(); err != nil {
		return catalog.Config{}, err
	}
	if p.publisher != nil {
		if err := p.publisher.check(ctx); err != nil {
			return catalog.Config{}, err
		}
	}
	if p.election == nil {
		return p.write(ctx, next, repositories)
	}
	if config, led, err := p.lead(ctx, next, repositories); led {
		return config, err
	}
	return p.follow(ctx, next)
}

// lead publishes a catalog, and reports whether this server was the elected one until the end.
func (p *publication) lead(
	ctx context.Context, next *catalog.Catalog, repositories []string,
) (config catalog.Config, led bool, err error) {
	p.election.mu.Lock()
	defer p.election.mu.Unlock()
	term := p.election.term
	if term == nil {
		return catalog.Config{}, false, nil
	}
	if term != p.term {
		p.forget()
		p.term = term
	}
	p.client.Remote = term.client
	defer func() { p.client.Remote = p.packages.client }()
	if err = p.correctTag(term.ctx); err == nil {
		config, err = p.write(term.ctx, next, repositories)
	}
	lost := term.ctx.Err() != nil || errors.Is(err, leader.ErrDeposed)
	return config, !lost || ctx.Err() != nil, err
}

// keepPublished returns the first catalog of a process with the published content of the packages that cannot be
// listed, such as those in damaged repositories. The repositories of the catalog are public, and other content of them
// cannot be published.
func (p *publication) keepPublished(ctx context.Context, next catalog.Catalog) catalog.Catalog {
	if err := p.openClient(); err != nil {
		return next // The publication reports it.
	}
	r, err := p.client.Open(ctx, p.ref)
	if err == nil {
		var former catalog.Catalog
		if former, err = r.CatalogSharing(&next); err == nil {
			return next.KeepUnlisted(&former)
		}
	}
	if !indexer.IsAbsent(err) {
		p.log.Warn(
			"packages that cannot be listed leave the index, because their published content cannot be read", "error", err,
		)
	}
	return next
}

// publishedPackages returns the packages in the published index; none if there is no index that can be used.
func (p *publication) publishedPackages(ctx context.Context) ([]string, error) {
	if err := p.openClient(); err != nil {
		return nil, err
	}
	r, err := p.client.Open(ctx, p.ref)
	if err != nil {
		if class := errcode.From(err).Code.Class; ctx.Err() != nil || class == errcode.Unavailable ||
			class == errcode.Timeout {
			return nil, err
		}
		return nil, nil // The publication reports it.
	}
	rows := r.Packages()
	names := make([]string, len(rows))
	for i := range rows {
		names[i] = rows[i].Repository
	}
	return names, nil
}

// follow returns the configuration of the index that another server publishes, with the counts and owners of the next
// one, or that of the next one if there is none.
func (p *publication) follow(ctx context.Context, next *catalog.Catalog) (catalog.Config, error) {
	p.forget()
	current, err := p.client.Remote.Resolve(ctx, p.ref)
	switch {
	case indexer.IsAbsent(err):
		return next.Config, nil
	case err != nil:
		return catalog.Config{}, err
	case current.Digest != p.followed.digest:
		config, err := p.configOf(ctx, current.Digest)
		if err != nil {
			return catalog.Config{}, err
		}
		p.followed = state{current.Digest, config}
	}
	p.guard.report(ctx, current.Digest)
	config := p.followed.config
	config.Counts, config.Owners = next.Config.Counts, next.Config.Owners
	return config, nil
}

// correctTag moves the tag back to the state in memory if a former holder has moved it. A state that continues the one
// in memory is read instead.
func (p *publication) correctTag(ctx context.Context) error {
	if p.former == nil {
		return nil
	}
	own := p.former.Manifest().Digest
	current, err := p.client.Remote.Resolve(ctx, p.ref)
	if err != nil && !indexer.IsAbsent(err) || current.Digest == own {
		return err
	}
	if config, err := p.configOf(ctx, current.Digest); err == nil && config.Previous == own {
		p.forget()
		return nil
	}
	a, err := p.client.Remote.Artifact(ctx, p.ref.WithDigest(own))
	if errors.Is(err, oci.ErrManifestNotFound) || indexer.IsAbsent(err) {
		p.forget()
		return nil
	}
	if err != nil {
		return err
	}
	_, err = p.client.Remote.Push(ctx, p.ref, a)
	return err
}

// write publishes a catalog unless the published one is equal and current.
func (p *publication) write(ctx context.Context, next *catalog.Catalog, repositories []string) (catalog.Config, error) {
	if err := p.load(ctx, next); err != nil {
		return catalog.Config{}, err
	}
	withdrawn := p.isWithdrawn(repositories)
	if p.former == nil || withdrawn || p.differs(next) || indexer.RenewalIsDue(p.former.Config(), indexValidity) {
		if err := p.push(ctx, *next, withdrawn); err != nil {
			p.forget()
			return catalog.Config{}, err
		}
	}
	p.content = *next
	if err := p.sign(ctx, p.former.Manifest().Digest); err != nil {
		return catalog.Config{}, err
	}
	keep := mostStates
	if withdrawn || p.remembersPrivate(ctx) {
		keep = 0
	}
	p.prune(ctx, keep)
	return p.former.Config(), ctx.Err()
}

// remembersPrivate reports whether a former state names a package that is not public any more. An earlier process can
// have been interrupted before it removed the state. A state that cannot be read is not served.
func (p *publication) remembersPrivate(ctx context.Context) bool {
	policy := p.guard.policy()
	return slices.ContainsFunc(p.states[:min(len(p.states), mostStates)], func(d oci.Digest) bool {
		hidden, err := p.guard.hidden(ctx, policy, d)
		return err == nil && len(hidden) > 0
	})
}

// differs reports whether a catalog has other content than the published index.
func (p *publication) differs(next *catalog.Catalog) bool {
	if !slices.Equal(p.former.Config().Owners, next.Config.Owners) {
		return true
	}
	return !next.SharesRows(&p.content) && len(catalog.Diff(&p.content, next)) > 0
}

// isWithdrawn reports whether a package of the published index, or of its journal, or an owner of an API group, is not
// public any more. It must not be in the snapshot or in the journal of the next state, and the former states are
// removed.
func (p *publication) isWithdrawn(repositories []string) bool {
	if p.former == nil {
		return false
	}
	names := namesIn(p.content.Packages, p.former.Events(), p.former.Config().Owners)
	if len(p.guard.learn(p.guard.policy(), p.former.Manifest().Digest, names)) > 0 {
		return true
	}
	return slices.ContainsFunc(p.content.Packages, func(row catalog.Package) bool {
		path, ok := strings.CutPrefix(row.Repository, p.packages.host+"/")
		return !ok || !slices.Contains(repositories, path)
	})
}

// load reads the published index once. An earlier process of this server published it, so it is not compared with the
// states that this machine has seen, and may have expired. Rows that are equal to those of the next state share their
// memory.
func (p *publication) load(ctx context.Context, next *catalog.Catalog) error {
	if p.former != nil {
		return nil
	}
	seen, err := p.client.Seen(ctx, p.ref, p.packages.host)
	if err != nil {
		return err
	}
	if seen.Sequence > p.lost.Sequence {
		p.lost = seen
	}
	if other := p.followed; other.config.Name == p.packages.host && other.config.Sequence > p.lost.Sequence {
		p.lost = indexer.Replaced{Sequence: other.config.Sequence, Digest: other.digest}
	}
	if err := p.client.Forget(p.ref); err != nil {
		return err
	}
	if err := p.open(ctx, next); err != nil {
		return err
	}
	if p.former != nil {
		if err := p.walk(ctx); err != nil {
			return err
		}
	}
	p.discardOlder()
	return nil
}

// discardOlder discards a state that is older than the newest one that this server has published, and one of another
// index: the tag was moved back, the registry was restored, or another client of the registry has replaced the index.
func (p *publication) discardOlder() {
	if p.former != nil {
		is := p.former.Config()
		if p.lost.Sequence == 0 || is.Name == p.packages.host && is.Sequence >= p.lost.Sequence {
			p.lost = indexer.Replaced{}
			return
		}
		discarded := slices.Insert(p.states, 0, p.former.Manifest().Digest)
		p.forget()
		p.states = discarded
	}
	if p.lost.Sequence > 0 {
		p.log.Warn(
			"the registry does not have the newest state of the index any more; the next state continues it", "sequence",
			p.lost.Sequence, "digest", p.lost.Digest,
		)
	}
}

// openClient prepares the access to the repository of the index once.
func (p *publication) openClient() error {
	if p.client != nil {
		return nil
	}
	if _, err := p.packages.open(); err != nil {
		return err
	}
	ref, err := p.packages.reference(indexRepository)
	if err != nil {
		return err
	}
	p.ref = ref.WithTag(indexTag)
	p.client = &indexer.Client{
		Remote: p.packages.client, Store: p.packages.store, Now: func() time.Time { return time.Time{} },
	}
	return nil
}

// open reads the state of the tag; none if there is no tag, or if its content is not valid: the next state then
// replaces it.
func (p *publication) open(ctx context.Context, next *catalog.Catalog) error {
	r, err := p.client.Open(ctx, p.ref)
	var content catalog.Catalog
	if err == nil {
		content, err = r.CatalogSharing(next)
	}
	if err == nil {
		m := r.Manifest()
		err = p.client.VerifyStored(ctx, p.ref, &m) // Only the cache of the server may have it.
	}
	switch {
	case err == nil:
		p.former, p.content = r, content
	case indexer.IsDamaged(err):
		if damaged := indexer.ReadReplaced(ctx, p.client.Remote, p.ref); damaged.Sequence > p.lost.Sequence {
			p.lost = damaged
		}
		p.log.Warn("the published index cannot be read; the next state replaces it", "error", err)
	case !indexer.IsAbsent(err):
		return err
	}
	return nil
}

// walk finds the former states that the registry has.
func (p *publication) walk(ctx context.Context) error {
	p.states = nil
	for d := p.former.Config().Previous; !d.IsZero() && len(p.states) < mostWalked; {
		config, err := p.configOf(ctx, d)
		if err != nil {
			return ctx.Err() // The state was removed.
		}
		p.states = append(p.states, d)
		d = config.Previous
	}
	return nil
}

// configOf returns the configuration of a state in the registry.
func (p *publication) configOf(ctx context.Context, d oci.Digest) (catalog.Config, error) {
	return indexer.ReadConfig(ctx, p.client.Remote, p.ref.WithDigest(d))
}

// push pushes the next state and opens it.
func (p *publication) push(ctx context.Context, next catalog.Catalog, snapshot bool) error {
	next.Config = catalog.Config{
		Name: p.packages.host, Sources: []catalog.Source{{Kind: catalog.SourceRegistry, Location: p.packages.host}},
		Counts: next.Config.Counts, Owners: next.Config.Owners,
	}
	created := p.now()
	publishing := indexer.Publishing{
		Catalog: next, Created: created, Expires: created.Add(indexValidity), Snapshot: snapshot,
	}
	if p.former != nil {
		former := p.content
		former.Config = p.former.Config()
		publishing.Former, publishing.FormerCatalog = p.former, &former
		publishing.Catalog.Config.Shards = p.former.Config().Shards
	} else {
		publishing.Replaced = p.lost
	}
	image, events, err := publishing.Encode()
	if err != nil {
		return err
	}
	var journal []catalog.Event
	if len(image.Manifest.Journal) > 0 {
		journal = slices.Concat(p.former.Events(), events)
	}
	// The first client need not wait until the state was read.
	p.guard.learn(p.guard.policy(), image.Manifest.Digest, namesIn(next.Packages, journal, next.Config.Owners))
	if err := p.sign(ctx, image.Manifest.Digest); err != nil {
		return err
	}
	if err := indexer.Publish(ctx, p.client.Remote, p.ref, &image, p.former); err != nil {
		return err
	}
	if p.former != nil {
		p.states = slices.Insert(p.states, 0, p.former.Manifest().Digest)
	}
	// This server has just published the state. It does not continue the one that this machine has seen if the name of the
	// index has changed.
	if err := p.client.Forget(p.ref); err != nil {
		return err
	}
	if p.former, err = p.client.Open(ctx, p.ref); err != nil {
		return err
	}
	if d := p.former.Manifest().Digest; d != image.Manifest.Digest {
		return indexer.ErrIndexChanged.New(
			nil, "%s is %s instead of %s after it was published", p.ref, d.Short(), image.Manifest.Digest.Short(),
		)
	}
	p.lost = indexer.Replaced{}
	return nil
}

// sign signs a state, unless it has a signature by the key. A state of an earlier process may have none, or one of a
// former key, and clients of the registry behind several servers can replace or delete it.
func (p *publication) sign(ctx context.Context, d oci.Digest) error {
	if p.signer == nil {
		return nil
	}
	if signed, err := p.signer.HasSigned(ctx, p.client.Remote, p.ref, d); signed || err != nil {
		return err
	}
	return p.signer.Push(ctx, p.client.Remote, p.ref, d)
}

// forget discards the state in memory, so that it is read again.
func (p *publication) forget() { p.former, p.content, p.states = nil, catalog.Catalog{}, nil }

// signatureOf returns the digest of the signatures of a state; zero if it has none.
func (p *publication) signatureOf(ctx context.Context, state oci.Digest) oci.Digest {
	d, err := p.client.Remote.Resolve(ctx, p.ref.WithTag(indexer.SignatureTag(state)))
	if err != nil {
		return oci.Digest{}
	}
	return d.Digest
}
