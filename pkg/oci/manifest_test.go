package oci_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"pgregory.net/rapid"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// hardening: B5
func TestChoosePlatform(t *testing.T) {
	entry := func(platform string) oci.Descriptor {
		d := oci.Descriptor{MediaType: oci.MediaTypeOCIManifest, Digest: oci.DigestOf([]byte(platform)), Size: 1}
		if platform != "" {
			p, err := oci.ParsePlatform(platform)
			ocitest.Must(t, err)
			d.Platform = &p
		}
		return d
	}
	index := oci.Document{MediaType: oci.MediaTypeOCIIndex, Manifests: []oci.Descriptor{
		entry("linux/amd64"), entry("linux/arm64"), entry("linux/arm/v6"), entry("linux/arm/v7"), entry(""),
	}}
	for ask, want := range map[string]string{
		"": "linux/amd64", "linux/arm64": "linux/arm64", "linux/arm/v7": "linux/arm/v7", "linux_arm64": "linux/arm64",
	} {
		var p oci.Platform
		if ask != "" {
			var err error
			p, err = oci.ParsePlatform(ask)
			ocitest.Must(t, err)
		}
		if got, err := index.Choose(p); err != nil || got.Digest != oci.DigestOf([]byte(want)) {
			t.Errorf("for %q: %+v %v", ask, got.Platform, err)
		}
	}
	_, err := index.Choose(oci.Platform{OS: "linux", Architecture: "arm"})
	ocitest.WantCode(t, err, oci.ErrAmbiguousPlatform)
	_, err = index.Choose(oci.Platform{OS: "plan9", Architecture: "amd64"})
	ocitest.WantCode(t, err, oci.ErrPlatformNotFound)
}

func TestParsePlatformRefuses(t *testing.T) {
	for _, s := range []string{
		"", "linux", "linux/", "/amd64", "linux/amd64/v1/x", "linux/am d64", "Linux/amd64", "linux/../x",
	} {
		_, err := oci.ParsePlatform(s)
		ocitest.WantCode(t, err, oci.ErrInvalidReference)
	}
}

// Equal input has an equal digest in every order of the images.
//
// hardening: B5
func TestIndexOrderDoesNotMatter(t *testing.T) {
	var images []*image.Image
	for _, p := range []string{"linux/amd64", "linux/arm64", "linux/ppc64le"} {
		platform, err := oci.ParsePlatform(p)
		ocitest.Must(t, err)
		img, err := image.Build(t.Context(), image.Input{PackageYAML: []byte(ocitest.HelloYAML), Platform: platform})
		ocitest.Must(t, err)
		images = append(images, img)
	}
	var want oci.Digest
	rapid.Check(t, func(t *rapid.T) {
		index, err := image.NewIndex(rapid.Permutation(images).Draw(t, "images")...)
		if err != nil {
			t.Fatal(err)
		}
		if want.IsZero() {
			want = index.Digest()
		}
		if index.Digest() != want {
			t.Fatalf("%s instead of %s", index.Digest(), want)
		}
	})
	_, err := image.NewIndex(images[0], images[0])
	ocitest.WantCode(t, err, oci.ErrAmbiguousPlatform)
	_, err = image.NewIndex()
	ocitest.WantCode(t, err, oci.ErrEmptyIndex)
}

// A foreign library reads our manifests with the same content.
func TestManifestAgreesWithForeignReader(t *testing.T) {
	img := ocitest.Hello(t)
	var foreign v1.Manifest
	ocitest.Must(t, json.Unmarshal(img.RawManifest(), &foreign))
	again, err := json.Marshal(foreign)
	ocitest.Must(t, err)
	var ours, theirs any
	ocitest.Must(t, json.Unmarshal(img.RawManifest(), &ours))
	ocitest.Must(t, json.Unmarshal(again, &theirs))
	if diff := cmp.Diff(ours, theirs); diff != "" {
		t.Error(diff)
	}
}

func FuzzParseDocument(f *testing.F) {
	for _, s := range []string{
		`{"schemaVersion":2}`,
		`{"schemaVersion":2,"manifests":[]}`,
		`{"schemaVersion":1,"fsLayers":[]}`,
		`{"schemaVersion":2,"mediaType":"application/vnd.image.manifest.v1+json","config":{"mediaType":"application/vnd.image.config.v1+json","digest":"` +
			ocitest.EmptyDigest + `","size":2},"layers":[{"mediaType":"application/vnd.image.layer.v1.tar","digest":"` +
			ocitest.EmptyDigest + `","size":1,"annotations":{"io.crossplane.xpkg":"base"}}]}`,
		`{"schemaVersion":2,"mediaType":"application/vnd.image.index.v1+json","manifests":[{"mediaType":"application/vnd.image.manifest.v1+json","digest":"` +
			ocitest.EmptyDigest + `","size":1,"platform":{"os":"linux","architecture":"amd64"}}]}`,
		`{"schemaVersion":2,"manifests":[{"digest":"sha512:00"}]}`, `null`, `[]`, `{"layers":null,"manifests":null}`,
	} {
		f.Add([]byte(s), "")
	}
	f.Add([]byte(`{"schemaVersion":2,"layers":[]}`), string(oci.MediaTypeOCIIndex))
	f.Fuzz(func(t *testing.T, data []byte, declared string) {
		doc, err := oci.ParseDocument(data, oci.MediaType(declared), oci.Limits{})
		if err != nil {
			if !errcode.Known(err) {
				t.Fatalf("%v", err)
			}
			return
		}
		if doc.IsIndex() {
			_, err = doc.Choose(oci.Platform{})
		} else {
			_, err = oci.NewManifest(data, doc)
		}
		if err != nil && !errcode.Known(err) {
			t.Fatalf("%v", err)
		}
	})
}
