package oci

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/crane"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// upstreamImage is a package as Crossplane's own tool builds it: annotations are
// in labels of the configuration, to be put on the layers by whoever pushes.
func upstreamImage(t *testing.T) v1.Image {
	t.Helper()
	data := tarOf(t, LayerFile{Path: streamName, Data: []byte(helloYAML)})
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil })
	must(t, err)
	img, err := mutate.AppendLayers(foreignRuntime(t), layer)
	must(t, err)
	digest, err := layer.Digest()
	must(t, err)
	config, err := img.ConfigFile()
	must(t, err)
	config = config.DeepCopy()
	config.Config.Labels = map[string]string{AnnotationKey + ":" + digest.String(): AnnotationBase}
	img, err = mutate.ConfigFile(img, config)
	must(t, err)
	return img
}

// foreignRuntime is the image of a program, with plain layers as `docker save`
// writes them.
func foreignRuntime(t *testing.T) v1.Image {
	t.Helper()
	bin := static.NewLayer(tarOf(t, LayerFile{Path: "bin/provider", Data: noise(20_000)}), MediaTypeDockerLayer)
	img, err := mutate.AppendLayers(empty.Image, bin)
	must(t, err)
	config, err := img.ConfigFile()
	must(t, err)
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", "arm64"
	config.Config.Entrypoint, config.Config.User = []string{"/bin/provider"}, "65532"
	img, err = mutate.ConfigFile(img, config)
	must(t, err)
	return img
}

func saveForeign(t *testing.T, img v1.Image) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "image.tar")
	must(t, tarball.WriteToFile(path, name.MustParseReference("acme/image:v1"), img))
	return path
}

func openArchive(t *testing.T, path string) *Archive {
	t.Helper()
	a, err := OpenArchive(t.Context(), path, Limits{})
	must(t, err)
	t.Cleanup(func() { _ = a.Close() })
	return a
}

func TestReadUpstreamArchive(t *testing.T) {
	a := openArchive(t, saveForeign(t, upstreamImage(t)))
	m, err := FindManifest(t.Context(), a, Platform{}, Limits{})
	must(t, err)
	if m.Base == nil {
		t.Fatal("the label did not become an annotation")
	}
	got, err := ReadPackageYAML(t.Context(), a, m, Limits{})
	if err != nil || string(got) != helloYAML {
		t.Errorf("%q %v", got, err)
	}
	ref := MustParseReference(memoryRegistry(t) + "/acme/pkg:v1")
	r := testRemote(t, nil)
	digest, err := r.Push(t.Context(), ref, a)
	must(t, err)
	got, m, err = fetchYAML(t.Context(), r, newStore(t), ref)
	if err != nil || string(got) != helloYAML || m.Base == nil || m.Digest != digest {
		t.Errorf("%q %v", got, err)
	}
}

// A package that lost its annotations on the way is read from the filesystem, and
// of its layers only the upper ones are fetched.
func TestReadImageWithoutAnnotations(t *testing.T) {
	f := newFakeRegistry(t)
	ref := MustParseReference(f.host() + "/acme/pkg:v1")
	host := memoryRegistry(t)
	other := MustParseReference(host + "/acme/pkg:v1")
	target, err := name.ParseReference(other.String())
	must(t, err)
	must(t, remote.Write(target, upstreamImage(t)))
	r := testRemote(t, nil)
	a, err := r.Artifact(t.Context(), other)
	must(t, err)
	f.publish(t, a, "v1")

	got, m, err := fetchYAML(t.Context(), r, newStore(t), ref)
	if err != nil || string(got) != helloYAML || m.Base != nil {
		t.Fatalf("%q %v %v", got, m.Base, err)
	}
	if n := f.count("/blobs/"); n != 1 {
		t.Errorf("%d blobs were fetched", n)
	}
}

func TestEmbedRuntimeImage(t *testing.T) {
	runtime := foreignRuntime(t)
	gzipped, err := mutate.AppendLayers(empty.Image, func() v1.Layer {
		l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(tarOf(t, LayerFile{Path: "bin/provider", Data: noise(20_000)}))), nil
		})
		must(t, err)
		return l
	}())
	must(t, err)
	for title, img := range map[string]v1.Image{"Plain": runtime, "Gzip": gzipped} {
		t.Run(title, func(t *testing.T) {
			a := openArchive(t, saveForeign(t, img))
			base, err := LoadImage(t.Context(), a, Platform{}, Limits{})
			must(t, err)
			built, err := BuildImage(t.Context(), ImageInput{PackageYAML: []byte(helloYAML), Base: base})
			must(t, err)
			again, err := BuildImage(t.Context(), ImageInput{PackageYAML: []byte(helloYAML), Base: base})
			must(t, err)
			if built.Digest() != again.Digest() {
				t.Error("two builds differ")
			}
			ref := MustParseReference(memoryRegistry(t) + "/acme/pkg:v1")
			_, err = testRemote(t, nil).Push(t.Context(), ref, built)
			must(t, err)
			pulled := pullForeign(t, ref)
			config, err := pulled.ConfigFile()
			must(t, err)
			if title == "Plain" && (config.Architecture != "arm64" || config.Config.User != "65532" || config.Config.Entrypoint[0] != "/bin/provider") {
				t.Errorf("%+v", config)
			}
			manifest, err := pulled.Manifest()
			must(t, err)
			if len(manifest.Layers) != 2 || manifest.Layers[1].Annotations[AnnotationKey] != AnnotationBase {
				t.Errorf("%+v", manifest.Layers)
			}
			for _, l := range manifest.Layers {
				if l.MediaType != MediaTypeDockerLayerGzip {
					t.Errorf("layer of type %s", l.MediaType)
				}
			}
		})
	}
}

// pullForeign reads and validates an image with go-containerregistry alone.
func pullForeign(t *testing.T, ref Reference) v1.Image {
	t.Helper()
	foreign, err := name.ParseReference(ref.String())
	must(t, err)
	img, err := remote.Image(foreign, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: "amd64"}))
	must(t, err)
	must(t, validate.Image(img))
	return img
}

func TestEmbedForAnotherPlatform(t *testing.T) {
	base, err := LoadImage(t.Context(), openArchive(t, saveForeign(t, foreignRuntime(t))), Platform{}, Limits{})
	must(t, err)
	_, err = BuildImage(t.Context(), ImageInput{PackageYAML: []byte(helloYAML), Base: base, Platform: DefaultPlatform()})
	wantCode(t, err, ErrInvalidImageInput)
}

// An archive of Docker 25 and later is a layout too, with plain layers.
func TestEmbedFromLayoutWithPlainLayers(t *testing.T) {
	dir := t.TempDir()
	plain := mutate.MediaType(mutate.ConfigMediaType(foreignRuntime(t), MediaTypeOCIConfig), MediaTypeOCIManifest)
	path, err := layout.Write(dir, empty.Index)
	must(t, err)
	must(t, path.AppendImage(plain))
	base, err := LoadImage(t.Context(), openArchive(t, dir), Platform{}, Limits{})
	must(t, err)
	img, err := BuildImage(t.Context(), ImageInput{PackageYAML: []byte(helloYAML), Base: base})
	must(t, err)
	m, err := img.Manifest()
	must(t, err)
	got, err := ReadPackageYAML(t.Context(), img, m, Limits{})
	if err != nil || string(got) != helloYAML {
		t.Errorf("%q %v", got, err)
	}
}

// twoPlatforms is an index of a package for two platforms with extensions.
func twoPlatforms(t *testing.T) *Index {
	t.Helper()
	var images []*Image
	for _, arch := range []string{"amd64", "arm64"} {
		img, err := BuildImage(t.Context(), ImageInput{PackageYAML: []byte(helloYAML + "# " + arch + "\n"), Platform: Platform{OS: "linux", Architecture: arch}})
		must(t, err)
		images = append(images, img)
	}
	index, err := NewIndex(images...)
	must(t, err)
	extensions, err := BuildExtensions([]ExtraLayer{{Annotation: "docs", Files: []LayerFile{{Path: "readme.md", Data: []byte("# docs")}}}})
	must(t, err)
	index, err = Append(t.Context(), index, extensions, Limits{})
	must(t, err)
	return index
}

func TestAppendExtensions(t *testing.T) {
	index := twoPlatforms(t)
	f := newFakeRegistry(t)
	ref := f.publish(t, index, "v1")
	got, m, err := fetchYAML(t.Context(), testRemote(t, nil), newStore(t), ref)
	if err != nil || !strings.HasSuffix(string(got), "# amd64\n") {
		t.Fatalf("%q %v", got, err)
	}
	if m.Root != index.Digest() || m.Digest == m.Root || m.Platform.String() != "linux/amd64" {
		t.Errorf("%+v", m)
	}
	last := index.document.Manifests[len(index.document.Manifests)-1]
	if !last.isExtensions() || f.count(last.Digest.String()) != 0 {
		t.Error("the extensions are not last, or were fetched")
	}

	// Appending again replaces them; appending to an image makes an index of it.
	other, err := BuildExtensions([]ExtraLayer{{Annotation: "docs", Files: []LayerFile{{Path: "other.md"}}}})
	must(t, err)
	again, err := Append(t.Context(), index, other, Limits{})
	must(t, err)
	if len(again.document.Manifests) != 3 || again.document.Manifests[2].Digest != other.Digest() {
		t.Errorf("%+v", again.document.Manifests)
	}
	single, err := Append(t.Context(), buildHello(t), other, Limits{})
	must(t, err)
	fm, err := FindManifest(t.Context(), single, Platform{}, Limits{})
	if err != nil || fm.Digest != buildHello(t).Digest() {
		t.Errorf("%s %v", fm.Digest, err)
	}
	pushed := MustParseReference(memoryRegistry(t) + "/acme/pkg:v1")
	_, err = testRemote(t, nil).Push(t.Context(), pushed, again)
	must(t, err)
	pullForeign(t, pushed)
}

// A package that goes from place to place keeps its bytes.
func TestCopyChain(t *testing.T) {
	for title, start := range map[string]Artifact{"Image": buildHello(t), "Index": twoPlatforms(t)} {
		t.Run(title, func(t *testing.T) {
			r := testRemote(t, nil)
			first := MustParseReference(memoryRegistry(t) + "/acme/pkg:v1")
			second := MustParseReference(memoryRegistry(t) + "/other/pkg:v2")
			dir, file := filepath.Join(t.TempDir(), "layout"), filepath.Join(t.TempDir(), "pkg.xpkg")
			want := start.Root().Digest

			copyTo(t, r.To(first), start, want)
			fromFirst, err := r.Artifact(t.Context(), first)
			must(t, err)
			copyTo(t, ToArchive(file, ArchiveOptions{}, Limits{}), fromFirst, want)
			copyTo(t, ToLayout(dir, "v1", Limits{}), openArchive(t, file), want)
			stdin, err := os.Open(file)
			must(t, err)
			defer stdin.Close()
			streamed, err := ReadArchive(t.Context(), stdin, t.TempDir(), 1<<20, Limits{})
			must(t, err)
			defer streamed.Close()
			copyTo(t, r.To(second), openArchive(t, dir), want)
			got, _, err := fetchYAML(t.Context(), r, newStore(t), second)
			if err != nil || !strings.HasPrefix(string(got), helloYAML) || streamed.Digest() != want {
				t.Errorf("%q %v", got, err)
			}
			_, err = Copy(t.Context(), ToLayout(dir, "v1", Limits{}), start)
			wantCode(t, err, ErrLayoutExists)
		})
	}
}

func copyTo(t *testing.T, to Destination, from Artifact, want Digest) {
	t.Helper()
	got, err := Copy(t.Context(), to, from)
	if err != nil || got != want {
		t.Fatalf("%s %v", got, err)
	}
}

// Another tool that copies a layout of ours keeps annotations and digest.
func TestForeignToolCopiesOurLayout(t *testing.T) {
	img := buildHello(t)
	dir := filepath.Join(t.TempDir(), "layout")
	copyTo(t, ToLayout(dir, "v1", Limits{}), img, img.Digest())
	index, err := layout.ImageIndexFromPath(dir)
	must(t, err)
	must(t, validate.Index(index))
	children, err := index.IndexManifest()
	must(t, err)
	foreign, err := index.Image(children.Manifests[0].Digest)
	must(t, err)
	first, second := memoryRegistry(t)+"/acme/pkg:v1", memoryRegistry(t)+"/acme/copy:v1"
	must(t, crane.Push(foreign, first))
	must(t, crane.Copy(first, second))
	got, m, err := fetchYAML(t.Context(), testRemote(t, nil), newStore(t), MustParseReference(second))
	if err != nil || string(got) != helloYAML || m.Base == nil || m.Digest != img.Digest() {
		t.Errorf("%q %+v %v", got, m, err)
	}
}

func TestReadArchiveLimit(t *testing.T) {
	_, err := ReadArchive(t.Context(), bytes.NewReader(make([]byte, 2048)), t.TempDir(), 1024, Limits{})
	wantCode(t, err, ErrLayerTooLarge)
}

func TestOpenArchiveThatIsNotThere(t *testing.T) {
	_, err := OpenArchive(t.Context(), filepath.Join(t.TempDir(), "no.xpkg"), Limits{})
	wantCode(t, err, ErrArchiveNotFound)
}

// A link in a layout must not lead out of it.
func TestLayoutLinkLeadsOut(t *testing.T) {
	img := buildHello(t)
	dir := filepath.Join(t.TempDir(), "layout")
	copyTo(t, ToLayout(dir, "", Limits{}), img, img.Digest())
	blob := filepath.Join(dir, filepath.FromSlash(blobName(img.Digest())))
	outside := filepath.Join(t.TempDir(), "manifest")
	must(t, os.Rename(blob, outside))
	must(t, os.Symlink(outside, blob))
	a := openArchive(t, dir)
	if _, err := FindManifest(t.Context(), a, Platform{}, Limits{}); err == nil {
		t.Error("the link was followed")
	}
}

// Older archives of Docker store a layer that occurs twice as a link.
func TestDockerArchiveWithLink(t *testing.T) {
	var out bytes.Buffer
	tw := tar.NewWriter(&out)
	layer := tarOf(t, LayerFile{Path: streamName, Data: []byte(helloYAML)})
	for _, f := range []LayerFile{
		{Path: "manifest.json", Data: []byte(`[{"Config":"c.json","Layers":["a/layer.tar","b/layer.tar"]}]`)},
		{Path: "c.json", Data: []byte(`{"os":"linux","architecture":"amd64"}`)}, {Path: "a/layer.tar", Data: layer},
	} {
		must(t, writeEntry(tw, f.Path, int64(len(f.Data)), bytes.NewReader(f.Data)))
	}
	must(t, tw.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: "b/layer.tar", Linkname: "../a/layer.tar"}))
	must(t, tw.Close())
	a, err := ReadArchive(t.Context(), &out, t.TempDir(), 1<<20, Limits{})
	must(t, err)
	defer a.Close()
	m, err := FindManifest(t.Context(), a, Platform{}, Limits{})
	must(t, err)
	got, err := ReadPackageYAML(t.Context(), a, m, Limits{})
	if err != nil || string(got) != helloYAML {
		t.Errorf("%q %v", got, err)
	}
}

// debianRegistry starts the registry that Debian ships.
func debianRegistry(t *testing.T) string {
	t.Helper()
	binary, err := exec.LookPath("docker-registry")
	if err != nil {
		t.Skip("docker-registry is not installed: apt-get install docker-registry")
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "config.yml")
	must(t, os.WriteFile(config, []byte("version: 0.1\nlog: {level: info}\nstorage: {filesystem: {rootdirectory: "+dir+"/data}}\nhttp: {addr: 127.0.0.1:0}\n"), 0o600))
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, binary, "serve", config)
	logs, err := cmd.StderrPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
	})
	return listenAddress(t, logs)
}

// listenAddress waits for the line that says where the registry listens.
func listenAddress(t *testing.T, logs io.Reader) string {
	t.Helper()
	found := make(chan string, 1)
	go func() {
		var seen bytes.Buffer
		buf := make([]byte, 4096)
		for {
			n, err := logs.Read(buf)
			seen.Write(buf[:n])
			if _, after, ok := strings.Cut(seen.String(), "listening on "); ok {
				if address, _, ok := strings.Cut(after, "\""); ok {
					found <- address
					_, _ = io.Copy(io.Discard, logs)
					return
				}
			}
			if err != nil {
				found <- ""
				return
			}
		}
	}()
	select {
	case address := <-found:
		if address == "" {
			t.Fatal("docker-registry ended without listening")
		}
		return address
	case <-time.After(20 * time.Second):
		t.Fatal("docker-registry does not listen")
	}
	return ""
}

func TestDebianRegistry(t *testing.T) {
	host := debianRegistry(t)
	r := testRemote(t, nil)
	for title, a := range map[string]Artifact{"image": buildHello(t), "index": twoPlatforms(t)} {
		ref := MustParseReference(host + "/acme/" + title + ":v1")
		digest, err := r.Push(t.Context(), ref, a)
		must(t, err)
		if digest != a.Root().Digest {
			t.Errorf("pushed %s as %s", a.Root().Digest, digest)
		}
		got, m, err := fetchYAML(t.Context(), r, newStore(t), ref)
		if err != nil || !strings.HasPrefix(string(got), helloYAML) || m.Root != digest || m.Base == nil {
			t.Errorf("%q %+v %v", got, m, err)
		}
		if _, err := r.Push(t.Context(), ref, a); err != nil {
			t.Errorf("push again: %v", err)
		}
	}
	tags, err := r.Tags(t.Context(), MustParseReference(host+"/acme/image:v1"))
	if err != nil || len(tags) != 1 {
		t.Errorf("%v %v", tags, err)
	}
	err = read(t, r, MustParseReference(host+"/acme/image:v2"))
	wantCode(t, err, ErrTagNotFound)
	err = read(t, r, MustParseReference(host+"/acme/nothing:v2"))
	wantCode(t, err, ErrTagNotFound)
	if !strings.Contains(err.Error(), "no such repository") {
		t.Errorf("%v", err)
	}
	must(t, r.Ping(t.Context(), host))
	wrong := buildHello(t)
	_, err = r.Push(t.Context(), MustParseReference(host+"/acme/image@"+digestOfNothing), wrong)
	wantCode(t, err, ErrInvalidReference)
}

// What is not what it says it is does not reach a registry.
func TestPushVerifies(t *testing.T) {
	img := buildHello(t)
	layer := img.manifest.Layers[0]
	damaged := &content{root: img.root, parts: []Artifact{img}}
	damaged.add(layer.Digest, func(ctx context.Context) (io.ReadCloser, error) {
		r, err := img.Open(ctx, layer)
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(r)
		data[len(data)/2] ^= 1
		return io.NopCloser(bytes.NewReader(data)), errors.Join(err, r.Close())
	})
	host := memoryRegistry(t)
	r := testRemote(t, nil)
	ref := MustParseReference(host + "/acme/pkg:v1")
	_, err := r.Push(t.Context(), ref, damaged)
	wantCode(t, err, ErrDigestMismatch)
	_, err = r.Resolve(t.Context(), ref)
	wantCode(t, err, ErrTagNotFound)
}
