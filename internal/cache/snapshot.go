package cache

import (
	"context"
	"slices"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

// snapshot is the content of a store at one moment, with the reasons to keep it.
type snapshot struct {
	now     time.Time
	entries []store.Entry
	// docs maps manifests and indexes to their references.
	docs map[oci.Digest][]oci.Digest
	// names and owners are keyed by root.
	names  map[oci.Digest][]string
	owners map[oci.Digest][]string
	// users are the names of the owners for people.
	users map[oci.Digest][]string
	// parts are the known parts of named roots, even if the manifest is missing.
	parts map[oci.Digest][]oci.Digest
}

// scan reads the state of the store.
func (c *Cache) scan(ctx context.Context) (*snapshot, error) {
	s := &snapshot{
		now: c.now(), names: map[oci.Digest][]string{}, owners: map[oci.Digest][]string{}, users: map[oci.Digest][]string{},
		parts: map[oci.Digest][]oci.Digest{},
	}
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
			s.users[root] = append(s.users[root], u.name())
		}
	}
	return s, nil
}

// holding is a package in the store, or a part of a package whose manifest is missing.
type holding struct {
	root oci.Digest
	// digests are the digests of the root and all content below it.
	digests map[oci.Digest]bool
	// isPackage is set if the root exists and is a manifest or an index.
	isPackage bool
	// lastUsed is the time of the last use of any part, and age the time since then.
	lastUsed time.Time
	age      time.Duration
	names    []string
	owners   []string
}

// recent reports whether the package was used within the grace period.
func (h *holding) recent() bool { return h.age < grace }

// wanted reports whether the package has a name or an owner.
func (h *holding) wanted() bool { return len(h.names)+len(h.owners) > 0 }

// holdings groups entries by package, in the order of the roots. Shared content belongs
// to each of its packages.
func (s *snapshot) holdings() []*holding {
	var all []*holding
	reached := map[oci.Digest]bool{}
	take := func(root oci.Digest) {
		_, isPackage := s.docs[root]
		h := &holding{
			root: root, isPackage: isPackage, digests: map[oci.Digest]bool{}, names: s.names[root], owners: s.owners[root],
		}
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

// roots returns the documents that no other document refers to, and all digests with a
// name or an owner.
func (s *snapshot) roots() map[oci.Digest]bool {
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

// collect adds a digest and all content below it.
func (s *snapshot) collect(d oci.Digest, to map[oci.Digest]bool) {
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

// date sets the time of the last use of the holdings.
func (s *snapshot) date(all []*holding) {
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

// byDigest maps each digest to its holdings.
func byDigest(all []*holding) map[oci.Digest][]*holding {
	index := map[oci.Digest][]*holding{}
	for _, h := range all {
		for d := range h.digests {
			index[d] = append(index[d], h)
		}
	}
	return index
}
