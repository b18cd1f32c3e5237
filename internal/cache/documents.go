package cache

import (
	"context"
	"sync"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

// documents caches the references of manifests and indexes, so that each is read once.
type documents struct {
	mu   sync.Mutex
	refs map[oci.Digest][]oci.Digest
}

// of returns the references of the documents among the entries. Other entries are absent
// from the result. A document that cannot be read has no references and is quarantined.
func (d *documents) of(
	ctx context.Context, s *store.Store, entries []store.Entry, limits oci.Limits,
) (map[oci.Digest][]oci.Digest, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	known := make(map[oci.Digest][]oci.Digest, len(entries))
	docs := map[oci.Digest][]oci.Digest{}
	for _, e := range entries {
		if e.IsDerived() {
			continue
		}
		refs, ok := d.refs[e.Digest]
		if !ok {
			var err error
			if refs, err = references(ctx, s, e.Digest, limits); err != nil {
				if ctx.Err() != nil {
					return nil, ctx.Err()
				}
				continue // It was quarantined, and may be fetched again.
			}
		}
		known[e.Digest] = refs
		if refs != nil {
			docs[e.Digest] = refs
		}
	}
	d.refs = known // Entries of evicted documents are dropped.
	return docs, nil
}

// references returns the references of a document, and nil for any other blob.
func references(ctx context.Context, s *store.Store, blob oci.Digest, limits oci.Limits) ([]oci.Digest, error) {
	doc, err := s.Document(ctx, blob, limits)
	if err != nil || doc == nil {
		return nil, err
	}
	refs := []oci.Digest{}
	for _, l := range doc.Layers {
		refs = append(refs, l.Digest)
	}
	for _, m := range doc.Manifests {
		refs = append(refs, m.Digest)
	}
	if doc.Config != nil {
		refs = append(refs, doc.Config.Digest)
	}
	return refs, nil
}
