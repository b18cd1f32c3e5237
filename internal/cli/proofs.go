package cli

import (
	"context"
	"os"
	"path/filepath"

	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/oci"
)

// proofs remember, in the package cache, which index layers said what their
// package.yaml says. Digests never change their content, so that holds for ever.
// Without a cache nothing is remembered, which costs time and nothing else.
type proofs struct{ store *oci.Store }

func openProofs(dir string) proofs {
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return proofs{}
		}
		dir = filepath.Join(user, "xpkg", "packages")
	}
	store, err := openStore(dir)
	if err != nil {
		return proofs{}
	}
	return proofs{store}
}

func proofKey(manifest oci.Digest) oci.DerivedKey {
	return oci.DerivedKey{Digest: manifest, Name: "index-proof", Version: format.IndexVersion}
}

// has says whether the index layer of a manifest was compared with its package.
func (p proofs) has(ctx context.Context, manifest, layer oci.Digest) bool {
	if p.store == nil {
		return false
	}
	kept, err := p.store.GetDerived(ctx, proofKey(manifest))
	return err == nil && string(kept) == layer.String()
}

func (p proofs) add(ctx context.Context, manifest, layer oci.Digest) {
	if p.store != nil {
		_ = p.store.PutDerived(ctx, proofKey(manifest), []byte(layer.String()))
	}
}

func (p proofs) close() {
	if p.store != nil {
		_ = p.store.Close()
	}
}
