package cache

import (
	"context"
	"errors"
	"slices"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

// Verify reads all content of the cache and compares it with its digest. Damaged content
// is quarantined. Then it checks that the packages in use and the named packages are
// complete. Verifying does not count as a use.
func (c *Cache) Verify(ctx context.Context) (Report, error) {
	var r Report
	if err := c.verifyRecords(ctx, &r); err != nil {
		return r, err
	}
	// Scanning quarantines damaged manifests, so all content is verified first.
	damaged, err := c.verifyEntries(ctx, &r)
	if err != nil {
		return r, err
	}
	s, err := c.scan(ctx)
	if err != nil {
		return r, err
	}
	holdings := s.holdings()
	owners := byDigest(holdings)
	for _, e := range damaged {
		r.Damaged = append(r.Damaged, fault(e.Digest, e.String(), owners[e.Digest]))
	}
	for _, h := range holdings {
		for _, f := range c.missing(ctx, s, h) {
			if !slices.ContainsFunc(r.Damaged, func(d Fault) bool { return d.Digest == f.Digest }) {
				r.Missing = append(r.Missing, f)
			}
		}
	}
	return r, c.verifyReadable(ctx, &r)
}

// verifyReadable adds the packages and files that List cannot read, except for those whose damaged or
// missing content is reported already.
func (c *Cache) verifyReadable(ctx context.Context, r *Report) error {
	entries, err := c.List(ctx)
	if err != nil {
		return err
	}
	reported := func(e Entry) bool {
		return slices.ContainsFunc(slices.Concat(r.Damaged, r.Missing), func(f Fault) bool {
			shared := func(name string) bool { return slices.Contains(f.Names, name) || slices.Contains(f.InUse, name) }
			return f.Digest == e.Digest && !e.Digest.IsZero() || slices.ContainsFunc(slices.Concat(e.Names, e.InUse), shared)
		})
	}
	for _, e := range entries {
		if e.Problem != "" && !reported(e) {
			r.Unreadable = append(r.Unreadable, e)
		}
	}
	return nil
}

// verifyEntries reads all entries and returns the damaged ones.
func (c *Cache) verifyEntries(ctx context.Context, r *Report) ([]store.Entry, error) {
	entries, err := c.store.Entries(ctx)
	if err != nil {
		return nil, err
	}
	r.count(entries)
	var damaged []store.Entry
	for _, e := range entries {
		if err := c.store.Check(ctx, e); errors.Is(err, oci.ErrDigestMismatch) {
			damaged = append(damaged, e)
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return damaged, nil
}

// verifyRecords removes unreadable records, which is required before the cache can be
// scanned.
func (c *Cache) verifyRecords(ctx context.Context, r *Report) error {
	return c.store.Exclusive(ctx, func() error {
		for _, kind := range []string{namesKind, usesKind} {
			records, err := c.store.Records(ctx, kind)
			if err != nil {
				return err
			}
			for _, record := range records {
				if readable(record) {
					continue
				}
				if err := c.store.RemoveRecord(record); err != nil {
					return err
				}
				r.Damaged = append(r.Damaged, Fault{What: "a record of " + kind})
			}
		}
		return nil
	})
}

func readable(r store.Record) bool {
	var err error
	if r.Kind == namesKind {
		_, err = decodeName(r)
	} else {
		_, err = decodeUse(r)
	}
	return err == nil
}

// missing returns the missing content of a wanted package. A package in use without any content has
// not been fetched yet and lacks nothing.
func (c *Cache) missing(ctx context.Context, s *snapshot, h *holding) []Fault {
	if !h.wanted() {
		return nil
	}
	return c.lacking(ctx, s, h)
}

// lacking returns the missing content of a package.
func (c *Cache) lacking(ctx context.Context, s *snapshot, h *holding) []Fault {
	var faults []Fault
	lacks := func(d oci.Digest, what string) {
		if !c.store.Has(d) {
			faults = append(faults, fault(d, what, []*holding{h}))
		}
	}
	for i, d := range s.parts[h.root] {
		if i == 0 {
			lacks(d, "manifest "+d.String())
			continue
		}
		lacks(d, "content "+d.String())
	}
	if !h.isPackage || len(faults) > 0 {
		return faults
	}
	peek := c.store.Peek()
	a, err := peek.Artifact(ctx, h.root, c.limits)
	if err != nil {
		return faults // The damage is already reported.
	}
	if m, err := oci.FindManifest(ctx, a, oci.Platform{}, c.limits); err == nil && m.Base != nil &&
		!slices.Contains(s.parts[h.root], m.Base.Digest) {
		lacks(m.Base.Digest, "layer "+m.Base.Digest.String())
	} else if errors.Is(err, oci.ErrBlobNotFound) {
		faults = append(faults, fault(h.root, "manifest below "+h.root.String(), []*holding{h}))
	}
	return faults
}

func fault(d oci.Digest, what string, of []*holding) Fault {
	f := Fault{Digest: d, What: what}
	for _, h := range of {
		f.Names = append(f.Names, h.names...)
		f.InUse = append(f.InUse, h.owners...)
	}
	return f
}
