package archive

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/crane"
	"github.com/google/go-containerregistry/pkg/name"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest/clienttest"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest/storetest"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// upstreamImage returns a package as the Crossplane CLI builds it: the configuration has
// the annotations as labels, and the client that pushes the image adds them to the
// layers.
func upstreamImage(t *testing.T) v1.Image {
	t.Helper()
	data := ocitest.Tar(t, image.File{Path: oci.PackageFile, Data: []byte(ocitest.HelloYAML)})
	layer, err := tarball.LayerFromOpener(func() (
		io.ReadCloser, error,
	) {
		return io.NopCloser(bytes.NewReader(data)), nil
	})
	ocitest.Must(t, err)
	img, err := mutate.AppendLayers(foreignRuntime(t), layer)
	ocitest.Must(t, err)
	digest, err := layer.Digest()
	ocitest.Must(t, err)
	config, err := img.ConfigFile()
	ocitest.Must(t, err)
	config = config.DeepCopy()
	config.Config.Labels = map[string]string{oci.AnnotationKey + ":" + digest.String(): oci.AnnotationBase}
	img, err = mutate.ConfigFile(img, config)
	ocitest.Must(t, err)
	return img
}

// foreignRuntime returns a runtime image with plain layers, as `docker save` writes them.
func foreignRuntime(t *testing.T) v1.Image {
	t.Helper()
	bin := static.NewLayer(
		ocitest.Tar(t, image.File{Path: "bin/provider", Data: ocitest.Noise(20_000)}), oci.MediaTypeDockerLayer,
	)
	img, err := mutate.AppendLayers(empty.Image, bin)
	ocitest.Must(t, err)
	config, err := img.ConfigFile()
	ocitest.Must(t, err)
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", "arm64"
	config.Config.Entrypoint, config.Config.User = []string{"/bin/provider"}, "65532"
	img, err = mutate.ConfigFile(img, config)
	ocitest.Must(t, err)
	return img
}

func saveForeign(t *testing.T, img v1.Image) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "image.tar")
	ocitest.Must(t, tarball.WriteToFile(path, name.MustParseReference("acme/image:v1"), img))
	return path
}

func openArchive(t *testing.T, path string) *Archive {
	t.Helper()
	a, err := Open(t.Context(), path, oci.Limits{})
	ocitest.Must(t, err)
	t.Cleanup(func() { _ = a.Close() })
	return a
}

func TestReadUpstreamArchive(t *testing.T) {
	a := openArchive(t, saveForeign(t, upstreamImage(t)))
	m, err := oci.FindManifest(t.Context(), a, oci.Platform{}, oci.Limits{})
	ocitest.Must(t, err)
	if m.Base == nil {
		t.Fatal("the label did not become an annotation")
	}
	got, err := oci.PackageYAML(t.Context(), a, m, oci.Limits{})
	if err != nil || string(got) != ocitest.HelloYAML {
		t.Errorf("%q %v", got, err)
	}
	ref := oci.MustParseReference(ocitest.MemoryRegistry(t) + "/acme/pkg:v1")
	r := clienttest.New(t, nil)
	digest, err := r.Push(t.Context(), ref, a)
	ocitest.Must(t, err)
	got, m, err = clienttest.FetchYAML(t.Context(), r, storetest.New(t), ref)
	if err != nil || string(got) != ocitest.HelloYAML || m.Base == nil || m.Digest != digest {
		t.Errorf("%q %v", got, err)
	}
}

// A package that lost its annotations on the way is read from the filesystem, and
// of its layers only the upper ones are fetched.
func TestReadImageWithoutAnnotations(t *testing.T) {
	f := ocitest.NewRegistry(t)
	ref := oci.MustParseReference(f.Host() + "/acme/pkg:v1")
	host := ocitest.MemoryRegistry(t)
	other := oci.MustParseReference(host + "/acme/pkg:v1")
	target, err := name.ParseReference(other.String())
	ocitest.Must(t, err)
	ocitest.Must(t, remote.Write(target, upstreamImage(t)))
	r := clienttest.New(t, nil)
	a, err := r.Artifact(t.Context(), other)
	ocitest.Must(t, err)
	f.Publish(t, a, "v1")

	got, m, err := clienttest.FetchYAML(t.Context(), r, storetest.New(t), ref)
	if err != nil || string(got) != ocitest.HelloYAML || m.Base != nil {
		t.Fatalf("%q %v %v", got, m.Base, err)
	}
	if n := f.Count("/blobs/"); n != 1 {
		t.Errorf("%d blobs were fetched", n)
	}
}

func TestEmbedRuntimeImage(t *testing.T) {
	runtime := foreignRuntime(t)
	gzipped, err := mutate.AppendLayers(empty.Image, func() v1.Layer {
		l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(ocitest.Tar(t, image.File{Path: "bin/provider", Data: ocitest.Noise(20_000)}))),
				nil
		})
		ocitest.Must(t, err)
		return l
	}())
	ocitest.Must(t, err)
	for title, img := range map[string]v1.Image{"Plain": runtime, "Gzip": gzipped} {
		t.Run(title, func(t *testing.T) {
			a := openArchive(t, saveForeign(t, img))
			base, err := image.Load(t.Context(), a, oci.Platform{}, oci.Limits{})
			ocitest.Must(t, err)
			built, err := image.Build(t.Context(), image.Input{PackageYAML: []byte(ocitest.HelloYAML), Base: base})
			ocitest.Must(t, err)
			again, err := image.Build(t.Context(), image.Input{PackageYAML: []byte(ocitest.HelloYAML), Base: base})
			ocitest.Must(t, err)
			if built.Digest() != again.Digest() {
				t.Error("two builds differ")
			}
			ref := oci.MustParseReference(ocitest.MemoryRegistry(t) + "/acme/pkg:v1")
			_, err = clienttest.New(t, nil).Push(t.Context(), ref, built)
			ocitest.Must(t, err)
			pulled := pullForeign(t, ref)
			config, err := pulled.ConfigFile()
			ocitest.Must(t, err)
			if title == "Plain" && (config.Architecture != "arm64" || config.Config.User != "65532" ||
				config.Config.Entrypoint[0] != "/bin/provider") {
				t.Errorf("%+v", config)
			}
			manifest, err := pulled.Manifest()
			ocitest.Must(t, err)
			if len(manifest.Layers) != 2 || manifest.Layers[1].Annotations[oci.AnnotationKey] != oci.AnnotationBase {
				t.Errorf("%+v", manifest.Layers)
			}
			for _, l := range manifest.Layers {
				if l.MediaType != oci.MediaTypeDockerLayerGzip {
					t.Errorf("layer of type %s", l.MediaType)
				}
			}
		})
	}
}

// pullForeign reads and validates an image with go-containerregistry alone.
func pullForeign(t *testing.T, ref oci.Reference) v1.Image {
	t.Helper()
	foreign, err := name.ParseReference(ref.String())
	ocitest.Must(t, err)
	img, err := remote.Image(foreign, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: "amd64"}))
	ocitest.Must(t, err)
	ocitest.Must(t, validate.Image(img))
	return img
}

func TestEmbedForAnotherPlatform(t *testing.T) {
	base, err := image.Load(t.Context(), openArchive(t, saveForeign(t, foreignRuntime(t))), oci.Platform{}, oci.Limits{})
	ocitest.Must(t, err)
	_, err = image.Build(t.Context(), image.Input{
		PackageYAML: []byte(ocitest.HelloYAML), Base: base, Platform: oci.DefaultPlatform(),
	})
	ocitest.WantCode(t, err, image.ErrInvalidImageInput)
}

// An archive of Docker 25 and later is a layout too, with plain layers.
func TestEmbedFromLayoutWithPlainLayers(t *testing.T) {
	dir := t.TempDir()
	plain := mutate.MediaType(mutate.ConfigMediaType(foreignRuntime(t), oci.MediaTypeOCIConfig), oci.MediaTypeOCIManifest)
	path, err := layout.Write(dir, empty.Index)
	ocitest.Must(t, err)
	ocitest.Must(t, path.AppendImage(plain))
	base, err := image.Load(t.Context(), openArchive(t, dir), oci.Platform{}, oci.Limits{})
	ocitest.Must(t, err)
	img, err := image.Build(t.Context(), image.Input{PackageYAML: []byte(ocitest.HelloYAML), Base: base})
	ocitest.Must(t, err)
	m, err := img.Manifest()
	ocitest.Must(t, err)
	got, err := oci.PackageYAML(t.Context(), img, m, oci.Limits{})
	if err != nil || string(got) != ocitest.HelloYAML {
		t.Errorf("%q %v", got, err)
	}
}

func TestAppendExtensions(t *testing.T) {
	index := ocitest.TwoPlatforms(t)
	f := ocitest.NewRegistry(t)
	ref := f.Publish(t, index, "v1")
	got, m, err := clienttest.FetchYAML(t.Context(), clienttest.New(t, nil), storetest.New(t), ref)
	if err != nil || !strings.HasSuffix(string(got), "# amd64\n") {
		t.Fatalf("%q %v", got, err)
	}
	if m.Root != index.Digest() || m.Digest == m.Root || m.Platform.String() != "linux/amd64" {
		t.Errorf("%+v", m)
	}
	_, doc, err := oci.ReadDocument(t.Context(), index, index.Root(), oci.Limits{})
	ocitest.Must(t, err)
	last := doc.Manifests[len(doc.Manifests)-1]
	if !last.IsExtensions() || f.Count(last.Digest.String()) != 0 {
		t.Error("the extensions are not last, or were fetched")
	}

	// A second append replaces the extensions; an append to an image converts it to an
	// index.
	other, err := image.BuildExtensions([]image.ExtraLayer{{Annotation: "docs", Files: []image.File{{Path: "other.md"}}}})
	ocitest.Must(t, err)
	again, err := image.AppendExtensions(t.Context(), index, other, oci.Limits{})
	ocitest.Must(t, err)
	_, doc, err = oci.ReadDocument(t.Context(), again, again.Root(), oci.Limits{})
	ocitest.Must(t, err)
	if len(doc.Manifests) != 3 || doc.Manifests[2].Digest != other.Digest() {
		t.Errorf("%+v", doc.Manifests)
	}
	single, err := image.AppendExtensions(t.Context(), ocitest.Hello(t), other, oci.Limits{})
	ocitest.Must(t, err)
	fm, err := oci.FindManifest(t.Context(), single, oci.Platform{}, oci.Limits{})
	if err != nil || fm.Digest != ocitest.Hello(t).Digest() {
		t.Errorf("%s %v", fm.Digest, err)
	}
	pushed := oci.MustParseReference(ocitest.MemoryRegistry(t) + "/acme/pkg:v1")
	_, err = clienttest.New(t, nil).Push(t.Context(), pushed, again)
	ocitest.Must(t, err)
	pullForeign(t, pushed)
}

// A package keeps its bytes through a chain of copies.
func TestCopyChain(t *testing.T) {
	for title, start := range map[string]oci.Artifact{"Image": ocitest.Hello(t), "Index": ocitest.TwoPlatforms(t)} {
		t.Run(title, func(t *testing.T) {
			r := clienttest.New(t, nil)
			first := oci.MustParseReference(ocitest.MemoryRegistry(t) + "/acme/pkg:v1")
			second := oci.MustParseReference(ocitest.MemoryRegistry(t) + "/other/pkg:v2")
			dir, file := filepath.Join(t.TempDir(), "layout"), filepath.Join(t.TempDir(), "pkg.xpkg")
			want := start.Root().Digest

			copyTo(t, r.To(first), start, want)
			fromFirst, err := r.Artifact(t.Context(), first)
			ocitest.Must(t, err)
			copyTo(t, ToFile(file, WriteOptions{}, oci.Limits{}), fromFirst, want)
			copyTo(t, ToLayout(dir, "v1", oci.Limits{}), openArchive(t, file), want)
			stdin, err := os.Open(file)
			ocitest.Must(t, err)
			defer stdin.Close()
			streamed, err := Read(t.Context(), stdin, t.TempDir(), 1<<20, oci.Limits{})
			ocitest.Must(t, err)
			defer streamed.Close()
			copyTo(t, r.To(second), openArchive(t, dir), want)
			got, _, err := clienttest.FetchYAML(t.Context(), r, storetest.New(t), second)
			if err != nil || !strings.HasPrefix(string(got), ocitest.HelloYAML) || streamed.Digest() != want {
				t.Errorf("%q %v", got, err)
			}
			_, err = oci.Copy(t.Context(), ToLayout(dir, "v1", oci.Limits{}), start)
			ocitest.WantCode(t, err, ErrLayoutExists)
		})
	}
}

func copyTo(t *testing.T, to oci.Destination, from oci.Artifact, want oci.Digest) {
	t.Helper()
	got, err := oci.Copy(t.Context(), to, from)
	if err != nil || got != want {
		t.Fatalf("%s %v", got, err)
	}
}

// Another tool that copies a layout of ours keeps annotations and digest.
func TestForeignToolCopiesOurLayout(t *testing.T) {
	img := ocitest.Hello(t)
	dir := filepath.Join(t.TempDir(), "layout")
	copyTo(t, ToLayout(dir, "v1", oci.Limits{}), img, img.Digest())
	index, err := layout.ImageIndexFromPath(dir)
	ocitest.Must(t, err)
	ocitest.Must(t, validate.Index(index))
	children, err := index.IndexManifest()
	ocitest.Must(t, err)
	foreign, err := index.Image(children.Manifests[0].Digest)
	ocitest.Must(t, err)
	first, second := ocitest.MemoryRegistry(t)+"/acme/pkg:v1", ocitest.MemoryRegistry(t)+"/acme/copy:v1"
	ocitest.Must(t, crane.Push(foreign, first))
	ocitest.Must(t, crane.Copy(first, second))
	got, m, err := clienttest.FetchYAML(
		t.Context(), clienttest.New(t, nil), storetest.New(t), oci.MustParseReference(second),
	)
	if err != nil || string(got) != ocitest.HelloYAML || m.Base == nil || m.Digest != img.Digest() {
		t.Errorf("%q %+v %v", got, m, err)
	}
}

func TestReadArchiveLimit(t *testing.T) {
	_, err := Read(t.Context(), bytes.NewReader(make([]byte, 2048)), t.TempDir(), 1024, oci.Limits{})
	ocitest.WantCode(t, err, oci.ErrLayerTooLarge)
}

func TestOpenArchiveThatIsNotThere(t *testing.T) {
	_, err := Open(t.Context(), filepath.Join(t.TempDir(), "no.xpkg"), oci.Limits{})
	ocitest.WantCode(t, err, ErrArchiveNotFound)
}

// A link in a layout must not lead out of it.
//
// hardening: C6
func TestLinkOutOfALayoutIsRefused(t *testing.T) {
	img := ocitest.Hello(t)
	dir := filepath.Join(t.TempDir(), "layout")
	copyTo(t, ToLayout(dir, "", oci.Limits{}), img, img.Digest())
	blob := filepath.Join(dir, filepath.FromSlash(blobName(img.Digest())))
	outside := filepath.Join(t.TempDir(), "manifest")
	ocitest.Must(t, os.Rename(blob, outside))
	ocitest.Must(t, os.Symlink(outside, blob))
	a := openArchive(t, dir)
	if _, err := oci.FindManifest(t.Context(), a, oci.Platform{}, oci.Limits{}); err == nil {
		t.Error("the link was followed")
	}
}

// Older archives of Docker store a layer that occurs twice as a link.
//
// hardening: C6
func TestDockerArchiveWithLink(t *testing.T) {
	var out bytes.Buffer
	tw := tar.NewWriter(&out)
	layer := ocitest.Tar(t, image.File{Path: oci.PackageFile, Data: []byte(ocitest.HelloYAML)})
	for _, f := range []image.File{
		{Path: "manifest.json", Data: []byte(`[{"Config":"c.json","Layers":["a/layer.tar","b/layer.tar"]}]`)},
		{Path: "c.json", Data: []byte(`{"os":"linux","architecture":"amd64"}`)}, {Path: "a/layer.tar", Data: layer},
	} {
		ocitest.Must(t, writeEntry(tw, f.Path, int64(len(f.Data)), bytes.NewReader(f.Data)))
	}
	ocitest.Must(t, tw.WriteHeader(&tar.Header{
		Typeflag: tar.TypeSymlink, Name: "b/layer.tar", Linkname: "../a/layer.tar",
	}))
	ocitest.Must(t, tw.Close())
	a, err := Read(t.Context(), &out, t.TempDir(), 1<<20, oci.Limits{})
	ocitest.Must(t, err)
	defer a.Close()
	m, err := oci.FindManifest(t.Context(), a, oci.Platform{}, oci.Limits{})
	ocitest.Must(t, err)
	got, err := oci.PackageYAML(t.Context(), a, m, oci.Limits{})
	if err != nil || string(got) != ocitest.HelloYAML {
		t.Errorf("%q %v", got, err)
	}
}
