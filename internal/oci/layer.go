package oci

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
)

// gzipLevel and the pinned version of the compressor make the bytes of a layer a
// function of its content alone: the compressor is written in Go without
// assembly, so the processor does not matter, and it is not that of the Go
// distribution, so neither does the compiler that built xpkg. A test holds a
// digest against it; a new version that changes it changes every package's
// digest and is a decision to make knowingly. Level 6 packs 98 MiB of CRDs into
// 7 MiB in a third of a second; level 9 saves 5 percent for ten times that.
const gzipLevel = 6

// LayerFile is a file of a layer that is built here.
type LayerFile struct {
	// Path is relative to the root of the image, with slashes.
	Path string
	Data []byte
}

// builtLayer is a compressed layer in memory.
type builtLayer struct {
	desc   Descriptor
	diffID Digest
	data   []byte
}

// buildLayer packs files. Nothing of the machine gets in: the files are sorted
// and belong to user 0, their mode is 0644 and their time is the epoch.
func buildLayer(files []LayerFile, mediaType MediaType, annotation string) (builtLayer, error) {
	var packed bytes.Buffer
	diff := newDigester()
	zw, err := newGzip(&packed)
	if err != nil {
		return builtLayer{}, fmt.Errorf("cannot compress a layer: %w", err)
	}
	if err := errors.Join(writeTar(io.MultiWriter(zw, diff), files), zw.Close()); err != nil {
		return builtLayer{}, fmt.Errorf("cannot write a layer: %w", err)
	}
	desc := Descriptor{MediaType: mediaType, Digest: DigestOf(packed.Bytes()), Size: int64(packed.Len())}
	if annotation != "" {
		desc.Annotations = map[string]string{AnnotationKey: annotation}
	}
	return builtLayer{desc: desc, diffID: diff.digest(), data: packed.Bytes()}, nil
}

func writeTar(w io.Writer, files []LayerFile) error {
	tw := tar.NewWriter(w)
	sorted := slices.SortedFunc(slices.Values(files), func(a, b LayerFile) int { return cmp.Compare(a.Path, b.Path) })
	for _, f := range sorted {
		if err := tw.WriteHeader(tarHeader(f.Path, int64(len(f.Data)))); err != nil {
			return err
		}
		if _, err := tw.Write(f.Data); err != nil {
			return err
		}
	}
	return tw.Close()
}

// tarHeader is the header of every file that is written here.
func tarHeader(name string, size int64) *tar.Header {
	return &tar.Header{
		Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644,
		ModTime: time.Unix(0, 0),
	}
}

// newGzip compresses in the one way that layers are compressed here.
func newGzip(w io.Writer) (*gzip.Writer, error) {
	zw, err := gzip.NewWriterLevel(w, gzipLevel)
	if err == nil {
		// The compressor would write the zero time as a year to come.
		zw.ModTime = time.Unix(0, 0)
	}
	return zw, err
}

// recompress gives the gzip form of a layer that is a plain tar. The bytes are
// made anew each time they are read, so they never have to be kept.
func recompress(ctx context.Context, open source, mediaType MediaType) (Descriptor, source, error) {
	packed := func(ctx context.Context) (io.ReadCloser, error) {
		plain, err := open(ctx)
		if err != nil {
			return nil, err
		}
		return gzipReader(plain), nil
	}
	r, err := packed(ctx)
	if err != nil {
		return Descriptor{}, nil, err
	}
	digest, size, err := DigestReader(r)
	if err := errors.Join(err, r.Close()); err != nil {
		return Descriptor{}, nil, err
	}
	return Descriptor{MediaType: mediaType, Digest: digest, Size: size}, packed, nil
}

// gzipReader compresses what it reads from r, which it closes.
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

// pipeCloser ends the writing goroutine before it closes what that reads from.
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
