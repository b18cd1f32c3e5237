//go:build linux

package attack_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	gcr "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/xpkg-dev/xpkg/internal/testing/port"
)

// baseAnnotation marks the layer with package.yaml.
const baseAnnotation = "io.crossplane.xpkg"

// pack returns a tar archive of entries.
func pack(t *testing.T, entries ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range entries {
		content := []byte(e.PAXRecords["content"])
		e.PAXRecords = nil
		if e.Mode == 0 {
			e.Mode = 0o644
		}
		if e.Typeflag == 0 {
			e.Typeflag, e.Size = tar.TypeReg, int64(len(content))
		}
		if err := w.WriteHeader(&e); err != nil {
			t.Fatal(err)
		}
		if e.Typeflag == tar.TypeReg {
			if _, err := w.Write(content); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// file returns a regular file of an archive.
func file(name, content string, mode int64) tar.Header {
	return tar.Header{Name: name, Mode: mode, PAXRecords: map[string]string{"content": content}}
}

func layerOf(t *testing.T, archive []byte) gcr.Layer {
	t.Helper()
	layer, err := tarball.LayerFromOpener(func() (
		io.ReadCloser, error,
	) {
		return io.NopCloser(bytes.NewReader(archive)), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return layer
}

// imageOf returns an image that runs /program, with the stream as its marked base layer.
func imageOf(t *testing.T, base gcr.Layer, others ...gcr.Layer) gcr.Image {
	t.Helper()
	adds := []mutate.Addendum{{Layer: base, Annotations: map[string]string{baseAnnotation: "base"}}}
	for _, l := range others {
		adds = append(adds, mutate.Addendum{Layer: l})
	}
	img, err := mutate.Append(empty.Image, adds...)
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config.OS, config.Architecture = "linux", runtime.GOARCH
	config.Config = gcr.Config{Entrypoint: []string{"/program"}, Cmd: []string{"serve"}}
	if img, err = mutate.ConfigFile(img, config); err != nil {
		t.Fatal(err)
	}
	return img
}

func streamLayer(t *testing.T, stream string) gcr.Layer {
	t.Helper()
	return layerOf(t, pack(t, file("package.yaml", stream, 0o644)))
}

// bombLayer returns a layer of one gigabyte of spaces before a package, in a megabyte.
func bombLayer(t *testing.T) gcr.Layer {
	t.Helper()
	var out bytes.Buffer
	zip, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(zip)
	const size = 1 << 30
	if err := w.WriteHeader(&tar.Header{
		Name: "package.yaml", Mode: 0o644, Size: size, Typeflag: tar.TypeReg,
	}); err != nil {
		t.Fatal(err)
	}
	block := bytes.Repeat([]byte("# \n "), 1<<18)
	for written := 0; written < size; written += len(block) {
		if _, err := w.Write(block); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return static.NewLayer(out.Bytes(), types.DockerLayer)
}

func pushImage(t *testing.T, registry, repository string, img gcr.Image) string {
	t.Helper()
	ref, err := name.ParseReference(registry+"/"+repository+":v1", name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, img); err != nil {
		t.Fatal(err)
	}
	return ref.String()
}

// lyingRegistry forwards to a registry, and changes a byte of every blob.
func lyingRegistry(t *testing.T, registry string) string {
	t.Helper()
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: registry})
	proxy.ModifyResponse = func(r *http.Response) error {
		if r.Request.Method != http.MethodGet || !strings.Contains(r.Request.URL.Path, "/blobs/") ||
			r.StatusCode != http.StatusOK {
			return nil
		}
		content, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		content[len(content)/2] ^= 1
		r.Body = io.NopCloser(bytes.NewReader(content))
		return nil
	}
	server := port.Serve(t, proxy)
	return strings.TrimPrefix(server.URL, "http://")
}
