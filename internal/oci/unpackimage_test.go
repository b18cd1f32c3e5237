package oci

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// programImage is an image with a program, and a package on top of it.
func programImage(t *testing.T, p Platform, config ProgramConfig) *Image {
	t.Helper()
	layer, err := buildLayer([]LayerFile{{Path: "bin/program", Data: []byte("program for " + p.String())}}, MediaTypeOCILayerGzip, "")
	if err != nil {
		t.Fatal(err)
	}
	c, err := newConfig(p)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.set("config", config); err != nil {
		t.Fatal(err)
	}
	if err := c.addLayers([]builtLayer{layer}, time.Time{}); err != nil {
		t.Fatal(err)
	}
	base := &Image{platform: p, manifest: Document{SchemaVersion: 2, MediaType: MediaTypeOCIManifest, Config: &Descriptor{MediaType: MediaTypeOCIConfig}, Layers: []Descriptor{layer.desc}}}
	base.add(layer.desc.Digest, bytesSource(layer.data))
	if err := base.seal(c); err != nil {
		t.Fatal(err)
	}
	img, err := BuildImage(t.Context(), ImageInput{PackageYAML: []byte(helloYAML), Base: base})
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func pushTo(t *testing.T, r *Remote, host string, a Artifact) Reference {
	t.Helper()
	ref := MustParseReference(host + "/acme/program:v1")
	d, err := r.Push(t.Context(), ref, a)
	if err != nil {
		t.Fatal(err)
	}
	return ref.WithDigest(d)
}

func TestFetchAndUnpackProgram(t *testing.T) {
	host, remote, store := memoryRegistry(t), testRemote(t, nil), newStore(t)
	here, other := Platform{OS: "linux", Architecture: "amd64"}, Platform{OS: "linux", Architecture: "arm64"}
	config := ProgramConfig{Entrypoint: []string{"/bin/program"}, Cmd: []string{"--x"}, Env: []string{"A=b"}, WorkingDir: "/w", User: "65532", StopSignal: "SIGINT"}
	mine := programImage(t, here, config)
	index, err := NewIndex(mine, programImage(t, other, config))
	if err != nil {
		t.Fatal(err)
	}
	ref := pushTo(t, remote, host, index)
	image, err := remote.FetchProgram(t.Context(), ref, store, here, UnpackLimits{})
	if err != nil {
		t.Fatal(err)
	}
	if image.Root != ref.Digest || image.Digest != mine.Digest() || image.Platform.String() != here.String() || len(image.Layers) != 2 {
		t.Errorf("got %+v", image)
	}
	if diff := cmp.Diff(config, image.Config); diff != "" {
		t.Error(diff)
	}
	root := t.TempDir()
	done, err := Unpack(t.Context(), store, image, root, UnpackLimits{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"bin/": "", "bin/program": "program for linux/amd64", "package.yaml": helloYAML}
	if diff := cmp.Diff(want, tree(t, root)); diff != "" {
		t.Error(diff)
	}
	if done.Entries != 2 || done.Bytes == 0 {
		t.Errorf("got %+v", done)
	}
}

func TestFetchProgramOfAnotherPlatform(t *testing.T) {
	host, remote, store := memoryRegistry(t), testRemote(t, nil), newStore(t)
	mips, arm := Platform{OS: "linux", Architecture: "mips"}, Platform{OS: "linux", Architecture: "arm64"}
	single := programImage(t, arm, ProgramConfig{})
	index, err := NewIndex(single, programImage(t, mips, ProgramConfig{}))
	if err != nil {
		t.Fatal(err)
	}
	for name, a := range map[string]Artifact{"single": single, "index": index} {
		_, err := remote.FetchProgram(t.Context(), pushTo(t, remote, host, a), store, DefaultPlatform(), UnpackLimits{})
		if !ErrWrongPlatform.Is(err) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for _, layer := range single.manifest.Layers {
		if store.Has(layer.Digest) {
			t.Error("a layer was fetched that nobody can use")
		}
	}
}

func TestFetchProgramRefuses(t *testing.T) {
	host, remote, store := memoryRegistry(t), testRemote(t, nil), newStore(t)
	ref := pushTo(t, remote, host, programImage(t, DefaultPlatform(), ProgramConfig{}))
	_, err := remote.FetchProgram(t.Context(), ref, store, DefaultPlatform(), UnpackLimits{Download: 100})
	wantCode(t, err, ErrImageTooLarge)
	noDigest := ref
	noDigest.Digest = Digest{}
	_, err = remote.FetchProgram(t.Context(), noDigest, store, DefaultPlatform(), UnpackLimits{})
	wantCode(t, err, ErrInvalidReference)
}

func TestFindProgramRefusesWhatIsNone(t *testing.T) {
	config := []byte("{}")
	for name, test := range map[string]struct {
		config, layer MediaType
		want          interface{ Is(error) bool }
	}{
		"chart":   {"application/vnd.cncf.helm.config.v1+json", MediaTypeOCILayerGzip, ErrNotAPackage},
		"foreign": {MediaTypeOCIConfig, "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip", ErrForeignLayer},
		"no tar":  {MediaTypeOCIConfig, "application/octet-stream", ErrNotAPackage},
	} {
		t.Run(name, func(t *testing.T) {
			doc := Document{
				SchemaVersion: 2, MediaType: MediaTypeOCIManifest,
				Config: &Descriptor{MediaType: test.config, Digest: DigestOf(config), Size: 2},
				Layers: []Descriptor{{MediaType: test.layer, Digest: DigestOf([]byte("x")), Size: 1}},
			}
			raw, err := json.Marshal(doc)
			if err != nil {
				t.Fatal(err)
			}
			a := &content{root: Descriptor{MediaType: doc.MediaType, Digest: DigestOf(raw), Size: int64(len(raw))}}
			a.add(a.root.Digest, bytesSource(raw))
			a.add(doc.Config.Digest, bytesSource(config))
			_, err = FindProgram(context.Background(), a, DefaultPlatform(), Limits{}, UnpackLimits{})
			wantCode(t, err, test.want)
		})
	}
}
