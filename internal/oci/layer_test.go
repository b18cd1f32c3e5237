package oci

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"
)

// tarOf writes a tar of files with the standard library.
func tarOf(t testing.TB, files ...LayerFile) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := writeTar(&out, files); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Layers in random order, with replacements and removals, read as a foreign
// library flattens them.
func TestFlattenAgreesWithForeignReader(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		img := &Image{manifest: Document{SchemaVersion: 2, MediaType: MediaTypeOCIManifest, Config: &Descriptor{MediaType: MediaTypeOCIConfig}}}
		foreign := empty.Image
		for n := range rapid.IntRange(1, 5).Draw(r, "layers") {
			var files []LayerFile
			switch rapid.SampledFrom([]string{"none", "file", "whiteout", "elsewhere"}).Draw(r, "kind") {
			case "file":
				files = []LayerFile{{Path: rapid.SampledFrom([]string{"package.yaml", "./package.yaml"}).Draw(r, "name"), Data: fmt.Appendf(nil, "layer %d", n)}}
			case "whiteout":
				files = []LayerFile{{Path: ".wh.package.yaml"}}
			case "elsewhere":
				files = []LayerFile{{Path: "a/package.yaml", Data: []byte("no")}, {Path: "a/.wh.package.yaml"}}
			}
			data := tarOf(t, files...)
			d := Descriptor{MediaType: MediaTypeOCILayer, Digest: DigestOf(data), Size: int64(len(data))}
			img.manifest.Layers = append(img.manifest.Layers, d)
			img.add(d.Digest, bytesSource(data))
			next, err := mutate.AppendLayers(foreign, static.NewLayer(data, MediaTypeOCILayer))
			if err != nil {
				r.Fatal(err)
			}
			foreign = next
		}
		config, _ := newConfig(DefaultPlatform())
		if err := img.seal(config); err != nil {
			r.Fatal(err)
		}
		m, err := img.Manifest()
		if err != nil {
			r.Fatal(err)
		}
		got, err := ReadPackageYAML(t.Context(), img, m, Limits{})
		want, found := extract(r, mutate.Extract(foreign))
		if found != (err == nil) || (found && string(got) != want) {
			r.Fatalf("got %q %v, the foreign reader %q %t", got, err, want, found)
		}
		if err != nil && !ErrNoPackageYAML.Is(err) {
			r.Fatal(err)
		}
	})
}

func extract(t *rapid.T, r io.ReadCloser) (string, bool) {
	defer r.Close()
	tr := tar.NewReader(r)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return "", false
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Name == streamName {
			data, err := io.ReadAll(tr)
			if err != nil {
				t.Fatal(err)
			}
			return string(data), true
		}
	}
}

// Random bytes, and a good layer cut off at every offset, end in a failure and
// nothing else.
func TestTruncatedLayers(t *testing.T) {
	plain := tarOf(t, LayerFile{Path: streamName, Data: []byte(helloYAML)})
	var zst bytes.Buffer
	zw, err := zstd.NewWriter(&zst)
	must(t, err)
	_, err = zw.Write(plain)
	must(t, errors.Join(err, zw.Close()))
	layer, err := buildLayer([]LayerFile{{Path: streamName, Data: []byte(helloYAML)}}, MediaTypeOCILayerGzip, "")
	must(t, err)
	for mediaType, data := range map[MediaType][]byte{MediaTypeOCILayerGzip: layer.data, MediaTypeOCILayerZstd: zst.Bytes()} {
		for n := range len(data) {
			_, err := scanBytes(mediaType, data[:n])
			if err == nil || !failureOf(err) {
				t.Fatalf("%s cut at %d: %v", mediaType, n, err)
			}
		}
	}
	// A plain tar has no end that could be missed, but never gives half a file.
	for n := range len(plain) {
		scan, err := scanBytes(MediaTypeOCILayer, plain[:n])
		if err == nil && scan.found && string(scan.stream) != helloYAML {
			t.Fatalf("cut at %d: %q", n, scan.stream)
		}
	}
}

func scanBytes(mediaType MediaType, data []byte) (layerScan, error) {
	limits := DefaultLimits()
	d := Descriptor{MediaType: mediaType, Digest: DigestOf(data), Size: int64(len(data))}
	r, err := unpackLayer(bytes.NewReader(data), d, limits)
	if err != nil {
		return layerScan{}, err
	}
	defer r.Close()
	return scanLayer(r, newOutputLimit(d, limits), limits, nil)
}

func TestOutputLimit(t *testing.T) {
	limits := DefaultLimits()
	tests := []struct{ size, want int64 }{
		{1, freeOutput}, {freeOutput / 200, freeOutput}, {1 << 20, 200 << 20}, {64 << 20, 1 << 30}, {1 << 62, 1 << 30},
	}
	for _, tc := range tests {
		if got := newOutputLimit(Descriptor{Size: tc.size}, limits); got.bytes != tc.want {
			t.Errorf("a layer of %d bytes may unpack to %d, want %d", tc.size, got.bytes, tc.want)
		}
	}
}

// A header that lies about its size makes the reader allocate no more than a
// layer of that length may unpack to.
func TestC02AllocationIsBounded(t *testing.T) {
	const lie = freeOutput - 1
	var out bytes.Buffer
	tw := tar.NewWriter(&out)
	must(t, tw.WriteHeader(tarHeader(streamName, lie)))
	before := allocated()
	_, err := scanBytes(MediaTypeOCILayer, append(out.Bytes(), helloYAML...))
	wantCode(t, err, ErrBrokenLayer)
	if used := allocated() - before; used > freeOutput+1<<20 {
		t.Errorf("%d bytes were allocated", used)
	}
}

func FuzzScanLayer(f *testing.F) {
	for _, c := range malformedCases(f) {
		if c.Image == nil {
			continue
		}
		for _, l := range c.Image.Layers {
			if l.MediaType == "" && len(l.Tar) < 3 {
				l.Compress = []string{}
			}
			data, err := l.Pack()
			if err == nil && len(data) < 1<<14 {
				f.Add(data)
			}
		}
	}
	f.Add([]byte(strings.Repeat("\x00", 1024)))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, mediaType := range []MediaType{MediaTypeOCILayer, MediaTypeOCILayerGzip, MediaTypeOCILayerZstd} {
			scan, err := scanBytes(mediaType, data)
			if err != nil && !failureOf(err) {
				t.Fatalf("%v", err)
			}
			if err == nil && scan.found && int64(len(scan.stream)) > DefaultLimits().Package {
				t.Fatal("the stream is over the limit")
			}
		}
	})
}

func FuzzArchive(f *testing.F) {
	for _, c := range malformedCases(f) {
		var out bytes.Buffer
		if err := c.Write(&out); err == nil && out.Len() < 1<<14 {
			f.Add(out.Bytes())
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := ReadArchive(t.Context(), bytes.NewReader(data), t.TempDir(), 1<<20, Limits{})
		if err != nil {
			if !failureOf(err) {
				t.Fatalf("%v", err)
			}
			return
		}
		defer a.Close()
		m, err := FindManifest(t.Context(), a, Platform{}, Limits{})
		if err == nil {
			_, err = ReadPackageYAML(t.Context(), a, m, Limits{})
		}
		if err != nil && !failureOf(err) {
			t.Fatalf("%v", err)
		}
	})
}
