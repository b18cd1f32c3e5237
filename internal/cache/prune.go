package cache

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/xpkg-dev/xpkg/internal/oci"
)

// PruneOptions say what Prune removes. Without any, that is only what belongs to no
// package.
type PruneOptions struct {
	// MaxBytes is what the cache may have afterwards; what was not used for longest
	// goes first. 0 is no limit.
	MaxBytes int64
	// OlderThan removes what was not used for that time; 0 does not.
	OlderThan time.Duration
	// All lets packages go that have a name, and their names with them. Alone it
	// removes all that is not in use.
	All bool
	// DryRun only tells what would be removed.
	DryRun bool
}

// Prune removes packages that nobody needs. Whatever is asked for, what a control
// plane uses stays, and so does what was used within the last ten minutes.
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
	s, err := c.survey(ctx)
	if err != nil {
		return r, err
	}
	r.count(s.entries)
	pinned := *s
	if o.All {
		pinned.names, pinned.parts = nil, nil
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

// lostBy are the blobs among what is removed.
func lostBy(doomed []candidate) map[oci.Digest]bool {
	lost := map[oci.Digest]bool{}
	for _, e := range doomed {
		if !e.IsDerived() {
			lost[e.Digest] = true
		}
	}
	return lost
}

// removed describes the packages that lose more than what can be computed again.
func (c *Cache) removed(ctx context.Context, s *survey, lost map[oci.Digest]bool) []Entry {
	holdings := s.holdings()
	owners := byDigest(holdings)
	var all []Entry
	for _, h := range holdings {
		if !h.isPackage || !slices.ContainsFunc(slices.Collect(maps.Keys(h.digests)), func(d oci.Digest) bool { return lost[d] }) {
			continue
		}
		e := s.describe(h, owners)
		if what, ok := c.keptAbout(ctx, h.root); ok {
			e.Kind, e.Package = what.Kind, what.Name
		}
		all = append(all, e)
	}
	return all
}

// forget drops the names of what is going to be lost, or is lost already: a name
// without content would be a promise that nobody keeps. The names go first, so that
// a process that is killed does not leave one.
func (c *Cache) forget(ctx context.Context, lost map[oci.Digest]bool) error {
	names, err := c.names(ctx)
	if err != nil {
		return err
	}
	for _, n := range names {
		if c.has(n.Parts) && !slices.ContainsFunc(n.Parts, func(d oci.Digest) bool { return lost[d] }) {
			continue
		}
		if err := c.store.RemoveRecord(oci.Record{Kind: namesKind, Name: n.Name}); err != nil {
			return err
		}
	}
	return nil
}

// sweep removes what is not part of the store's content, and gives the bytes that
// are left.
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

// chosen gives what is to be removed of what can be.
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
