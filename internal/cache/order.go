package cache

import (
	"cmp"
	"slices"

	"github.com/xpkg-dev/xpkg/internal/oci"
)

// candidate is an entry that may be evicted.
type candidate struct {
	oci.Entry
	// holding is the one that was used last of those that the entry belongs to.
	holding *holding
	// lastResort says that a wanted package needs it, and can compute it again.
	lastResort bool
}

// candidates lists what may be evicted, in the order in which it goes: what was not
// used for longest first, package by package, of a package what was derived before
// its layers and its root last; and after all that, what was derived of wanted
// packages. What may not be removed is left out.
func candidates(s *survey, all []*holding) []candidate {
	owners := byDigest(all)
	var out []candidate
	for _, e := range s.entries {
		c := candidate{Entry: e}
		recent := false
		for _, h := range owners[e.Digest] {
			recent = recent || h.recent()
			c.lastResort = c.lastResort || h.wanted()
			if c.holding == nil || h.lastUsed.After(c.holding.lastUsed) {
				c.holding = h
			}
		}
		if recent || c.lastResort && !e.IsDerived() {
			continue
		}
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b candidate) int { return a.compare(b, s) })
	return out
}

// compare says which candidate goes first.
func (c candidate) compare(other candidate, s *survey) int {
	if c.lastResort != other.lastResort {
		return compareBool(c.lastResort, other.lastResort)
	}
	if c.holding == other.holding {
		return cmp.Or(cmp.Compare(rank(c, s), rank(other, s)), c.Entry.Compare(other.Entry))
	}
	return cmp.Or(c.holding.lastUsed.Compare(other.holding.lastUsed), c.holding.root.Compare(other.holding.root))
}

// rank orders the entries of one package: a part of it is worth nothing without
// its root.
func rank(c candidate, s *survey) int {
	_, isDocument := s.docs[c.Digest]
	switch {
	case c.IsDerived():
		return 0
	case c.Digest == c.holding.root:
		return 3
	case isDocument:
		return 2
	}
	return 1
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// sizeOf adds up entries.
func sizeOf(all []candidate) int64 {
	var n int64
	for _, c := range all {
		n += c.Size
	}
	return n
}
