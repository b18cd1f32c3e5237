package image

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/tarfile"
)

// gzipLevel and the pinned version of the compressor determine the bytes of a layer from
// its content alone: the compressor is written in Go without assembly, so they do not
// depend on the processor, and it is not part of the Go distribution, so they do not
// depend on the compiler. A test compares a digest: a new version of the compressor can
// change the digest of every new package, which requires a deliberate decision. Level 6
// compresses 98 MiB of CRDs to 7 MiB in a third of a second; level 9 saves 5 percent and
// takes ten times as long.
const gzipLevel = 6

// File is a file of a new layer.
type File struct {
	// Path is relative to the root of the image, with slashes.
	Path string
	Data []byte
}

// builtLayer is a compressed layer in memory.
type builtLayer struct {
	desc   oci.Descriptor
	diffID oci.Digest
	data   []byte
}

// buildLayer returns a layer of files. The layer does not depend on the machine: the
// files are sorted and belong to user 0, their mode is 0644 and their time is the Unix
// epoch.
func buildLayer(files []File, mediaType oci.MediaType, annotation string) (builtLayer, error) {
	var packed bytes.Buffer
	diff := oci.NewDigester()
	zw, err := newGzip(&packed)
	if err != nil {
		return builtLayer{}, fmt.Errorf("cannot compress a layer: %w", err)
	}
	if err := errors.Join(writeTar(io.MultiWriter(zw, diff), files), zw.Close()); err != nil {
		return builtLayer{}, fmt.Errorf("cannot write a layer: %w", err)
	}
	desc := oci.Descriptor{MediaType: mediaType, Digest: oci.DigestOf(packed.Bytes()), Size: int64(packed.Len())}
	if annotation != "" {
		desc.Annotations = map[string]string{oci.AnnotationKey: annotation}
	}
	return builtLayer{desc: desc, diffID: diff.Digest(), data: packed.Bytes()}, nil
}

func writeTar(w io.Writer, files []File) error {
	tw := tar.NewWriter(w)
	sorted := slices.SortedFunc(slices.Values(files), func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	for _, f := range sorted {
		if err := tw.WriteHeader(tarfile.Header(f.Path, int64(len(f.Data)))); err != nil {
			return err
		}
		if _, err := tw.Write(f.Data); err != nil {
			return err
		}
	}
	return tw.Close()
}

// newGzip returns a writer with the compression settings of all layers.
func newGzip(w io.Writer) (*gzip.Writer, error) {
	zw, err := gzip.NewWriterLevel(w, gzipLevel)
	if err == nil {
		// The compressor would write the zero time as a date in the future.
		zw.ModTime = time.Unix(0, 0)
	}
	return zw, err
}

// GzipLayer returns the gzip form of a layer that is a plain tar. It reads the layer once
// to compute the digest; opening the result compresses it again, so the compressed bytes
// are never held in memory.
func GzipLayer(
	ctx context.Context, open func(context.Context) (io.ReadCloser, error), mediaType oci.MediaType,
) (Layer, error) {
	packed := func(ctx context.Context) (io.ReadCloser, error) {
		plain, err := open(ctx)
		if err != nil {
			return nil, err
		}
		return gzipReader(plain), nil
	}
	r, err := packed(ctx)
	if err != nil {
		return Layer{}, err
	}
	digest, size, err := oci.DigestReader(r)
	if err := errors.Join(err, r.Close()); err != nil {
		return Layer{}, err
	}
	return Layer{Descriptor: oci.Descriptor{MediaType: mediaType, Digest: digest, Size: size}, Open: packed}, nil
}

// gzipReader returns the compressed content of r. Its Close closes r.
func gzipReader(r io.ReadCloser) io.ReadCloser {
	pr, pw := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		zw, err := newGzip(pw)
		if err == nil {
			_, err = io.Copy(zw, r)
			err = errors.Join(err, zw.Close())
		}
		pw.CloseWithError(err)
	}()
	return &pipeCloser{PipeReader: pr, inner: r, done: done}
}

// pipeCloser stops the writing goroutine before it closes the source of that goroutine.
type pipeCloser struct {
	*io.PipeReader
	inner io.Closer
	done  chan struct{}
}

func (p *pipeCloser) Close() error {
	err := p.PipeReader.Close()
	<-p.done
	return errors.Join(err, p.inner.Close())
}
