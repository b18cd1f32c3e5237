package bundle

import (
	"archive/tar"
	"bytes"
	"testing"
)

// The header of a file of any size is one block, which other programs read.
func TestHeadersOfLargeFiles(t *testing.T) {
	for _, size := range []int64{1, 1<<33 - 1, 1 << 33, 1 << 40} {
		h, err := header("blobs/sha256/x", size)
		if err != nil || len(h) != blockSize {
			t.Fatalf("%d: %d bytes, %v", size, len(h), err)
		}
		got, err := tar.NewReader(bytes.NewReader(h)).Next()
		if err != nil || got.Size != size || got.Name != "blobs/sha256/x" {
			t.Errorf("%d: %+v, %v", size, got, err)
		}
	}
}
