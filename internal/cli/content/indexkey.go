package content

import (
	"context"

	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/internal/indexer"
)

// IndexKeyFlag selects the keys that must have signed indexes.
type IndexKeyFlag struct {
	IndexKey string `placeholder:"FILE" complete:"file" env:"XPKG_INDEX_KEY" config:"" help:"File with public keys (PEM), of which one must have signed each index. Without it, signatures of indexes are not verified."`
}

// Keys returns the keys; none without the flag.
func (f IndexKeyFlag) Keys(ctx context.Context) (indexer.Keys, error) {
	if f.IndexKey == "" {
		return nil, nil
	}
	text, err := fileutil.ReadFile(ctx, f.IndexKey)
	if err != nil {
		return nil, err
	}
	return indexer.ParseKeys(text)
}
