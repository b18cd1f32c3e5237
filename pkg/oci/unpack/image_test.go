package unpack

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/assembly"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest/clienttest"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest/storetest"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// programImage returns a runtime image with a package on top of it.
func programImage(t *testing.T, p oci.Platform, config RuntimeConfig) *image.Image {
	t.Helper()
	layer, data := ocitest.GzipLayer(t, image.File{Path: "bin/program", Data: []byte("program for " + p.String())})
	raw, err := json.Marshal(map[string]any{
		"architecture": p.Architecture, "os": p.OS, "config": config,
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{}},
	})
	if err != nil {
		t.Fatal(err)
	}
	base, err := image.Load(t.Context(), ocitest.Assemble(t, raw, []oci.Descriptor{layer}, data), p, oci.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	img, err := image.Build(t.Context(), image.Input{PackageYAML: []byte(ocitest.HelloYAML), Base: base})
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func pushTo(t *testing.T, r *remote.Client, host string, a oci.Artifact) oci.Reference {
	t.Helper()
	ref := oci.MustParseReference(host + "/acme/program:v1")
	d, err := r.Push(t.Context(), ref, a)
	if err != nil {
		t.Fatal(err)
	}
	return ref.WithDigest(d)
}

func TestFetchAndUnpackProgram(t *testing.T) {
	host, remote, store := ocitest.MemoryRegistry(t), clienttest.New(t, nil), storetest.New(t)
	here, other := oci.Platform{OS: "linux", Architecture: "amd64"}, oci.Platform{OS: "linux", Architecture: "arm64"}
	config := RuntimeConfig{
		Entrypoint: []string{"/bin/program"}, Cmd: []string{"--x"}, Env: []string{"A=b"}, WorkingDir: "/w", User: "65532",
		StopSignal: "SIGINT",
	}
	mine := programImage(t, here, config)
	index, err := image.NewIndex(mine, programImage(t, other, config))
	if err != nil {
		t.Fatal(err)
	}
	ref := pushTo(t, remote, host, index)
	image, err := Fetch(t.Context(), remote, ref, store, here, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if image.Root != ref.Digest || image.Digest != mine.Digest() || image.Platform.String() != here.String() ||
		len(image.Layers) != 2 {
		t.Errorf("got %+v", image)
	}
	if len(image.Config.Labels) != 1 {
		t.Errorf("got the labels %v, want the one of the package", image.Config.Labels)
	}
	image.Config.Labels = nil
	if diff := cmp.Diff(config, image.Config); diff != "" {
		t.Error(diff)
	}
	root := t.TempDir()
	done, err := RootFS(t.Context(), store, image, root, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"bin/": "", "bin/program": "program for linux/amd64", "package.yaml": ocitest.HelloYAML}
	if diff := cmp.Diff(want, tree(t, root)); diff != "" {
		t.Error(diff)
	}
	if done.Entries != 2 || done.Bytes == 0 {
		t.Errorf("got %+v", done)
	}
}

func TestFetchRuntimeImageOfAnotherPlatform(t *testing.T) {
	host, remote, store := ocitest.MemoryRegistry(t), clienttest.New(t, nil), storetest.New(t)
	mips, arm := oci.Platform{OS: "linux", Architecture: "mips"}, oci.Platform{OS: "linux", Architecture: "arm64"}
	single := programImage(t, arm, RuntimeConfig{})
	index, err := image.NewIndex(single, programImage(t, mips, RuntimeConfig{}))
	if err != nil {
		t.Fatal(err)
	}
	for name, a := range map[string]oci.Artifact{"single": single, "index": index} {
		_, err := Fetch(t.Context(), remote, pushTo(t, remote, host, a), store, oci.DefaultPlatform(), Limits{})
		if !errors.Is(err, ErrWrongPlatform) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for _, layer := range ocitest.Layers(t, single) {
		if store.Has(layer.Digest) {
			t.Error("a layer was fetched that nobody can use")
		}
	}
}

func TestFetchRuntimeImageRefuses(t *testing.T) {
	host, remote, store := ocitest.MemoryRegistry(t), clienttest.New(t, nil), storetest.New(t)
	ref := pushTo(t, remote, host, programImage(t, oci.DefaultPlatform(), RuntimeConfig{}))
	_, err := Fetch(t.Context(), remote, ref, store, oci.DefaultPlatform(), Limits{Download: 100})
	ocitest.WantCode(t, err, ErrImageTooLarge)
	noDigest := ref
	noDigest.Digest = oci.Digest{}
	_, err = Fetch(t.Context(), remote, noDigest, store, oci.DefaultPlatform(), Limits{})
	ocitest.WantCode(t, err, oci.ErrInvalidReference)
}

func TestFindProgramRefusesFilesThatCannotRun(t *testing.T) {
	config := []byte("{}")
	for name, test := range map[string]struct {
		config, layer oci.MediaType
		want          errcode.Code
	}{
		"chart": {"application/vnd.cncf.helm.config.v1+json", oci.MediaTypeOCILayerGzip, oci.ErrNotAPackage},
		"foreign": {
			oci.MediaTypeOCIConfig, "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip", oci.ErrForeignLayer,
		},
		"no tar": {oci.MediaTypeOCIConfig, "application/octet-stream", oci.ErrNotAPackage},
	} {
		t.Run(name, func(t *testing.T) {
			doc := oci.Document{
				SchemaVersion: 2, MediaType: oci.MediaTypeOCIManifest,
				Config: &oci.Descriptor{MediaType: test.config, Digest: oci.DigestOf(config), Size: 2},
				Layers: []oci.Descriptor{{MediaType: test.layer, Digest: oci.DigestOf([]byte("x")), Size: 1}},
			}
			raw, err := json.Marshal(doc)
			if err != nil {
				t.Fatal(err)
			}
			a := &assembly.Assembly{Desc: oci.Descriptor{
				MediaType: doc.MediaType, Digest: oci.DigestOf(raw), Size: int64(len(raw)),
			}}
			a.Add(a.Desc.Digest, assembly.BytesSource(raw))
			a.Add(doc.Config.Digest, assembly.BytesSource(config))
			_, err = Find(context.Background(), a, oci.DefaultPlatform(), oci.Limits{}, Limits{})
			ocitest.WantCode(t, err, test.want)
		})
	}
}
