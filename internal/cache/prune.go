package cache

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

// PruneOptions select the entries that Prune removes. The zero value only removes entries
// that belong to no package.
type PruneOptions struct {
	// MaxBytes is the maximum size of the cache afterwards; the least recently used
	// packages are removed first. 0 is no limit.
	MaxBytes int64
	// OlderThan removes packages that were not used for that time; 0 removes none.
	OlderThan time.Duration
	// All also removes named packages, together with their names. Without other options
	// it removes all packages that are not in use.
	All bool
	// DryRun reports the result without removing anything.
	DryRun bool
}

// Prune removes packages that are not needed. It never removes packages in use by a
// control plane or used within the last ten minutes.
func (c *Cache) Prune(ctx context.Context, o PruneOptions) (Report, error) {
	var r Report
	err := c.store.Exclusive(ctx, func() (err error) {
		r, err = c.prune(ctx, o)
		return err
	})
	return r, err
}

func (c *Cache) prune(ctx context.Context, o PruneOptions) (Report, error) {
	var r Report
	total, err := c.sweep(ctx, o, &r)
	if err != nil {
		return r, err
	}
	s, err := c.scan(ctx)
	if err != nil {
		return r, err
	}
	r.count(s.entries)
	pinned := *s
	if o.All {
		pinned.names, pinned.parts = nil, nil
	}
	for _, h := range pinned.holdings() {
		if h.isPackage && !h.wanted() && h.recent() {
			r.Recent++
		}
	}
	doomed := chosen(candidates(&pinned, pinned.holdings()), total, o)
	lost := lostBy(doomed)
	r.Removed = c.removed(ctx, s, lost)
	if o.All && !o.DryRun {
		if err := c.forget(ctx, lost); err != nil {
			return r, err
		}
	}
	for _, e := range doomed {
		gone := o.DryRun
		if !gone {
			if gone, err = c.store.Evict(e.Entry); err != nil {
				return r, err
			}
		}
		if gone {
			r.Freed += e.Size
		}
	}
	return r, nil
}

// lostBy returns the blobs among the candidates.
func lostBy(doomed []candidate) map[oci.Digest]bool {
	lost := map[oci.Digest]bool{}
	for _, e := range doomed {
		if !e.IsDerived() {
			lost[e.Digest] = true
		}
	}
	return lost
}

// removed returns the packages that lose content other than derived data.
func (c *Cache) removed(ctx context.Context, s *snapshot, lost map[oci.Digest]bool) []Entry {
	holdings := s.holdings()
	owners := byDigest(holdings)
	var all []Entry
	for _, h := range holdings {
		if !h.isPackage ||
			!slices.ContainsFunc(slices.Collect(maps.Keys(h.digests)), func(d oci.Digest) bool { return lost[d] }) {
			continue
		}
		e := s.describe(h, owners)
		if what, ok := c.storedSummary(ctx, h.root); ok {
			e.Kind, e.Package = what.Kind, what.Name
		} else if e.Type = c.artifactType(ctx, h.root); e.Type == "" {
			e.Partial = !h.wanted() && len(c.lacking(ctx, s, h)) > 0
		}
		all = append(all, e)
	}
	return all
}

// forget deletes the names of content that is about to be removed or already missing. It
// deletes names first, so that a killed process leaves no name without content.
func (c *Cache) forget(ctx context.Context, lost map[oci.Digest]bool) error {
	names, err := c.names(ctx)
	if err != nil {
		return err
	}
	for _, n := range names {
		if c.has(n.Parts) && !slices.ContainsFunc(n.Parts, func(d oci.Digest) bool { return lost[d] }) {
			continue
		}
		if err := c.store.RemoveRecord(store.Record{Kind: namesKind, Name: n.Name}); err != nil {
			return err
		}
	}
	return nil
}

// sweep removes files that are not part of the content of the store, and returns the
// remaining size.
func (c *Cache) sweep(ctx context.Context, o PruneOptions, r *Report) (int64, error) {
	if !o.DryRun {
		freed, err := c.store.Sweep(ctx, c.now().Add(-grace))
		if r.Freed += freed; err != nil {
			return 0, err
		}
	}
	over, err := c.over(ctx, 0)
	return over + c.limit, err
}

// chosen selects the candidates to remove.
func chosen(all []candidate, total int64, o PruneOptions) []candidate {
	return slices.DeleteFunc(all, func(e candidate) bool {
		h := e.holding
		switch {
		case !h.isPackage && !h.wanted(),
			o.All && o.MaxBytes == 0 && o.OlderThan == 0 && !e.lastResort,
			o.OlderThan > 0 && !e.lastResort && h.age > o.OlderThan,
			o.MaxBytes > 0 && total > o.MaxBytes:
			total -= e.Size
			return false
		}
		return true
	})
}
