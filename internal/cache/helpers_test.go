package cache

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	ociarchive "github.com/xpkg-dev/xpkg/pkg/oci/archive"
	ociimage "github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

// fataler is a test, or one run of a property.
type fataler interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func must(t fataler, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantCode(t fataler, err error, code errcode.Code) {
	t.Helper()
	if !errors.Is(err, code) {
		t.Fatalf("got %v, want %+v", err, code)
	}
}

// clock stands still until it is moved.
type clock struct{ now time.Time }

func newClock() *clock { return &clock{time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} }

func (c *clock) Now() time.Time           { return c.now }
func (c *clock) advance(by time.Duration) { c.now = c.now.Add(by) }

func open(t testing.TB, dir string, o Options) *Cache {
	t.Helper()
	c, err := Open(dir, o)
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// image returns a Configuration with some bytes that do not compress.
func image(t testing.TB, name string, size int) *ociimage.Image {
	t.Helper()
	image, err := buildImage(context.Background(), name, size)
	must(t, err)
	return image
}

func buildImage(ctx context.Context, name string, size int) (*ociimage.Image, error) {
	seed := [32]byte{}
	copy(seed[:], name)
	noise := make([]byte, size/2)
	_, _ = rand.NewChaCha8(seed).Read(noise)
	stream := fmt.Sprintf(
		"apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata:\n  name: %s\n  annotations:\n    noise: %x\n",
		name, noise,
	)
	return ociimage.Build(ctx, ociimage.Input{PackageYAML: []byte(stream)})
}

// writePackage writes a package file and returns its digest.
func writePackage(t testing.TB, path, name string, size int) oci.Digest {
	t.Helper()
	img := image(t, name, size)
	must(t, os.WriteFile(path, archive(t, img), 0o600))
	return img.Digest()
}

func archive(t testing.TB, img *ociimage.Image) []byte {
	t.Helper()
	var file bytes.Buffer
	must(t, ociarchive.Write(context.Background(), &file, img, ociarchive.WriteOptions{}, oci.Limits{}))
	return file.Bytes()
}

func gzipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var packed bytes.Buffer
	zw := gzip.NewWriter(&packed)
	_, err := zw.Write(data)
	must(t, errors.Join(err, zw.Close()))
	return packed.Bytes()
}

// put adds a package to the store as a fetch does.
func put(ctx context.Context, c *Cache, img *ociimage.Image) error {
	_, _, err := c.store.AddPackage(ctx, img, oci.Limits{})
	return err
}

// stream reads a package as an install does.
func stream(ctx context.Context, s *store.Store, d oci.Digest) error {
	a, err := s.Artifact(ctx, d, oci.Limits{})
	if err != nil {
		return err
	}
	m, err := oci.FindManifest(ctx, a, oci.Platform{}, oci.Limits{})
	if err != nil {
		return err
	}
	_, err = s.PackageYAML(ctx, m, oci.Limits{})
	return err
}

// size is the bytes of all files below the store but its records.
func diskSize(t fataler, c *Cache) int64 {
	t.Helper()
	var total int64
	for _, folder := range []string{"blobs", "derived", "tmp", "quarantine"} {
		err := filepath.WalkDir(filepath.Join(c.store.Dir(), folder), func(_ string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil || d.IsDir() {
				return err
			}
			info, err := d.Info()
			if err == nil {
				total += info.Size()
			}
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		})
		must(t, err)
	}
	return total
}
