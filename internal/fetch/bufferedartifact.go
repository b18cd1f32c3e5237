package fetch

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

// bufferedArtifact is an artifact that keeps all read content in memory. Use it for small
// content. It is not safe for concurrent use.
type bufferedArtifact struct {
	oci.Artifact
	bytes map[oci.Digest][]byte
}

// Open implements [oci.Artifact]. Readers verify the content.
func (h *bufferedArtifact) Open(ctx context.Context, d oci.Descriptor) (_ io.ReadCloser, err error) {
	if data, ok := h.bytes[d.Digest]; ok {
		return io.NopCloser(bytes.NewReader(data)), nil
	}
	r, err := h.Artifact.Open(ctx, d)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	data, err := io.ReadAll(io.LimitReader(r, d.Size+1))
	if err != nil {
		return nil, err
	}
	h.bytes[d.Digest] = data
	return io.NopCloser(bytes.NewReader(data)), nil
}

// keep writes the buffered content to a store.
func (h *bufferedArtifact) keep(ctx context.Context, store *store.Store) error {
	for _, data := range h.bytes {
		if _, err := store.PutBytes(ctx, data); err != nil {
			return err
		}
	}
	return nil
}
