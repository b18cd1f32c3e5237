package oci

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"pgregory.net/rapid"
)

func TestChoosePlatform(t *testing.T) {
	entry := func(platform string) Descriptor {
		d := Descriptor{MediaType: MediaTypeOCIManifest, Digest: DigestOf([]byte(platform)), Size: 1}
		if platform != "" {
			p, err := ParsePlatform(platform)
			must(t, err)
			d.Platform = &p
		}
		return d
	}
	index := Document{MediaType: MediaTypeOCIIndex, Manifests: []Descriptor{
		entry("linux/amd64"), entry("linux/arm64"), entry("linux/arm/v6"), entry("linux/arm/v7"), entry(""),
	}}
	for ask, want := range map[string]string{"": "linux/amd64", "linux/arm64": "linux/arm64", "linux/arm/v7": "linux/arm/v7", "linux_arm64": "linux/arm64"} {
		var p Platform
		if ask != "" {
			var err error
			p, err = ParsePlatform(ask)
			must(t, err)
		}
		if got, err := index.Choose(p); err != nil || got.Digest != DigestOf([]byte(want)) {
			t.Errorf("for %q: %+v %v", ask, got.Platform, err)
		}
	}
	_, err := index.Choose(Platform{OS: "linux", Architecture: "arm"})
	wantCode(t, err, ErrAmbiguousPlatform)
	_, err = index.Choose(Platform{OS: "plan9", Architecture: "amd64"})
	wantCode(t, err, ErrPlatformNotFound)
}

func TestParsePlatformRefuses(t *testing.T) {
	for _, s := range []string{"", "linux", "linux/", "/amd64", "linux/amd64/v1/x", "linux/am d64", "Linux/amd64", "linux/../x"} {
		_, err := ParsePlatform(s)
		wantCode(t, err, ErrInvalidReference)
	}
}

// Equal input makes one digest, in whatever order the images are named.
func TestIndexOrderDoesNotMatter(t *testing.T) {
	var images []*Image
	for _, p := range []string{"linux/amd64", "linux/arm64", "linux/ppc64le"} {
		platform, err := ParsePlatform(p)
		must(t, err)
		img, err := BuildImage(t.Context(), ImageInput{PackageYAML: []byte(helloYAML), Platform: platform})
		must(t, err)
		images = append(images, img)
	}
	var want Digest
	rapid.Check(t, func(t *rapid.T) {
		index, err := NewIndex(rapid.Permutation(images).Draw(t, "images")...)
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
	_, err := NewIndex(images[0], images[0])
	wantCode(t, err, ErrAmbiguousPlatform)
	_, err = NewIndex()
	wantCode(t, err, ErrEmptyIndex)
}

// What we write as a manifest, a foreign library reads as the same.
func TestManifestAgreesWithForeignReader(t *testing.T) {
	img := buildHello(t)
	var foreign v1.Manifest
	must(t, json.Unmarshal(img.RawManifest(), &foreign))
	again, err := json.Marshal(foreign)
	must(t, err)
	var ours, theirs any
	must(t, json.Unmarshal(img.RawManifest(), &ours))
	must(t, json.Unmarshal(again, &theirs))
	if diff := cmp.Diff(ours, theirs); diff != "" {
		t.Error(diff)
	}
}

func FuzzParseDocument(f *testing.F) {
	for _, s := range []string{
		`{"schemaVersion":2}`,
		`{"schemaVersion":2,"manifests":[]}`,
		`{"schemaVersion":1,"fsLayers":[]}`,
		`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"` + digestOfNothing + `","size":2},"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar","digest":"` + digestOfNothing + `","size":1,"annotations":{"io.crossplane.xpkg":"base"}}]}`,
		`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"` + digestOfNothing + `","size":1,"platform":{"os":"linux","architecture":"amd64"}}]}`,
		`{"schemaVersion":2,"manifests":[{"digest":"sha512:00"}]}`, `null`, `[]`, `{"layers":null,"manifests":null}`,
	} {
		f.Add([]byte(s), "")
	}
	f.Add([]byte(`{"schemaVersion":2,"layers":[]}`), string(MediaTypeOCIIndex))
	f.Fuzz(func(t *testing.T, data []byte, declared string) {
		doc, err := ParseDocument(data, MediaType(declared), Limits{})
		if err != nil {
			if !failureOf(err) {
				t.Fatalf("%v", err)
			}
			return
		}
		if doc.IsIndex() {
			_, err = doc.Choose(Platform{})
		} else {
			_, err = newManifest(data, doc)
		}
		if err != nil && !failureOf(err) {
			t.Fatalf("%v", err)
		}
	})
}

func FuzzParseChallenges(f *testing.F) {
	for _, s := range []string{
		`Bearer realm="https://auth.example/token",service="x",scope="a:b:c"`, `Basic realm="x"`, `Basic`, `Bearer realm="a\"b", Basic realm=c`, `Negotiate abc==, Bearer realm=x`, `,,,=`, `a b c`, `x="`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(_ *testing.T, s string) { parseChallenges([]string{s}) })
}

func TestParseChallenges(t *testing.T) {
	got := parseChallenges([]string{`Bearer realm="https://a/t",service="x y, z",scope=q`, `Basic realm="r\"s"`, `Negotiate, Digest nonce=1`})
	want := []challenge{
		{"bearer", map[string]string{"realm": "https://a/t", "service": "x y, z", "scope": "q"}},
		{"basic", map[string]string{"realm": `r"s`}},
		{"negotiate", map[string]string{}},
		{"digest", map[string]string{"nonce": "1"}},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(challenge{})); diff != "" {
		t.Error(diff)
	}
}
