package oci

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/failure"
	"github.com/xpkg-dev/xpkg/internal/oci/malformed"
)

const malformedTable = "../../testdata/malformed/image/cases.yaml"

func malformedCases(t testing.TB) []malformed.Case {
	t.Helper()
	cases, err := malformed.Load(malformedTable)
	if err != nil {
		t.Fatal(err)
	}
	return cases
}

// The published corpus, read from archives.
func TestMalformedArchives(t *testing.T) {
	for _, c := range malformedCases(t) {
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), c.ID+".tar")
			f, err := os.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Write(f); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			got, err := readArchive(t.Context(), path)
			wantOutcome(t, c, got, err)
		})
	}
}

// readArchive reads the package in an archive.
func readArchive(ctx context.Context, path string) ([]byte, error) {
	a, err := OpenArchive(ctx, path, Limits{})
	if err != nil {
		return nil, err
	}
	defer a.Close() //nolint:errcheck // It was only read.
	m, err := FindManifest(ctx, a, Platform{}, Limits{})
	if err != nil {
		return nil, err
	}
	return ReadPackageYAML(ctx, a, m, Limits{})
}

func wantOutcome(t *testing.T, c malformed.Case, got []byte, err error) {
	t.Helper()
	if c.Expect == "ok" {
		want := c.Content
		if want == "" {
			want = malformed.Default
		}
		if err != nil || string(got) != want {
			t.Errorf("%s: %q %v", c.What, got, err)
		}
		return
	}
	if err == nil {
		t.Fatalf("%s: no error, want %s", c.What, c.Expect)
	}
	if code := failure.From(err).Code.Name; code != c.Expect {
		t.Errorf("%s: got %s (%v), want %s", c.What, code, err, c.Expect)
	}
}

// The published corpus, served by a registry. Cases that are about the archive
// itself are left out.
func TestMalformedImagesInRegistry(t *testing.T) {
	for _, c := range malformedCases(t) {
		if c.Image == nil && c.Index == nil || len(c.Files) > 0 || len(c.Omit) > 0 {
			continue
		}
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			f := newFakeRegistry(t)
			ref := f.serveArchive(t, c)
			store := newStore(t)
			m, err := testRemote(t, nil).Fetch(t.Context(), ref, store, FetchOptions{})
			var got []byte
			if err == nil {
				got, err = PackageYAML(t.Context(), store, m, Limits{})
			}
			if c.Expect == "BlobNotFound" {
				// A registry that lacks a part of what it offers has a name of its own.
				c.Expect = "BlobMissing"
			}
			wantOutcome(t, c, got, err)
			for _, file := range filesUnder(t, store, blobsDir) {
				data, err := os.ReadFile(file)
				if err != nil || DigestOf(data).Hex() != filepath.Base(file) {
					t.Errorf("the store keeps %s: %v", file, err)
				}
			}
		})
	}
}

// serveArchive serves the files of a layout as they are, right or wrong.
func (f *fakeRegistry) serveArchive(t *testing.T, c malformed.Case) Reference {
	t.Helper()
	var file bytes.Buffer
	must(t, c.Write(&file))
	var index struct {
		Manifests []struct{ MediaType, Digest string }
	}
	blobs := map[string][]byte{}
	tr := tar.NewReader(&file)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		must(t, err)
		data, err := io.ReadAll(tr)
		must(t, err)
		if h.Name == indexFile {
			must(t, json.Unmarshal(data, &index))
		}
		if hex, ok := strings.CutPrefix(h.Name, blobsFolder+"/"); ok {
			blobs[digestPrefix+hex] = data
		}
	}
	for name, data := range blobs {
		f.blobs[MustParseDigest(name)] = data
		var own struct{ MediaType MediaType }
		if json.Unmarshal(data, &own) == nil && own.MediaType != "" {
			f.serveManifest(name, own.MediaType, data)
		}
	}
	root := index.Manifests[0]
	f.serveManifest(root.Digest, MediaType(root.MediaType), blobs[root.Digest])
	return f.ref("v1").WithDigest(MustParseDigest(root.Digest))
}
