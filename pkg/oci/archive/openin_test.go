//go:build unix

package archive

import (
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest/storetest"
)

// writeXpkg writes an archive and returns its bytes.
func writeXpkg(t *testing.T, dir, name string, a oci.Artifact) []byte {
	t.Helper()
	var file bytes.Buffer
	ocitest.Must(t, Write(t.Context(), &file, a, WriteOptions{}, oci.Limits{}))
	ocitest.Must(t, os.WriteFile(filepath.Join(dir, name), file.Bytes(), 0o600))
	return file.Bytes()
}

func gzipped(t *testing.T, data []byte) []byte {
	t.Helper()
	var packed bytes.Buffer
	zw := gzip.NewWriter(&packed)
	_, err := zw.Write(data)
	ocitest.Must(t, err)
	ocitest.Must(t, zw.Close())
	return packed.Bytes()
}

func openRoot(t *testing.T, dir string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(dir)
	ocitest.Must(t, err)
	t.Cleanup(func() { _ = root.Close() })
	return root
}

func TestAddPackageFromFiles(t *testing.T) {
	img := ocitest.Hello(t)
	dir := t.TempDir()
	file := writeXpkg(t, dir, "a.xpkg", img)
	ocitest.Must(t, os.WriteFile(filepath.Join(dir, "a.xpkg.gz"), gzipped(t, file), 0o600))
	_, err := oci.Copy(t.Context(), ToLayout(filepath.Join(dir, "layout"), "", oci.Limits{}), img)
	ocitest.Must(t, err)
	ocitest.Must(t, os.Symlink("a.xpkg", filepath.Join(dir, "link")))
	root := openRoot(t, dir)
	for _, name := range []string{"a.xpkg", "a.xpkg.gz", "layout", "link"} {
		t.Run(name, func(t *testing.T) {
			s := storetest.New(t)
			a, err := OpenInWithScratch(t.Context(), root, name, s.Scratch, oci.Limits{})
			ocitest.Must(t, err)
			m, parts, err := s.AddPackage(t.Context(), a, oci.Limits{})
			ocitest.Must(t, err)
			ocitest.Must(t, a.Close())
			if m.Digest != img.Digest() || !slices.Equal(parts, []oci.Digest{img.Digest(), ocitest.Layers(t, img)[0].Digest}) {
				t.Errorf("%s of %s, not of %s", parts, m.Digest, img.Digest())
			}
			// The examples and the configuration are not needed to read a package.
			if len(ocitest.FilesUnder(t, s.Dir(), "blobs")) != 2 || len(ocitest.FilesUnder(t, s.Dir(), "tmp")) != 0 {
				t.Errorf("the store has %v", ocitest.FilesUnder(t, s.Dir(), "blobs"))
			}
			kept, err := s.Artifact(t.Context(), img.Digest(), oci.Limits{})
			ocitest.Must(t, err)
			m, err = oci.FindManifest(t.Context(), kept, oci.Platform{}, oci.Limits{})
			ocitest.Must(t, err)
			if stream, err := s.PackageYAML(t.Context(), m, oci.Limits{}); err != nil || string(stream) != ocitest.HelloYAML {
				t.Errorf("%q %v", stream, err)
			}
		})
	}
}

func TestOpenForeignArchive(t *testing.T) {
	outside := t.TempDir()
	writeXpkg(t, outside, "secret.xpkg", ocitest.Hello(t))
	dir := t.TempDir()
	ocitest.Must(t, os.Symlink(filepath.Join(outside, "secret.xpkg"), filepath.Join(dir, "link.xpkg")))
	ocitest.Must(t, os.Symlink(outside, filepath.Join(dir, "folder")))
	ocitest.Must(t, os.Mkdir(filepath.Join(dir, "pipes"), 0o700))
	for _, name := range []string{"pipe.xpkg", "pipes/index.json"} {
		ocitest.Must(t, syscall.Mkfifo(filepath.Join(dir, name), 0o600))
	}
	ocitest.Must(t, os.WriteFile(filepath.Join(dir, "bad.gz"), gzipped(t, []byte("text"))[:20], 0o600))
	ocitest.Must(t, os.WriteFile(filepath.Join(dir, "text.gz"), gzipped(t, []byte("text")), 0o600))
	ocitest.Must(t, os.WriteFile(filepath.Join(dir, "empty.xpkg"), nil, 0o600))
	root, s := openRoot(t, dir), storetest.New(t)
	for name, code := range map[string]errcode.Code{
		"link.xpkg": ErrArchiveNotFound, "folder": ErrArchiveNotFound, "missing": ErrArchiveNotFound,
		"../x":      ErrArchiveNotFound,
		"pipe.xpkg": ErrNotAnArchive, "pipes": ErrNotAnArchive, "bad.gz": ErrNotAnArchive, "text.gz": ErrNotAnArchive,
		"empty.xpkg": ErrNotAnArchive,
	} {
		if _, err := OpenInWithScratch(t.Context(), root, name, s.Scratch, oci.Limits{}); !errors.Is(err, code) {
			t.Errorf("%s: got %v, want %v", name, err, code)
		}
	}
	if files := ocitest.FilesUnder(t, s.Dir(), "tmp"); len(files) != 0 {
		t.Errorf("left behind: %v", files)
	}
}

func TestOpenFolderOfSkopeo(t *testing.T) {
	dir := t.TempDir()
	ocitest.Must(t, os.WriteFile(filepath.Join(dir, "version"), []byte("Directory Transport Version: 1.1\n"), 0o600))
	ocitest.Must(t, os.WriteFile(filepath.Join(dir, "manifest.json"), ocitest.Hello(t).RawManifest(), 0o600))
	_, err := Open(t.Context(), dir, oci.Limits{})
	ocitest.WantCode(t, err, ErrNotAnArchive)
	if text := err.Error(); strings.Contains(text, "json") || !strings.Contains(text, "skopeo") {
		t.Errorf("the message is %q", text)
	}
}
