package registry

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/xpkg-dev/xpkg/internal/indexer"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// An update of an index in front of a backend asks for the digests of new tags, and of those that were written through
// the server. The digests of all others are compared in rounds, beside the updates, so that a repository with many tags
// delays no update.
const (
	// mostCompared is the number of tags of a repository that a round compares. The next round continues with the others.
	mostCompared = 500
	// comparedTogether is the number of repositories whose tags are compared at the same time, with one request each.
	comparedTogether = 4
)

// changedTags are tags and digests that may have changed since the last update, by repository.
type changedTags struct {
	mu         sync.Mutex
	references map[string]map[string]bool
}

// add records that a tag, or the tags with a digest, may have changed.
func (c *changedTags) add(repository, reference string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.references == nil {
		c.references = map[string]map[string]bool{}
	}
	if c.references[repository] == nil {
		c.references[repository] = map[string]bool{}
	}
	c.references[repository][reference] = true
}

// take returns the tags and digests of a repository, and removes them.
func (c *changedTags) take(repository string) map[string]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer delete(c.references, repository)
	return c.references[repository]
}

// forget makes the next update ask for the digests of changed tags.
func (x *LocalIndexer) forget(states indexer.States, repositories []string) {
	for _, repository := range repositories {
		if changed := x.changedTags.take(repository); len(changed) > 0 {
			states.Forget(x.packages.host+"/"+
				repository, func(tag string, d oci.Digest) bool { return changed[tag] || changed[d.String()] })
		}
	}
}

// knownTags are the digests of the tags of repositories.
func (x *LocalIndexer) knownTags() map[string]map[string]oci.Digest {
	x.mu.Lock()
	defer x.mu.Unlock()
	out := map[string]map[string]oci.Digest{}
	for _, b := range x.built {
		for name := range b.states {
			if path, ok := strings.CutPrefix(name, x.packages.host+"/"); ok {
				out[path] = b.states.Digests(name)
			}
		}
	}
	return out
}

// watchTags compares the digests of the tags with those of the backend until the context ends, a round in each
// interval.
func (x *LocalIndexer) watchTags(ctx context.Context, interval time.Duration, changed func(repository string)) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			x.compareTags(ctx, changed)
		}
	}
}

// compareTags compares the digests of the next tags of each repository with those of the backend, and calls changed for
// the repositories in which a tag has moved.
func (x *LocalIndexer) compareTags(ctx context.Context, changed func(repository string)) {
	known := x.knownTags()
	maps.DeleteFunc(x.lastCompared, func(repository, _ string) bool { return known[repository] == nil })
	repositories := slices.Sorted(maps.Keys(known))
	last := make([]string, len(repositories))
	var g errgroup.Group
	g.SetLimit(comparedTogether)
	for i, repository := range repositories {
		next := nextTags(known[repository], x.lastCompared[repository])
		g.Go(func() error {
			var hasMoved bool
			if last[i], hasMoved = x.compareNext(ctx, repository, known[repository], next); hasMoved {
				changed(repository)
			}
			return nil
		})
	}
	_ = g.Wait()
	for i, repository := range repositories {
		x.lastCompared[repository] = last[i]
	}
}

// nextTags returns the tags after the last one that was compared, and those from the start after the end, at most
// mostCompared.
func nextTags(known map[string]oci.Digest, last string) []string {
	tags := slices.Sorted(maps.Keys(known))
	at, found := slices.BinarySearch(tags, last)
	if found {
		at++
	}
	tags = slices.Concat(tags[at:], tags[:at])
	return tags[:min(len(tags), mostCompared)]
}

// compareNext compares tags of a repository until one cannot be read. It returns the last one that was compared.
func (x *LocalIndexer) compareNext(
	ctx context.Context, repository string, known map[string]oci.Digest, tags []string,
) (last string, hasMoved bool) {
	ref, err := x.packages.reference(repository)
	for _, tag := range tags {
		var d oci.Descriptor
		if err == nil {
			d, err = x.packages.client.Resolve(ctx, ref.WithTag(tag))
		}
		if errors.Is(err, remote.ErrTagNotFound) {
			err = nil
		}
		if ctx.Err() != nil {
			return last, hasMoved
		}
		last = tag
		if err != nil {
			x.log.Warn(
				"cannot find out whether tags of a package have moved", "repository", repository, "tag", tag, "error", err,
			)
			return last, hasMoved
		}
		if d.Digest != known[tag] {
			x.changedTags.add(repository, tag)
			hasMoved = true
		}
	}
	return last, hasMoved
}
