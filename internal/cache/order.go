package cache

import (
	"cmp"
	"slices"

	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

// candidate is an entry that may be evicted.
type candidate struct {
	store.Entry
	// holding is the most recently used holding of the entry.
	holding *holding
	// lastResort marks derived data of a wanted package, which can be computed again.
	lastResort bool
}

// candidates returns the entries that can be evicted, in eviction order: least recently
// used packages first; within a package derived data, then layers, then the root; and
// finally the derived data of wanted packages.
func candidates(s *snapshot, all []*holding) []candidate {
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

// compare orders candidates for eviction.
func (c candidate) compare(other candidate, s *snapshot) int {
	if c.lastResort != other.lastResort {
		return compareBool(c.lastResort, other.lastResort)
	}
	if c.holding == other.holding {
		return cmp.Or(cmp.Compare(rank(c, s), rank(other, s)), c.Entry.Compare(other.Entry))
	}
	return cmp.Or(c.holding.lastUsed.Compare(other.holding.lastUsed), c.holding.root.Compare(other.holding.root))
}

// rank orders the entries of a package. The root is evicted last, because other parts are
// useless without it.
func rank(c candidate, s *snapshot) int {
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

// sizeOf returns the total size of entries.
func sizeOf(all []candidate) int64 {
	var n int64
	for _, c := range all {
		n += c.Size
	}
	return n
}
