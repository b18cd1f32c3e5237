package image_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest"
)

// The digest of this image must stay the same on every machine and with every compiler
// and processor. A change of it changes the digest of every new package. See gzipLevel.
func TestBuildImageGolden(t *testing.T) {
	const want = "sha256:5604e0c5443b9c20f9fe4b5054722987e1daab4f43aa4773ce7f02c9b2df4bff"
	img, err := image.Build(t.Context(), image.Input{
		PackageYAML: []byte(strings.Repeat(ocitest.HelloYAML+"---\n", 1000)),
		Examples:    []byte("kind: Example\n"),
		Extra: []image.ExtraLayer{{Annotation: "noise", Files: []image.File{
			{Path: "b/noise", Data: ocitest.Noise(100_000)}, {Path: "a", Data: []byte("a")},
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := img.Digest().String(); got != want {
		t.Errorf("the image has digest %s, and had %s before", got, want)
	}
}

// hardening: C10
func TestImageIsIndependentOfMachine(t *testing.T) {
	layer, err := image.BuildLayer(
		[]image.File{{Path: "b", Data: []byte("b")}, {Path: "a", Data: []byte("a")}}, oci.MediaTypeOCILayerGzip, "x",
	)
	ocitest.Must(t, err)
	zr, err := gzip.NewReader(bytes.NewReader(layer))
	ocitest.Must(t, err)
	if !zr.ModTime.IsZero() || zr.Name != "" || zr.OS != 255 || zr.Extra != nil {
		t.Errorf("gzip header %+v", zr.Header)
	}
	var names []string
	tr := tar.NewReader(zr)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		ocitest.Must(t, err)
		names = append(names, h.Name)
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Gname != "" || h.Mode != 0o644 ||
			!h.ModTime.Equal(time.Unix(0, 0)) || len(h.PAXRecords) != 0 {
			t.Errorf("header %+v", h)
		}
	}
	if !slices.Equal(names, []string{"a", "b"}) {
		t.Errorf("the files are %v", names)
	}
}

// Any bytes in the stream survive a build.
func TestBuiltStreamComesBack(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		want := rapid.SliceOf(rapid.Byte()).Draw(r, "stream")
		img, err := image.Build(t.Context(), image.Input{PackageYAML: want})
		if err != nil {
			r.Fatal(err)
		}
		m, err := img.Manifest()
		if err != nil {
			r.Fatal(err)
		}
		got, err := oci.PackageYAML(t.Context(), img, m, oci.Limits{})
		if err != nil || !bytes.Equal(got, want) {
			r.Fatalf("%q %v", got, err)
		}
	})
}

func TestBuiltManifest(t *testing.T) {
	img, err := image.Build(t.Context(), image.Input{
		PackageYAML: []byte(ocitest.HelloYAML), Examples: []byte("kind: Example\n"),
		Extra: []image.ExtraLayer{{Annotation: "acme.index", Files: []image.File{{
			Path: ".acme/index", Data: []byte("x"),
		}}}},
		Annotations: map[string]string{"org.opencontainers.source": "https://example.com"},
	})
	ocitest.Must(t, err)
	m, err := img.Manifest()
	ocitest.Must(t, err)
	var annotations []string
	labels := map[string]string{}
	for _, l := range m.Layers {
		annotations = append(annotations, l.Annotations[oci.AnnotationKey])
		labels[oci.AnnotationKey+":"+l.Digest.String()] = l.Annotations[oci.AnnotationKey]
		if l.MediaType != oci.MediaTypeOCILayerGzip {
			t.Errorf("layer of type %s", l.MediaType)
		}
	}
	if diff := cmp.Diff([]string{"base", "upbound", "acme.index"}, annotations); diff != "" {
		t.Error(diff)
	}
	var config struct {
		Architecture, OS string
		Created          *time.Time
		Config           struct{ Labels map[string]string }
		RootFS           struct {
			DiffIDs []oci.Digest `json:"diff_ids"`
		}
		History []map[string]any
	}
	ocitest.Must(t, json.Unmarshal(img.RawConfig(), &config))
	if diff := cmp.Diff(labels, config.Config.Labels); diff != "" {
		t.Error(diff)
	}
	if config.OS != "linux" || config.Architecture != "amd64" || config.Created != nil ||
		len(config.RootFS.DiffIDs) != 3 || len(config.History) != 3 {
		t.Errorf("%s", img.RawConfig())
	}
	if m.MediaType != oci.MediaTypeOCIManifest || m.Config.MediaType != oci.MediaTypeOCIConfig ||
		m.Annotations["org.opencontainers.source"] == "" {
		t.Errorf("%s", m.Raw)
	}
}

func TestBuildWithTime(t *testing.T) {
	created := time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("x", 3600))
	img, err := image.Build(t.Context(), image.Input{PackageYAML: []byte(ocitest.HelloYAML), Created: created})
	ocitest.Must(t, err)
	if !bytes.Contains(img.RawConfig(), []byte(`"created":"2026-01-02T02:04:05Z"`)) {
		t.Errorf("%s", img.RawConfig())
	}
}

func TestBuildRefuses(t *testing.T) {
	file := func(path string) []image.File { return []image.File{{Path: path}} }
	base := ocitest.Hello(t)
	tests := map[string]image.Input{
		"NoAnnotation":      {Extra: []image.ExtraLayer{{Files: file("x")}}},
		"SecondBase":        {Extra: []image.ExtraLayer{{Annotation: "base", Files: file("x")}}},
		"OtherPackageYAML":  {Extra: []image.ExtraLayer{{Annotation: "x", Files: file("package.yaml")}}},
		"Whiteout":          {Extra: []image.ExtraLayer{{Annotation: "x", Files: file(".wh.package.yaml")}}},
		"OpaqueRoot":        {Extra: []image.ExtraLayer{{Annotation: "x", Files: file(".wh..wh..opq")}}},
		"AbsolutePath":      {Extra: []image.ExtraLayer{{Annotation: "x", Files: file("/x")}}},
		"PathLeadsOut":      {Extra: []image.ExtraLayer{{Annotation: "x", Files: file("../x")}}},
		"PathGoesRound":     {Extra: []image.ExtraLayer{{Annotation: "x", Files: file("a/../x")}}},
		"EmptyPath":         {Extra: []image.ExtraLayer{{Annotation: "x", Files: file("")}}},
		"SamePathTwice":     {Extra: []image.ExtraLayer{{Annotation: "x", Files: append(file("x"), file("x")...)}}},
		"RuntimeIsAPackage": {Base: base},
	}
	for name, in := range tests {
		t.Run(name, func(t *testing.T) {
			in.PackageYAML = []byte(ocitest.HelloYAML)
			_, err := image.Build(t.Context(), in)
			ocitest.WantCode(t, err, image.ErrInvalidImageInput)
		})
	}
}

func TestBuildLongPath(t *testing.T) {
	long := strings.Repeat("folder/", 40) + "file"
	img, err := image.Build(t.Context(), image.Input{
		PackageYAML: []byte(ocitest.HelloYAML),
		Extra:       []image.ExtraLayer{{Annotation: "x", Files: []image.File{{Path: long}}}},
	})
	ocitest.Must(t, err)
	m, err := img.Manifest()
	ocitest.Must(t, err)
	if _, err := oci.PackageYAML(t.Context(), img, m, oci.Limits{}); err != nil {
		t.Error(err)
	}
}
