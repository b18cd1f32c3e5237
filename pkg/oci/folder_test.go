package oci_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest"
)

// layerOf returns a layer of entries: "NAME" for a file, "NAME/" for a directory, and "NAME -> TARGET" or "NAME =>
// TARGET" for a symbolic or a hard link. The content of a file is the number of its layer.
func layerOf(t testing.TB, number string, entries ...string) (oci.Descriptor, []byte) {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range entries {
		h := &tar.Header{Name: e, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(number))}
		if name, target, ok := strings.Cut(e, " -> "); ok {
			h = &tar.Header{Name: name, Linkname: target, Typeflag: tar.TypeSymlink}
		} else if name, target, ok := strings.Cut(e, " => "); ok {
			h = &tar.Header{Name: name, Linkname: target, Typeflag: tar.TypeLink}
		} else if strings.HasSuffix(e, "/") {
			h = &tar.Header{Name: e, Typeflag: tar.TypeDir, Mode: 0o755}
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := w.Write([]byte(number)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return oci.Descriptor{MediaType: oci.MediaTypeOCILayer, Digest: oci.DigestOf(out.Bytes()), Size: int64(out.Len())},
		out.Bytes()
}

// imageOf returns an image of layers, the lowest first.
func imageOf(t testing.TB, layers ...[]string) (oci.Artifact, oci.Manifest) {
	t.Helper()
	var descriptors []oci.Descriptor
	var blobs [][]byte
	for i, entries := range layers {
		d, data := layerOf(t, string(rune('1'+i)), entries...)
		descriptors, blobs = append(descriptors, d), append(blobs, data)
	}
	a := ocitest.Assemble(t, []byte("{}"), descriptors, blobs...)
	m, err := oci.FindManifest(t.Context(), a, oci.Platform{}, oci.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return a, m
}

func everything(string) bool { return true }

// hardening: M2
func TestRegistryFolderIsReadAsAContainerEngineDoes(t *testing.T) {
	for name, c := range map[string]struct {
		layers [][]string
		// want has the layer of each file, in order.
		want string
	}{
		"one layer": {
			[][]string{{".registry/", ".registry/app.yaml", ".registry/resources/a.crd.yaml", "bin/manager"}},
			"app.yaml=1 resources/a.crd.yaml=1",
		},
		"dotted and rooted names": {[][]string{{"./.registry/app.yaml", "/.registry/b.yaml"}}, "app.yaml=1 b.yaml=1"},
		"higher layer replaces": {
			[][]string{{".registry/app.yaml", ".registry/b.yaml"}, {".registry/app.yaml"}}, "app.yaml=2 b.yaml=1",
		},
		"layers are merged": {
			[][]string{{".registry/app.yaml"}, {"etc/x"}, {".registry/resources/a.crd.yaml"}},
			"app.yaml=1 resources/a.crd.yaml=3",
		},
		"whiteout": {
			[][]string{{".registry/app.yaml", ".registry/b.yaml"}, {".registry/.wh.b.yaml"}}, "app.yaml=1",
		},
		"whiteout of a directory": {[][]string{
			{".registry/app.yaml", ".registry/resources/a.yaml"}, {".registry/.wh.resources"}, {".registry/resources/b.yaml"},
		}, "app.yaml=1 resources/b.yaml=3"},
		"whiteout of the folder": {[][]string{{".registry/app.yaml"}, {".wh..registry"}, {".registry/b.yaml"}}, "b.yaml=3"},
		"opaque directory": {[][]string{{".registry/app.yaml", ".registry/resources/a.yaml"}, {
			".registry/resources/.wh..wh..opq", ".registry/resources/b.yaml",
		}}, "app.yaml=1 resources/b.yaml=2"},
		"opaque root":           {[][]string{{".registry/app.yaml"}, {".wh..wh..opq", ".registry/b.yaml"}}, "b.yaml=2"},
		"whiteout in its layer": {[][]string{{".registry/.wh.app.yaml", ".registry/app.yaml"}}, "app.yaml=1"},
		"file over a directory": {
			[][]string{{".registry/app.yaml", ".registry/resources/a.yaml"}, {".registry/resources"}}, "app.yaml=1 resources=2",
		},
		"removed link": {
			[][]string{{".registry/app.yaml", ".registry/b.yaml -> /etc/passwd"}, {".registry/b.yaml"}}, "app.yaml=1 b.yaml=2",
		},
		"metadata of whiteouts": {[][]string{{".registry/app.yaml"}, {".wh..wh.plnk/1"}}, "app.yaml=1"},
		"outside":               {[][]string{{"a/.registry/app.yaml", ".registryx/app.yaml", "app.yaml"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a, m := imageOf(t, c.layers...)
			files, err := oci.ReadRegistryFolder(t.Context(), a, m, oci.Limits{}, everything, nil)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range slices.Sorted(maps.Keys(files)) {
				got = append(got, p+"="+string(files[p]))
			}
			if s := strings.Join(got, " "); s != c.want {
				t.Errorf("got %s, want %s", s, c.want)
			}
		})
	}
}

// hardening: M1, M3
func TestRegistryFolderIsNeverReadPartially(t *testing.T) {
	for name, c := range map[string]struct {
		entries []string
		limits  oci.Limits
		code    errcode.Code
	}{
		"symbolic link": {entries: []string{
			".registry/app.yaml", ".registry/resources/a.crd.yaml -> /etc/passwd",
		}, code: oci.ErrNotRegularFile},
		"link to a directory": {
			entries: []string{".registry/app.yaml", ".registry/resources -> ../secrets"}, code: oci.ErrNotRegularFile,
		},
		"folder is a link": {entries: []string{".registry -> /proc"}, code: oci.ErrNotRegularFile},
		"folder is a file": {entries: []string{".registry"}, code: oci.ErrNotRegularFile},
		"hard link":        {entries: []string{"x", ".registry/app.yaml => x"}, code: oci.ErrNotRegularFile},
		"duplicate": {
			entries: []string{".registry/app.yaml", "./.registry/app.yaml"}, code: oci.ErrDuplicateEntry,
		},
		"traversal duplicates": {
			entries: []string{".registry/app.yaml", "../x/../.registry/app.yaml"}, code: oci.ErrDuplicateEntry,
		},
		"too many entries": {
			entries: []string{".registry/a.yaml", ".registry/b.yaml", ".registry/c.yaml"}, limits: oci.Limits{Entries: 2},
			code: oci.ErrArchiveLimit,
		},
		"too many bytes": {
			entries: []string{".registry/a.yaml", ".registry/b.yaml"}, limits: oci.Limits{Package: 1},
			code: oci.ErrPackageTooLarge,
		},
		"long names": {
			entries: []string{".registry/" + strings.Repeat("a", 90) + ".yaml"}, limits: oci.Limits{Headers: 50},
			code: oci.ErrArchiveLimit,
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, m := imageOf(t, c.entries)
			files, err := oci.ReadRegistryFolder(t.Context(), a, m, c.limits, everything, nil)
			ocitest.WantCode(t, err, c.code)
			if files != nil {
				t.Errorf("files %v", files)
			}
		})
	}
}

// hardening: M4
func TestRegistryFolderIsVerifiedBeforeItIsParsed(t *testing.T) {
	d, data := layerOf(t, "1", ".registry/app.yaml")
	other := bytes.ReplaceAll(data, []byte("app"), []byte("bpp"))
	damaged := &swapped{
		Artifact: ocitest.Assemble(t, []byte("{}"), []oci.Descriptor{d}, data), digest: d.Digest, data: other,
	}
	m, err := oci.FindManifest(t.Context(), damaged, oci.Platform{}, oci.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := oci.ReadRegistryFolder(
		t.Context(), damaged, m, oci.Limits{}, everything, nil,
	); !errors.Is(err, oci.ErrDigestMismatch) {
		t.Errorf("got %v", err)
	}
}

func TestUnusedFilesOfTheRegistryFolderAreNotRead(t *testing.T) {
	a, m := imageOf(t, []string{".registry/app.yaml", ".registry/big.bin"})
	files, err := oci.ReadRegistryFolder(
		t.Context(), a, m, oci.Limits{Package: 1}, func(p string) bool { return p == "app.yaml" }, nil,
	)
	if err != nil || len(files) != 1 {
		t.Errorf("files %v, error %v", files, err)
	}
}

func TestAnnotatedLayerExcludesTheRegistryFolder(t *testing.T) {
	d, data := layerOf(t, "1", ".registry/app.yaml")
	d.Annotations = map[string]string{oci.AnnotationKey: oci.AnnotationBase}
	a := ocitest.Assemble(t, []byte("{}"), []oci.Descriptor{d}, data)
	m, err := oci.FindManifest(t.Context(), a, oci.Platform{}, oci.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	files, err := oci.ReadRegistryFolder(t.Context(), a, m, oci.Limits{}, everything, nil)
	if err != nil || len(files) != 0 {
		t.Errorf("files %v, error %v", files, err)
	}
}

// FuzzRegistryFolder checks that a layer with any content is read or refused, and that no path leaves the folder.
func FuzzRegistryFolder(f *testing.F) {
	_, data := layerOf(f, "1", ".registry/app.yaml", ".registry/resources/a.crd.yaml", ".registry/.wh.x", "a -> b")
	f.Add(data)
	f.Fuzz(func(t *testing.T, layer []byte) {
		d := oci.Descriptor{MediaType: oci.MediaTypeOCILayer, Digest: oci.DigestOf(layer), Size: int64(len(layer))}
		a := ocitest.Assemble(t, []byte("{}"), []oci.Descriptor{d}, layer)
		m, err := oci.FindManifest(context.Background(), a, oci.Platform{}, oci.Limits{})
		if err != nil {
			return
		}
		files, err := oci.ReadRegistryFolder(context.Background(), a, m, oci.Limits{}, everything, nil)
		if err != nil && files != nil {
			t.Fatalf("files with error %v", err)
		}
		for p := range files {
			if strings.HasPrefix(p, "/") || strings.Contains("/"+p+"/", "/../") || p == "" {
				t.Fatalf("path %q", p)
			}
		}
	})
}

// swapped is an artifact with other bytes for one digest.
type swapped struct {
	oci.Artifact
	digest oci.Digest
	data   []byte
}

func (s *swapped) Open(ctx context.Context, d oci.Descriptor) (io.ReadCloser, error) {
	if d.Digest == s.digest {
		return io.NopCloser(bytes.NewReader(s.data)), nil
	}
	return s.Artifact.Open(ctx, d)
}
