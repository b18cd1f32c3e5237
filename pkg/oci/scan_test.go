package oci_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/xpkg-dev/xpkg/internal/testing/malformed"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/tarfile"
)

// Random bytes, and a valid layer truncated at every offset, fail without any other
// effect.
//
// hardening: C9
func TestTruncatedLayers(t *testing.T) {
	plain := ocitest.Tar(t, image.File{Path: oci.PackageFile, Data: []byte(ocitest.HelloYAML)})
	var zst bytes.Buffer
	zw, err := zstd.NewWriter(&zst)
	ocitest.Must(t, err)
	_, err = zw.Write(plain)
	ocitest.Must(t, errors.Join(err, zw.Close()))
	_, gz := ocitest.GzipLayer(t, image.File{Path: oci.PackageFile, Data: []byte(ocitest.HelloYAML)})
	for mediaType, data := range map[oci.MediaType][]byte{
		oci.MediaTypeOCILayerGzip: gz, oci.MediaTypeOCILayerZstd: zst.Bytes(),
	} {
		for n := range len(data) {
			_, _, err := oci.ScanBytes(mediaType, data[:n])
			if err == nil || !errcode.Known(err) {
				t.Fatalf("%s cut at %d: %v", mediaType, n, err)
			}
		}
	}
	// A plain tar has no required end marker, but never returns half a file.
	for n := range len(plain) {
		stream, found, err := oci.ScanBytes(oci.MediaTypeOCILayer, plain[:n])
		if err == nil && found && string(stream) != ocitest.HelloYAML {
			t.Fatalf("cut at %d: %q", n, stream)
		}
	}
}

// hardening: C1
func TestOutputLimit(t *testing.T) {
	tests := []struct{ size, want int64 }{
		{1, oci.FreeOutput}, {oci.FreeOutput / 200, oci.FreeOutput}, {1 << 20, 200 << 20}, {64 << 20, 1 << 30},
		{1 << 62, 1 << 30},
	}
	for _, tc := range tests {
		if got := oci.MaxOutput(tc.size); got != tc.want {
			t.Errorf("a layer of %d bytes may unpack to %d, want %d", tc.size, got, tc.want)
		}
	}
}

// A header with a false size makes the reader allocate no more than the unpacked size
// limit of the layer.
//
// hardening: C2
func TestAllocationIsBounded(t *testing.T) {
	const lie = oci.FreeOutput - 1
	var out bytes.Buffer
	tw := tar.NewWriter(&out)
	ocitest.Must(t, tw.WriteHeader(tarfile.Header(oci.PackageFile, lie)))
	before := ocitest.Allocated()
	_, _, err := oci.ScanBytes(oci.MediaTypeOCILayer, append(out.Bytes(), ocitest.HelloYAML...))
	ocitest.WantCode(t, err, oci.ErrBrokenLayer)
	if used := ocitest.Allocated() - before; used > oci.FreeOutput+1<<20 {
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
		for _, mediaType := range []oci.MediaType{
			oci.MediaTypeOCILayer, oci.MediaTypeOCILayerGzip, oci.MediaTypeOCILayerZstd,
		} {
			stream, found, err := oci.ScanBytes(mediaType, data)
			if err != nil && !errcode.Known(err) {
				t.Fatalf("%v", err)
			}
			if err == nil && found && int64(len(stream)) > oci.DefaultLimits().Package {
				t.Fatal("the stream is over the limit")
			}
		}
	})
}

func malformedCases(t testing.TB) []malformed.Case {
	t.Helper()
	cases, err := malformed.Load("../../testdata/malformed/image/cases.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return cases
}

// A tar whose first entry cannot be read is a broken tar, and not something else.
func TestDamagedFirstEntryIsABrokenLayer(t *testing.T) {
	pax := func(records string, size int64) []byte {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		// The writer does not write extended headers that are not valid.
		err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "PaxHeaders.0/package.yaml", Size: size, Mode: 0o644})
		if err != nil {
			t.Fatal(err)
		}
		data := b.Bytes()
		data[156] = 'x'
		copy(data[148:156], "        ")
		sum := 0
		for _, c := range data[:512] {
			sum += int(c)
		}
		copy(data[148:156], fmt.Sprintf("%06o\x00 ", sum))
		data = append(data, records...)
		return append(data, make([]byte, 512-len(data)%512)...)
	}
	whole := ocitest.Tar(t, image.File{Path: "package.yaml", Data: []byte("a: b\n")})
	for name, c := range map[string]struct {
		data []byte
		code errcode.Code
	}{
		"extended header too large":      {append(pax("", 2<<20), make([]byte, 3<<20)...), oci.ErrArchiveLimit},
		"malformed extended header":      {append(pax("99 path=x\n", 10), whole...), oci.ErrBrokenLayer},
		"ends within the first header":   {whole[:512], oci.ErrBrokenLayer},
		"ends within an extended header": {pax("", 1<<10)[:600], oci.ErrBrokenLayer},
		"not a tar":                      {ocitest.Noise(4096), oci.ErrNotATar},
		"shorter than a header":          {whole[:100], oci.ErrNotATar},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := oci.ScanBytes(oci.MediaTypeOCILayer, c.data)
			ocitest.WantCode(t, err, c.code)
		})
	}
}
