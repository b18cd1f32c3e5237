package cache

import (
	"context"
	"fmt"

	"github.com/xpkg-dev/xpkg/internal/oci"
)

// makeRoom lets something be written when there is room for it within the limit,
// and makes that room where it can. It is oci.StoreOptions.MakeRoom.
func (c *Cache) makeRoom(ctx context.Context, need oci.Need, reserve func() error) error {
	if c.limit == 0 {
		return reserve()
	}
	if need.Bytes > c.limit {
		return ErrCacheFull.New(nil, "the package cache %s may have %s (--cache-limit), and %s are to be written", c.dir, amount(c.limit), amount(need.Bytes))
	}
	return c.store.Exclusive(ctx, func() error {
		if err := c.shrink(ctx, need); err != nil {
			return err
		}
		return reserve()
	})
}

// shrink evicts what has to go for the cache to have room within its limit. When
// that is not possible it removes nothing.
func (c *Cache) shrink(ctx context.Context, need oci.Need) error {
	over, err := c.over(ctx, need.Bytes)
	if err != nil || over <= 0 {
		return err
	}
	swept, err := c.store.Sweep(ctx, c.now().Add(-grace))
	if over -= swept; err != nil || over <= 0 {
		return err
	}
	s, err := c.survey(ctx)
	if err != nil {
		return err
	}
	all := candidates(s, s.holdings())
	if need.Derived {
		all = withoutLastResort(all)
	}
	if sizeOf(all) < over {
		return c.noRoom(s, need, over-sizeOf(all))
	}
	for _, e := range all {
		if over <= 0 {
			return nil
		}
		gone, err := c.store.Evict(e.Entry)
		if err != nil {
			return err
		}
		if gone {
			over -= e.Size
		}
	}
	if over > 0 {
		return c.busy(need, "the rest is open")
	}
	return nil
}

// over is how many bytes there would be above the limit.
func (c *Cache) over(ctx context.Context, need int64) (int64, error) {
	total, err := c.store.Bytes(ctx)
	return total + need - c.limit, err
}

// noRoom tells whether waiting helps: it does when enough of what stays does so
// only because it was used a moment ago.
func (c *Cache) noRoom(s *survey, need oci.Need, missing int64) error {
	later := *s
	later.now = s.now.Add(grace)
	all := candidates(&later, later.holdings())
	recent := sizeOf(withoutLastResort(all)) - sizeOf(withoutLastResort(candidates(s, s.holdings())))
	if recent >= missing {
		return c.busy(need, fmt.Sprintf("%s were used within the last %d minutes", amount(recent), int(grace.Minutes())))
	}
	return ErrCacheFull.New(nil, "the package cache %s may have %s (--cache-limit), %s more are to be written, and %s too many are in use or were added by name",
		c.dir, amount(c.limit), amount(need.Bytes), amount(missing-recent))
}

func (c *Cache) busy(need oci.Need, why string) error {
	return ErrCacheBusy.New(nil, "the package cache %s may have %s (--cache-limit) and has no room for %s now: %s", c.dir, amount(c.limit), amount(need.Bytes), why)
}

func withoutLastResort(all []candidate) []candidate {
	for i, c := range all {
		if c.lastResort {
			return all[:i] // They come last.
		}
	}
	return all
}

// amount is a number of bytes as people read it.
func amount(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}
