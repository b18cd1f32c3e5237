package fetch

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

// maxOrigins limits the references that are recorded for one content.
const maxOrigins = 16

func originsKey(d oci.Digest) store.DerivedKey {
	return store.DerivedKey{Digest: d, Name: "origins", Version: 1}
}

// noteOrigin records the reference under which content was fetched. Without a writable store there is no record.
func (s *Source) noteOrigin(ctx context.Context, ref oci.Reference, d oci.Digest) {
	if ref.Repository == "" {
		return
	}
	ref.Digest = oci.Digest{}
	if ref.Tag == "" {
		ref.Digest = d
	}
	leave, err := s.noting.Lock(ctx, d)
	if err != nil {
		return
	}
	defer leave()
	all := s.Origins(ctx, d)
	if slices.Contains(all, ref) || len(all) >= maxOrigins {
		return
	}
	var texts []string
	for _, r := range append(all, ref) {
		texts = append(texts, r.String())
	}
	if raw, err := json.Marshal(texts); err == nil {
		_ = s.opts.Store.PutDerived(ctx, originsKey(d), raw)
	}
}

// Origins returns the references under which the content with a digest was fetched from registries, as far as they are
// known.
func (s *Source) Origins(ctx context.Context, d oci.Digest) []oci.Reference {
	raw, err := s.opts.Store.GetDerived(ctx, originsKey(d))
	var texts []string
	if err != nil || json.Unmarshal(raw, &texts) != nil {
		return nil
	}
	var out []oci.Reference
	for _, text := range texts {
		if ref, err := oci.ParseReference(text, oci.ParseOptions{}); err == nil {
			out = append(out, ref)
		}
	}
	return out
}
