package cache

import (
	"context"
	"slices"
	"time"

	"github.com/xpkg-dev/xpkg/internal/oci"
)

// survey is what is in a store at one moment, and why.
type survey struct {
	now     time.Time
	entries []oci.Entry
	// docs are the manifests and indexes, with what they refer to.
	docs map[oci.Digest][]oci.Digest
	// names and owners are those of roots.
	names  map[oci.Digest][]string
	owners map[oci.Digest][]string
	// parts are what is known of named roots, even when a manifest is gone.
	parts map[oci.Digest][]oci.Digest
}

// survey looks at the store.
func (c *Cache) survey(ctx context.Context) (*survey, error) {
	s := &survey{now: c.now(), names: map[oci.Digest][]string{}, owners: map[oci.Digest][]string{}, parts: map[oci.Digest][]oci.Digest{}}
	var err error
	if s.entries, err = c.store.Entries(ctx); err != nil {
		return nil, err
	}
	if s.docs, err = c.docs.of(ctx, c.store, s.entries, c.limits); err != nil {
		return nil, err
	}
	names, err := c.names(ctx)
	if err != nil {
		return nil, err
	}
	for _, n := range names {
		s.names[n.Digest] = append(s.names[n.Digest], n.Name)
		s.parts[n.Digest] = n.Parts
	}
	uses, err := c.uses(ctx)
	if err != nil {
		return nil, err
	}
	for _, u := range uses {
		for _, root := range u.Roots {
			s.owners[root] = append(s.owners[root], u.Owner)
		}
	}
	return s, nil
}

// holding is a package in the store, or a part of one whose manifest is not there.
type holding struct {
	root oci.Digest
	// digests are the root and all that hangs from it.
	digests map[oci.Digest]bool
	// isPackage says that the root is there and is a manifest or an index.
	isPackage bool
	// lastUsed is when any of it was used, and age how long that is ago.
	lastUsed time.Time
	age      time.Duration
	names    []string
	owners   []string
}

// recent says that somebody may have fetched or read it to use it next.
func (h *holding) recent() bool { return h.age < grace }

// wanted says that it stays until somebody says otherwise.
func (h *holding) wanted() bool { return len(h.names)+len(h.owners) > 0 }

// holdings puts the entries together to packages, in the order of the roots. What
// several packages share belongs to each of them.
func (s *survey) holdings() []*holding {
	var all []*holding
	reached := map[oci.Digest]bool{}
	take := func(root oci.Digest) {
		_, isPackage := s.docs[root]
		h := &holding{root: root, isPackage: isPackage, digests: map[oci.Digest]bool{}, names: s.names[root], owners: s.owners[root]}
		s.collect(root, h.digests)
		for d := range h.digests {
			reached[d] = true
		}
		all = append(all, h)
	}
	for root := range s.roots() {
		take(root)
	}
	for _, e := range s.entries {
		if !reached[e.Digest] {
			take(e.Digest)
		}
	}
	s.date(all)
	slices.SortFunc(all, func(a, b *holding) int { return a.root.Compare(b.root) })
	return all
}

// roots are the documents that no other one refers to, and whatever was named or is
// used.
func (s *survey) roots() map[oci.Digest]bool {
	roots := map[oci.Digest]bool{}
	for d := range s.docs {
		roots[d] = true
	}
	for _, refs := range s.docs {
		for _, d := range refs {
			delete(roots, d)
		}
	}
	for d := range s.names {
		roots[d] = true
	}
	for d := range s.owners {
		roots[d] = true
	}
	return roots
}

// collect adds a digest and all that hangs from it.
func (s *survey) collect(d oci.Digest, to map[oci.Digest]bool) {
	if to[d] {
		return
	}
	to[d] = true
	for _, ref := range s.docs[d] {
		s.collect(ref, to)
	}
	for _, part := range s.parts[d] {
		s.collect(part, to)
	}
}

// date finds out when the holdings were used last.
func (s *survey) date(all []*holding) {
	used := map[oci.Digest]time.Time{}
	for _, e := range s.entries {
		if e.LastUsed.After(used[e.Digest]) {
			used[e.Digest] = e.LastUsed
		}
	}
	for _, h := range all {
		for d := range h.digests {
			if used[d].After(h.lastUsed) {
				h.lastUsed = used[d]
			}
		}
		h.age = s.now.Sub(h.lastUsed)
	}
}

// byDigest tells which holdings a digest belongs to.
func byDigest(all []*holding) map[oci.Digest][]*holding {
	index := map[oci.Digest][]*holding{}
	for _, h := range all {
		for d := range h.digests {
			index[d] = append(index[d], h)
		}
	}
	return index
}
