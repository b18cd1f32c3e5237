package oci

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
)

// The digest of this image must stay the same on every machine, with every
// compiler and processor, and for ever: a change of it is a change of the digest
// of every package that anybody builds. See gzipLevel.
func TestBuildImageGolden(t *testing.T) {
	const want = "sha256:5604e0c5443b9c20f9fe4b5054722987e1daab4f43aa4773ce7f02c9b2df4bff"
	img, err := BuildImage(t.Context(), ImageInput{
		PackageYAML: []byte(strings.Repeat(helloYAML+"---\n", 1000)),
		Examples:    []byte("kind: Example\n"),
		Extra:       []ExtraLayer{{Annotation: "noise", Files: []LayerFile{{Path: "b/noise", Data: noise(100_000)}, {Path: "a", Data: []byte("a")}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := img.Digest().String(); got != want {
		t.Errorf("the image has digest %s, and had %s before", got, want)
	}
}

func TestC10NothingOfTheMachine(t *testing.T) {
	layer, err := buildLayer([]LayerFile{{Path: "b", Data: []byte("b")}, {Path: "a", Data: []byte("a")}}, MediaTypeOCILayerGzip, "x")
	must(t, err)
	zr, err := gzip.NewReader(bytes.NewReader(layer.data))
	must(t, err)
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
		must(t, err)
		names = append(names, h.Name)
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Gname != "" || h.Mode != 0o644 || !h.ModTime.Equal(time.Unix(0, 0)) || len(h.PAXRecords) != 0 {
			t.Errorf("header %+v", h)
		}
	}
	if !slices.Equal(names, []string{"a", "b"}) {
		t.Errorf("the files are %v", names)
	}
}

// Whatever bytes the stream has, they come back.
func TestBuiltStreamComesBack(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		want := rapid.SliceOf(rapid.Byte()).Draw(r, "stream")
		img, err := BuildImage(t.Context(), ImageInput{PackageYAML: want})
		if err != nil {
			r.Fatal(err)
		}
		m, err := img.Manifest()
		if err != nil {
			r.Fatal(err)
		}
		got, err := ReadPackageYAML(t.Context(), img, m, Limits{})
		if err != nil || !bytes.Equal(got, want) {
			r.Fatalf("%q %v", got, err)
		}
	})
}

func TestBuiltManifest(t *testing.T) {
	img, err := BuildImage(t.Context(), ImageInput{
		PackageYAML: []byte(helloYAML), Examples: []byte("kind: Example\n"),
		Extra:       []ExtraLayer{{Annotation: "acme.index", Files: []LayerFile{{Path: ".acme/index", Data: []byte("x")}}}},
		Annotations: map[string]string{"org.opencontainers.image.source": "https://example.com"},
	})
	must(t, err)
	m, err := img.Manifest()
	must(t, err)
	var annotations []string
	labels := map[string]string{}
	for _, l := range m.Layers {
		annotations = append(annotations, l.Annotations[AnnotationKey])
		labels[AnnotationKey+":"+l.Digest.String()] = l.Annotations[AnnotationKey]
		if l.MediaType != MediaTypeOCILayerGzip {
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
			DiffIDs []Digest `json:"diff_ids"`
		}
		History []map[string]any
	}
	must(t, json.Unmarshal(img.RawConfig(), &config))
	if diff := cmp.Diff(labels, config.Config.Labels); diff != "" {
		t.Error(diff)
	}
	if config.OS != "linux" || config.Architecture != "amd64" || config.Created != nil || len(config.RootFS.DiffIDs) != 3 || len(config.History) != 3 {
		t.Errorf("%s", img.RawConfig())
	}
	if m.MediaType != MediaTypeOCIManifest || m.Config.MediaType != MediaTypeOCIConfig || m.Annotations["org.opencontainers.image.source"] == "" {
		t.Errorf("%s", m.Raw)
	}
}

func TestBuildWithTime(t *testing.T) {
	created := time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("x", 3600))
	img, err := BuildImage(t.Context(), ImageInput{PackageYAML: []byte(helloYAML), Created: created})
	must(t, err)
	if !bytes.Contains(img.RawConfig(), []byte(`"created":"2026-01-02T02:04:05Z"`)) {
		t.Errorf("%s", img.RawConfig())
	}
}

func TestBuildRefuses(t *testing.T) {
	file := func(path string) []LayerFile { return []LayerFile{{Path: path}} }
	base := buildHello(t)
	tests := map[string]ImageInput{
		"NoAnnotation":      {Extra: []ExtraLayer{{Files: file("x")}}},
		"SecondBase":        {Extra: []ExtraLayer{{Annotation: "base", Files: file("x")}}},
		"OtherPackageYAML":  {Extra: []ExtraLayer{{Annotation: "x", Files: file("package.yaml")}}},
		"Whiteout":          {Extra: []ExtraLayer{{Annotation: "x", Files: file(".wh.package.yaml")}}},
		"OpaqueRoot":        {Extra: []ExtraLayer{{Annotation: "x", Files: file(".wh..wh..opq")}}},
		"AbsolutePath":      {Extra: []ExtraLayer{{Annotation: "x", Files: file("/x")}}},
		"PathLeadsOut":      {Extra: []ExtraLayer{{Annotation: "x", Files: file("../x")}}},
		"PathGoesRound":     {Extra: []ExtraLayer{{Annotation: "x", Files: file("a/../x")}}},
		"EmptyPath":         {Extra: []ExtraLayer{{Annotation: "x", Files: file("")}}},
		"SamePathTwice":     {Extra: []ExtraLayer{{Annotation: "x", Files: append(file("x"), file("x")...)}}},
		"RuntimeIsAPackage": {Base: base},
	}
	for name, in := range tests {
		t.Run(name, func(t *testing.T) {
			in.PackageYAML = []byte(helloYAML)
			_, err := BuildImage(t.Context(), in)
			wantCode(t, err, ErrInvalidImageInput)
		})
	}
}

func TestBuildLongPath(t *testing.T) {
	long := strings.Repeat("folder/", 40) + "file"
	img, err := BuildImage(t.Context(), ImageInput{
		PackageYAML: []byte(helloYAML),
		Extra:       []ExtraLayer{{Annotation: "x", Files: []LayerFile{{Path: long}}}},
	})
	must(t, err)
	m, err := img.Manifest()
	must(t, err)
	if _, err := ReadPackageYAML(t.Context(), img, m, Limits{}); err != nil {
		t.Error(err)
	}
}
