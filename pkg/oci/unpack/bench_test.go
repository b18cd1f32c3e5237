package unpack

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

// BenchmarkUnpack compares the time for an image of many files with tar, which unpacks
// without checks.
func BenchmarkUnpack(b *testing.B) {
	files := make([]image.File, 4000)
	for i := range files {
		files[i] = image.File{Path: fmt.Sprintf("usr/lib/%d/%d/file-%d", i%20, i%7, i), Data: ocitest.Noise(8 << 10)}
	}
	files = append(files, image.File{Path: "bin/program", Data: ocitest.Noise(64 << 20)})
	desc, data := ocitest.GzipLayer(b, files...)

	b.Run("floor", func(b *testing.B) {
		for b.Loop() {
			cmd := exec.Command("tar", "-xz", "-C", b.TempDir())
			cmd.Stdin = bytes.NewReader(data)
			if err := cmd.Run(); err != nil {
				b.Fatal(err)
			}
		}
		b.SetBytes(int64(len(data)))
	})
	b.Run("unpack", func(b *testing.B) {
		store, err := store.Open(filepath.Join(b.TempDir(), "store"), store.Options{})
		if err != nil {
			b.Fatal(err)
		}
		defer store.Close()
		if _, err := store.PutBytes(context.Background(), data); err != nil {
			b.Fatal(err)
		}
		image := RuntimeImage{Layers: []oci.Descriptor{desc}}
		for b.Loop() {
			dir := b.TempDir()
			if _, err := RootFS(context.Background(), store, image, dir, Limits{}); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			_ = os.RemoveAll(dir)
			b.StartTimer()
		}
		b.SetBytes(int64(len(data)))
	})
}
