package registry

import (
	"context"
	"log/slog"
	"sync"

	"github.com/xpkg-dev/xpkg/pkg/catalog"
)

// LocalIndexer builds the indexes of a registry in this process. It reads each version once, and keeps the facts of all versions in
// memory.
type LocalIndexer struct {
	packages *Packages
	name     string
	// publication publishes the index of the public packages; nil publishes nothing.
	publication *publication
	log         *slog.Logger

	mu    sync.Mutex
	facts map[string]map[string]versionFacts // by partition and repository
}

// NewLocalIndexer returns an indexer of packages. The name is the name of the indexes.
func NewLocalIndexer(packages *Packages, name string) *LocalIndexer {
	return &LocalIndexer{packages: packages, name: name, log: slog.New(slog.DiscardHandler), facts: map[string]map[string]versionFacts{}}
}

// Load implements Indexer.
func (x *LocalIndexer) Load(context.Context, string) (*catalog.Catalog, error) {
	return &catalog.Catalog{Config: catalog.Config{Name: x.name}}, nil
}

// Update implements Indexer. A repository that cannot be read ends the update, and the previous catalog remains in use.
func (x *LocalIndexer) Update(ctx context.Context, partition string, previous *catalog.Catalog, repositories, changed []string) (*catalog.Catalog, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	known := x.facts[partition]
	if known == nil {
		known = map[string]versionFacts{}
	}
	next := map[string]versionFacts{}
	for _, repository := range repositories {
		if kept, ok := known[repository]; ok {
			next[repository] = kept
		}
	}
	for _, repository := range changed {
		facts, err := x.packages.facts(ctx, repository, known[repository])
		if err != nil {
			return nil, err
		}
		delete(next, repository)
		if len(facts) > 0 {
			next[repository] = facts
		}
	}
	var all []catalog.Facts
	for _, of := range next {
		for _, f := range of {
			all = append(all, f)
		}
	}
	config := catalog.Config{Name: x.name, Sequence: previous.Config.Sequence + 1}
	built, err := catalog.Build(config, all)
	if err != nil {
		return nil, err
	}
	if len(catalog.Diff(previous, &built)) == 0 {
		built.Config.Sequence = previous.Config.Sequence
	}
	x.facts[partition] = next
	if partition == "" && x.publication != nil {
		x.publish(ctx, &built, repositories)
	}
	return &built, nil
}

// publish publishes the index of the public packages. The search does not depend on it, so an error is logged; the next update of
// the site publishes the index again.
func (x *LocalIndexer) publish(ctx context.Context, built *catalog.Catalog, repositories []string) {
	config, err := x.publication.publish(ctx, built, repositories)
	switch {
	case err == nil:
		built.Config = config
	case ctx.Err() == nil:
		x.log.Error("cannot publish the index; the next attempt follows", "error", err)
	}
}
