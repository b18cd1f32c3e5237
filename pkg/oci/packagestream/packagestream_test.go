package packagestream_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/firstgen"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest"
	"github.com/xpkg-dev/xpkg/pkg/oci/packagestream"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

const crd = `apiVersion: apiextensions.k8s.io/v1beta1
kind: CustomResourceDefinition
metadata: {name: mytypes.samples.example.org}
spec: {group: samples.example.org, names: {kind: Mytype, plural: mytypes}, scope: Namespaced, version: v1alpha1}
`

func file(name, text string) image.File { return image.File{Path: name, Data: []byte(text)} }

// imageOf returns an image with a layer for each list of files, the lowest first.
func imageOf(t *testing.T, layers ...[]image.File) (oci.Artifact, oci.Manifest) {
	t.Helper()
	var descriptors []oci.Descriptor
	var blobs [][]byte
	for _, files := range layers {
		d, data := ocitest.GzipLayer(t, files...)
		descriptors, blobs = append(descriptors, d), append(blobs, data)
	}
	a := ocitest.Assemble(t, []byte("{}"), descriptors, blobs...)
	m, err := oci.FindManifest(t.Context(), a, oci.Platform{}, oci.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return a, m
}

func TestImagesOfBothGenerationsHaveAStream(t *testing.T) {
	first := []image.File{file(".registry/app.yaml", "title: Sample\n"), file(".registry/resources/crd.yaml", crd)}
	program := file("bin/manager", "program")
	for name, layers := range map[string][][]image.File{
		"metadata only":            {first},
		"above a runtime":          {{program}, first},
		"below a runtime":          {first, {program}},
		"in the layer of one":      {append(first, program)},
		"spread over layers":       {first[:1], {program}, first[1:]},
		"newer format takes place": {first, {file(oci.PackageFile, ocitest.HelloYAML)}},
	} {
		t.Run(name, func(t *testing.T) {
			a, m := imageOf(t, layers...)
			text, err := packagestream.Read(t.Context(), a, m, packagestream.Options{})
			if err != nil {
				t.Fatal(err)
			}
			pkg, err := xpkg.Read(text, xpkg.ReadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			want := "sample"
			if name == "newer format takes place" {
				want = "hello"
			}
			if pkg.Meta.Name != want {
				t.Errorf("package %s", pkg.Meta.Name)
			}
			again, err := packagestream.Read(t.Context(), a, m, packagestream.Options{})
			if err != nil || !bytes.Equal(text, again) {
				t.Errorf("another stream: %v", err)
			}
		})
	}
}

// A store contains all layers that the stream needs.
func TestStreamIsReadFromAStore(t *testing.T) {
	a, _ := imageOf(
		t, []image.File{file(".registry/app.yaml", "title: Sample\n")},
		[]image.File{file(".registry/resources/crd.yaml", crd)}, []image.File{file("bin/manager", "program")},
	)
	s, err := store.Open(t.TempDir(), store.Options{})
	ocitest.Must(t, err)
	t.Cleanup(func() { ocitest.Must(t, s.Close()) })
	m, _, err := s.AddPackage(t.Context(), a, oci.Limits{})
	ocitest.Must(t, err)
	kept, err := s.Artifact(t.Context(), m.Root, oci.Limits{})
	ocitest.Must(t, err)
	if _, err := packagestream.Read(t.Context(), kept, m, packagestream.Options{}); err != nil {
		t.Error(err)
	}
}

func TestImagesWithoutAPackageAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		files []image.File
		code  errcode.Code
	}{
		"no package":  {[]image.File{file("bin/manager", "x")}, oci.ErrNoPackageYAML},
		"no app":      {[]image.File{file(".registry/resources/crd.yaml", crd)}, firstgen.ErrNoApp},
		"invalid app": {[]image.File{file(".registry/app.yaml", "permissionScope: All\n")}, firstgen.ErrInvalidApp},
	} {
		a, m := imageOf(t, c.files)
		if _, err := packagestream.Read(t.Context(), a, m, packagestream.Options{}); !errors.Is(err, c.code) {
			t.Errorf("%s: %v, want %s", name, err, c.code.Name)
		}
	}
}

func TestMemoryIsReservedBeforeItIsAllocated(t *testing.T) {
	a, m := imageOf(t, []image.File{
		file(".registry/app.yaml", "title: Sample\n"), file(".registry/resources/crd.yaml", crd),
	})
	refused := errors.New("no memory")
	_, err := packagestream.Read(t.Context(), a, m, packagestream.Options{Reserve: func(int64) error { return refused }})
	if !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
}
