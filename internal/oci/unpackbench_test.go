package oci

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Unpacking an image of many files against the floor: tar doing the same without
// looking at what it unpacks.
func BenchmarkUnpack(b *testing.B) {
	files := make([]LayerFile, 4000)
	for i := range files {
		files[i] = LayerFile{Path: fmt.Sprintf("usr/lib/%d/%d/file-%d", i%20, i%7, i), Data: noise(8 << 10)}
	}
	files = append(files, LayerFile{Path: "bin/program", Data: noise(64 << 20)})
	layer, err := buildLayer(files, MediaTypeOCILayerGzip, "")
	if err != nil {
		b.Fatal(err)
	}
	b.Run("floor", func(b *testing.B) {
		for b.Loop() {
			cmd := exec.Command("tar", "-xz", "-C", b.TempDir())
			cmd.Stdin = bytes.NewReader(layer.data)
			if err := cmd.Run(); err != nil {
				b.Fatal(err)
			}
		}
		b.SetBytes(int64(len(layer.data)))
	})
	b.Run("unpack", func(b *testing.B) {
		store, err := OpenStore(filepath.Join(b.TempDir(), "store"), StoreOptions{})
		if err != nil {
			b.Fatal(err)
		}
		defer store.Close()
		if _, err := store.PutBytes(context.Background(), layer.data); err != nil {
			b.Fatal(err)
		}
		image := ProgramImage{Layers: []Descriptor{layer.desc}}
		for b.Loop() {
			dir := b.TempDir()
			if _, err := Unpack(context.Background(), store, image, dir, UnpackLimits{}); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			_ = os.RemoveAll(dir)
			b.StartTimer()
		}
		b.SetBytes(int64(len(layer.data)))
	})
}
