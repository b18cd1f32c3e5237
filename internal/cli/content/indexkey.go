package content

import (
	"context"

	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/indexer"
)

// IndexKeyFlag selects the keys that must have signed indexes.
type IndexKeyFlag struct {
	IndexKey string `placeholder:"FILE" env:"XPKG_INDEX_KEY" config:"" help:"File with public keys (PEM), of which one must have signed each index. Without it, signatures of indexes are not verified."`
}

// Keys returns the keys; none without the flag.
func (f IndexKeyFlag) Keys(ctx context.Context) (indexer.Keys, error) {
	if f.IndexKey == "" {
		return nil, nil
	}
	_, keys, err := ReadIndexKeys(ctx, f.IndexKey)
	return keys, err
}

// ReadIndexKeys returns the content of a file with keys, and the keys.
func ReadIndexKeys(ctx context.Context, file string) (text []byte, keys indexer.Keys, err error) {
	if text, err = flags.ReadFile(ctx, "the keys of indexes", file); err != nil {
		return nil, nil, err
	}
	keys, err = indexer.ParseKeys(text)
	return text, keys, err
}
