package archive

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

	"github.com/xpkg-dev/xpkg/internal/testing/malformed"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest/clienttest"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest/storetest"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

const malformedTable = "../../../testdata/malformed/image/cases.yaml"

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
	a, err := Open(ctx, path, oci.Limits{})
	if err != nil {
		return nil, err
	}
	defer a.Close()
	m, err := oci.FindManifest(ctx, a, oci.Platform{}, oci.Limits{})
	if err != nil {
		return nil, err
	}
	return oci.PackageYAML(ctx, a, m, oci.Limits{})
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
	if code := errcode.From(err).Code.Name; code != c.Expect {
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
			f := ocitest.NewRegistry(t)
			ref := serveArchive(t, f, c)
			store := storetest.New(t)
			m, err := clienttest.New(t, nil).Fetch(t.Context(), ref, store, remote.FetchOptions{})
			var got []byte
			if err == nil {
				got, err = store.PackageYAML(t.Context(), m, oci.Limits{})
			}
			if c.Expect == "BlobNotFound" {
				// Missing content in a registry has its own code.
				c.Expect = "BlobMissing"
			}
			wantOutcome(t, c, got, err)
			for _, file := range ocitest.FilesUnder(t, store.Dir(), "blobs") {
				data, err := os.ReadFile(file)
				if err != nil || oci.DigestOf(data).Hex() != filepath.Base(file) {
					t.Errorf("the store keeps %s: %v", file, err)
				}
			}
		})
	}
}

// serveArchive serves the files of a layout as they are, right or wrong.
func serveArchive(t *testing.T, f *ocitest.Registry, c malformed.Case) oci.Reference {
	t.Helper()
	var file bytes.Buffer
	ocitest.Must(t, c.Write(&file))
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
		ocitest.Must(t, err)
		data, err := io.ReadAll(tr)
		ocitest.Must(t, err)
		if h.Name == indexFile {
			ocitest.Must(t, json.Unmarshal(data, &index))
		}
		if hex, ok := strings.CutPrefix(h.Name, blobsFolder+"/"); ok {
			blobs["sha256:"+hex] = data
		}
	}
	for name, data := range blobs {
		f.Blobs[oci.MustParseDigest(name)] = data
		var own struct{ MediaType oci.MediaType }
		if json.Unmarshal(data, &own) == nil && own.MediaType != "" {
			f.ServeManifest(name, own.MediaType, data)
		}
	}
	root := index.Manifests[0]
	f.ServeManifest(root.Digest, oci.MediaType(root.MediaType), blobs[root.Digest])
	return f.Ref("v1").WithDigest(oci.MustParseDigest(root.Digest))
}
