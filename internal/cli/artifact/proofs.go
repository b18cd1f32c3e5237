package artifact

import (
	"context"

	"github.com/xpkg-dev/xpkg/internal/cache"
	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/index"
)

// proofs records in the package cache the index layers that matched their package.yaml. Digests identify
// content, so a record never expires. Without a cache nothing is recorded, and packages are compared again.
type proofs struct{ cache *cache.Cache }

func openProofs(dir string) proofs {
	if dir == "" {
		dir = flags.DefaultCacheDir()
	}
	packages, err := cache.Open(dir, cache.Options{})
	if err != nil {
		return proofs{}
	}
	return proofs{packages}
}

func proofKey(manifest oci.Digest) store.DerivedKey {
	return store.DerivedKey{Digest: manifest, Name: "index-proof", Version: index.Version}
}

// has reports whether the index layer of a manifest was compared with its package.
func (p proofs) has(ctx context.Context, manifest, layer oci.Digest) bool {
	if p.cache == nil {
		return false
	}
	kept, err := p.cache.Store().GetDerived(ctx, proofKey(manifest))
	return err == nil && string(kept) == layer.String()
}

func (p proofs) add(ctx context.Context, manifest, layer oci.Digest) {
	if p.cache != nil {
		_ = p.cache.Store().PutDerived(ctx, proofKey(manifest), []byte(layer.String()))
	}
}

func (p proofs) close() {
	if p.cache != nil {
		_ = p.cache.Close()
	}
}
