package oci

import (
	"context"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// maxNestedIndexes is the maximum number of indexes that Contains reads.
const maxNestedIndexes = 100

// Contains reports whether an artifact is, or is an index that lists, a manifest or index
// with a digest, directly or in nested indexes. It reads no content but indexes, and omits
// those that do not exist. It fails with ErrIndexTooDeep if there are more than 100 of
// them.
func Contains(ctx context.Context, a Artifact, d Digest, limits Limits) (bool, error) {
	if a.Root().Digest == d {
		return true, nil
	}
	indexes, seen := []Descriptor{a.Root()}, map[Digest]bool{a.Root().Digest: true}
	for i := 0; i < len(indexes); i++ {
		if i == maxNestedIndexes {
			return false, ErrIndexTooDeep.New(nil, "%s has more than %d indexes", a.Root().Digest.Short(), maxNestedIndexes)
		}
		_, doc, err := ReadDocument(ctx, a, indexes[i], limits)
		if err != nil && i > 0 && errcode.From(err).Code.Class == errcode.NotFound {
			continue
		}
		if err != nil {
			return false, err
		}
		for _, m := range doc.Manifests {
			if m.Digest == d {
				return true, nil
			}
			if !seen[m.Digest] && (m.MediaType == MediaTypeOCIIndex || m.MediaType == MediaTypeDockerList) {
				seen[m.Digest] = true
				indexes = append(indexes, m)
			}
		}
	}
	return false, nil
}
