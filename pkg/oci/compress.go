package oci

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/text"
)

// ErrBrokenLayer is the code for a layer with the published bytes that cannot be read.
// The publisher caused the error, not the network.
var ErrBrokenLayer = errcode.Code{
	Name: "BrokenLayer", Class: errcode.Invalid,
	Cause: "A layer has the right digest, but it is truncated, damaged, or followed by other data: it was published that way.",
	Fix:   "Build and publish the package again.",
}

// ErrCompressionMismatch is the code for a layer whose compression differs from its
// media type.
var ErrCompressionMismatch = errcode.Code{
	Name: "CompressionMismatch", Class: errcode.Invalid,
	Cause: "The compression of a layer differs from its media type.",
	Fix:   "Build and publish the package again, with a media type that matches the layer.",
}

// ErrNotATar is the code for a layer that is not a tar.
var ErrNotATar = errcode.Code{
	Name: "NotATar", Class: errcode.Invalid,
	Cause: "A layer of a package does not unpack to a tar.",
	Fix:   "Build and publish the package again; the layer must be a tar, compressed at most once.",
}

// maxZstdWindow bounds the memory of a zstd decoder. Encoders need more only with long
// distance matching.
const maxZstdWindow = 64 << 20

// freeOutput is the unpacked size up to which the ratio is not checked.
const freeOutput = 8 << 20

var (
	gzipMagic = []byte{0x1f, 0x8b}
	zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
	// zstdSkipMagic is the start of a skippable frame, with which a zstd stream can
	// begin: 0x184D2A5? in little endian.
	zstdSkipMagic = []byte{0x2a, 0x4d, 0x18}
)

// DetectCompression returns the compression of content by its first four bytes.
func DetectCompression(start []byte) Compression {
	switch {
	case bytes.HasPrefix(start, gzipMagic):
		return Gzip
	case bytes.HasPrefix(start, zstdMagic):
		return Zstd
	case len(start) >= 4 && start[0]&0xf0 == 0x50 && bytes.Equal(start[1:4], zstdSkipMagic):
		return Zstd
	}
	return Uncompressed
}

// OpenLayer returns a reader of the tar in a verified layer. It fails with
// ErrCompressionMismatch if the compression differs from the media type. Reading fails
// with ErrDecompressionLimit if the tar has more bytes than the limits allow, and with
// ErrBrokenLayer if the bytes cannot be decompressed.
func OpenLayer(r io.Reader, layer Descriptor, limits Limits) (io.ReadCloser, error) {
	want, ok := LayerCompression(layer.MediaType)
	if !ok {
		return nil, ErrNotAPackage.New(
			nil, "layer %s is of type %q, which is not a tar", layer.Digest.Short(), text.Clip(string(layer.MediaType)),
		)
	}
	buffered := bufio.NewReaderSize(r, 64<<10)
	start, err := buffered.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if got := DetectCompression(start); got != want {
		return nil, ErrCompressionMismatch.New(
			nil, "layer %s is %s, but its media type %s is for %s", layer.Digest.Short(), got, layer.MediaType, want,
		)
	}
	plain, err := decompress(buffered, want)
	if err != nil {
		return nil, brokenLayer(err, layer)
	}
	return &cappedReader{ReadCloser: plain, layer: layer, most: newOutputLimit(layer, limits)}, nil
}

func decompress(r io.Reader, c Compression) (io.ReadCloser, error) {
	switch c {
	case Gzip:
		return gzip.NewReader(r)
	case Zstd:
		// One goroutine: the input is already available, and a decoder that reads ahead
		// would outlive a reader that stops early.
		d, err := zstd.NewReader(
			r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxZstdWindow), zstd.WithDecoderLowmem(true),
		)
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	default:
		return io.NopCloser(r), nil
	}
}

// outputLimit is the maximum unpacked size of a layer in bytes, and the flag that raises
// it.
type outputLimit struct {
	bytes int64
	flag  string
}

func newOutputLimit(layer Descriptor, limits Limits) outputLimit {
	byRatio := int64(freeOutput)
	switch {
	case layer.Size > limits.Unpacked/limits.Ratio:
		byRatio = limits.Unpacked
	case layer.Size > freeOutput/limits.Ratio:
		byRatio = layer.Size * limits.Ratio
	}
	if byRatio >= limits.Unpacked {
		return outputLimit{limits.Unpacked, "--max-unpacked-size"}
	}
	return outputLimit{byRatio, "--max-compression-ratio"}
}

// cappedReader returns an error, and not EOF, at the limit.
type cappedReader struct {
	io.ReadCloser
	layer Descriptor
	most  outputLimit
	read  int64
}

func (c *cappedReader) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.read += int64(n)
	if c.read > c.most.bytes {
		return 0, ErrDecompressionLimit.New(
			nil, "layer %s of %d bytes unpacks to more than %d bytes (%s)", c.layer.Digest.Short(), c.layer.Size, c.most.bytes,
			c.most.flag,
		)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return n, brokenLayer(err, c.layer)
	}
	return n, err
}

// brokenLayer classifies the error of a decompressor.
func brokenLayer(err error, layer Descriptor) error {
	if errcode.Known(err) {
		return err
	}
	if errors.Is(err, zstd.ErrWindowSizeExceeded) || errors.Is(err, zstd.ErrDecoderSizeExceeded) {
		return ErrDecompressionLimit.New(
			err, "layer %s requires more than %d bytes of memory to unpack", layer.Digest.Short(), maxZstdWindow,
		)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = fmt.Errorf("it is truncated")
	}
	return ErrBrokenLayer.New(err, "layer %s cannot be unpacked", layer.Digest.Short())
}
