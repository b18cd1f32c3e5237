//go:build unix

package oci

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

// writeXpkg writes an archive and gives its bytes.
func writeXpkg(t *testing.T, dir, name string, a Artifact) []byte {
	t.Helper()
	var file bytes.Buffer
	must(t, WriteArchive(t.Context(), &file, a, ArchiveOptions{}, Limits{}))
	must(t, os.WriteFile(filepath.Join(dir, name), file.Bytes(), 0o600))
	return file.Bytes()
}

func gzipped(t *testing.T, data []byte) []byte {
	t.Helper()
	var packed bytes.Buffer
	zw := gzip.NewWriter(&packed)
	_, err := zw.Write(data)
	must(t, err)
	must(t, zw.Close())
	return packed.Bytes()
}

func openRoot(t *testing.T, dir string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(dir)
	must(t, err)
	t.Cleanup(func() { _ = root.Close() })
	return root
}

func TestAddPackageFromFiles(t *testing.T) {
	img := buildHello(t)
	dir := t.TempDir()
	file := writeXpkg(t, dir, "a.xpkg", img)
	must(t, os.WriteFile(filepath.Join(dir, "a.xpkg.gz"), gzipped(t, file), 0o600))
	_, err := Copy(t.Context(), ToLayout(filepath.Join(dir, "layout"), "", Limits{}), img)
	must(t, err)
	must(t, os.Symlink("a.xpkg", filepath.Join(dir, "link")))
	root := openRoot(t, dir)
	for _, name := range []string{"a.xpkg", "a.xpkg.gz", "layout", "link"} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			a, err := s.OpenArchive(t.Context(), root, name, Limits{})
			must(t, err)
			m, parts, err := s.AddPackage(t.Context(), a, Limits{})
			must(t, err)
			must(t, a.Close())
			if m.Digest != img.Digest() || !slices.Equal(parts, []Digest{img.Digest(), img.manifest.Layers[0].Digest}) {
				t.Errorf("%s of %s, not of %s", parts, m.Digest, img.Digest())
			}
			// The examples and the configuration are not needed to read a package.
			if len(entries(t, s)) != 2 || len(filesUnder(t, s, tempDir)) != 0 {
				t.Errorf("the store has %v", names(entries(t, s)))
			}
			kept, err := s.Artifact(t.Context(), img.Digest(), Limits{})
			must(t, err)
			m, err = FindManifest(t.Context(), kept, Platform{}, Limits{})
			must(t, err)
			if stream, err := PackageYAML(t.Context(), s, m, Limits{}); err != nil || string(stream) != helloYAML {
				t.Errorf("%q %v", stream, err)
			}
		})
	}
}

func TestOpenArchiveOfStrangers(t *testing.T) {
	outside := t.TempDir()
	writeXpkg(t, outside, "secret.xpkg", buildHello(t))
	dir := t.TempDir()
	must(t, os.Symlink(filepath.Join(outside, "secret.xpkg"), filepath.Join(dir, "link.xpkg")))
	must(t, os.Symlink(outside, filepath.Join(dir, "folder")))
	must(t, os.Mkdir(filepath.Join(dir, "pipes"), 0o700))
	for _, name := range []string{"pipe.xpkg", "pipes/index.json"} {
		must(t, syscall.Mkfifo(filepath.Join(dir, name), 0o600))
	}
	must(t, os.WriteFile(filepath.Join(dir, "bad.gz"), gzipped(t, []byte("text"))[:20], 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "text.gz"), gzipped(t, []byte("text")), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "empty.xpkg"), nil, 0o600))
	root, s := openRoot(t, dir), newStore(t)
	for name, code := range map[string]interface{ Is(error) bool }{
		"link.xpkg": ErrArchiveNotFound, "folder": ErrArchiveNotFound, "missing": ErrArchiveNotFound, "../x": ErrArchiveNotFound,
		"pipe.xpkg": ErrNotAnArchive, "pipes": ErrNotAnArchive, "bad.gz": ErrNotAnArchive, "text.gz": ErrNotAnArchive, "empty.xpkg": ErrNotAnArchive,
	} {
		if _, err := s.OpenArchive(t.Context(), root, name, Limits{}); !code.Is(err) {
			t.Errorf("%s: got %v, want %v", name, err, code)
		}
	}
	if files := filesUnder(t, s, tempDir); len(files) != 0 {
		t.Errorf("left behind: %v", files)
	}
}
