package cache

import (
	"context"
	"fmt"

	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

// makeRoom calls reserve when the write fits within the limit, after evicting packages if
// necessary. It implements store.Options.MakeRoom.
func (c *Cache) makeRoom(ctx context.Context, need store.Need, reserve func() error) error {
	if c.limit == 0 {
		return reserve()
	}
	if need.Bytes > c.limit {
		return ErrCacheFull.New(
			nil, "the package cache %s is limited to %s (--cache-limit), but the package needs %s", c.dir, amount(c.limit),
			amount(need.Bytes),
		)
	}
	return c.store.Exclusive(ctx, func() error {
		if c.fits(need) {
			return reserve()
		}
		if err := c.shrink(ctx, need); err != nil {
			return err
		}
		return reserve()
	})
}

// fits reports whether a write fits within the limit for certain, without a measurement of the cache, and counts the
// write.
func (c *Cache) fits(need store.Need) bool {
	t, ok := c.store.Tally()
	// Some writes are larger than their reservation.
	if t.Bytes += need.Bytes; !ok || t.Bytes > c.limit-c.limit/8 {
		return false
	}
	c.store.SetTally(t)
	return true
}

// shrink evicts packages until the write fits within the limit. It removes nothing if
// that is not possible.
func (c *Cache) shrink(ctx context.Context, need store.Need) error {
	over, err := c.over(ctx, need.Bytes)
	if err != nil {
		return err
	}
	c.store.SetTally(store.Tally{Bytes: c.limit + over, Measured: c.now()})
	if over <= 0 {
		return nil
	}
	swept, err := c.store.Sweep(ctx, c.now().Add(-grace))
	if over -= swept; err != nil || over <= 0 {
		return err
	}
	s, err := c.scan(ctx)
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
		return c.busy(need, "the rest is in use by other processes")
	}
	return nil
}

// over returns the number of bytes above the limit.
func (c *Cache) over(ctx context.Context, need int64) (int64, error) {
	total, err := c.store.Bytes(ctx)
	return total + need - c.limit, err
}

// noRoom returns the error for a write that does not fit. It distinguishes a cache that
// is full from a cache in which enough packages are only kept because of a recent use.
func (c *Cache) noRoom(s *snapshot, need store.Need, missing int64) error {
	later := *s
	later.now = s.now.Add(grace)
	all := candidates(&later, later.holdings())
	recent := sizeOf(withoutLastResort(all)) - sizeOf(withoutLastResort(candidates(s, s.holdings())))
	if recent >= missing {
		return c.busy(need, fmt.Sprintf("%s were used within the last %d minutes", amount(recent), int(grace.Minutes())))
	}
	return ErrCacheFull.New(nil,
		"the package cache %s is limited to %s (--cache-limit); %s more are needed, and packages in use or with a name exceed the limit by %s",
		c.dir, amount(c.limit), amount(need.Bytes), amount(missing-recent))
}

func (c *Cache) busy(need store.Need, why string) error {
	return ErrCacheBusy.New(
		nil, "the package cache %s is limited to %s (--cache-limit) and has no room for %s yet: %s", c.dir, amount(c.limit),
		amount(need.Bytes), why,
	)
}

func withoutLastResort(all []candidate) []candidate {
	for i, c := range all {
		if c.lastResort {
			return all[:i] // Candidates of last resort come last.
		}
	}
	return all
}

// amount formats a number of bytes.
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
