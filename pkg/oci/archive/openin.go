package archive

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/klauspost/compress/gzip"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ctxio"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/text"
)

// maxUnzipped bounds the size of an unpacked archive. An archive can contain the runtime
// images of several platforms.
const maxUnzipped = 4 << 30

// OpenIn opens an archive or a layout as [Open] does, in a directory in which other users
// can create files. It follows no link out of the directory and reads only regular files.
func OpenIn(ctx context.Context, in *os.Root, name string, limits oci.Limits) (*Archive, error) {
	info, err := in.Stat(name)
	if err != nil {
		return nil, ErrArchiveNotFound.New(err, "cannot open %s", name)
	}
	if !info.IsDir() {
		f, err := openIn(in, name)
		if err != nil {
			return nil, err
		}
		return openTar(ctx, f, f.Close, limits)
	}
	root, err := in.OpenRoot(name)
	if err != nil {
		return nil, ErrArchiveNotFound.New(err, "cannot open %s", name)
	}
	return newArchive(ctx, foreignLayout{root}, root.Close, limits)
}

// Scratch creates a temporary file of size bytes that the function write fills. The
// caller of Scratch closes and removes the file.
type Scratch func(ctx context.Context, size int64, write func(io.Writer) error) (*os.File, error)

// OpenInWithScratch is like OpenIn, but also opens archives that are compressed with
// gzip. It unpacks such an archive into a file of scratch, which exists until the archive
// is closed.
func OpenInWithScratch(
	ctx context.Context, in *os.Root, name string, scratch Scratch, limits oci.Limits,
) (*Archive, error) {
	info, err := in.Stat(name)
	if err != nil || info.IsDir() {
		return OpenIn(ctx, in, name, limits)
	}
	f, err := openIn(in, name)
	if err != nil {
		return nil, err
	}
	if !isGzip(f) {
		return openTar(ctx, f, f.Close, limits)
	}
	a, err := openGzip(ctx, f, scratch, limits)
	return a, errors.Join(err, f.Close())
}

func isGzip(f io.ReaderAt) bool {
	var magic [2]byte
	n, _ := f.ReadAt(magic[:], 0)
	return n == 2 && magic == [2]byte{0x1f, 0x8b}
}

// openGzip unpacks an archive twice, the first time to determine the size of the
// temporary file.
func openGzip(ctx context.Context, packed *os.File, scratch Scratch, limits oci.Limits) (*Archive, error) {
	n, err := unzip(ctx, io.Discard, packed, maxUnzipped+1)
	if err != nil {
		return nil, ErrNotAnArchive.New(err, "cannot unpack the archive")
	}
	if n > maxUnzipped {
		return nil, oci.ErrDecompressionLimit.New(nil, "the archive unpacks to more than %d bytes", int64(maxUnzipped)).
			WithDo("Decompress the archive with gunzip, and use the result.")
	}
	f, err := scratch(ctx, n, func(w io.Writer) error { _, err := unzip(ctx, w, packed, n); return err })
	if err != nil {
		return nil, err
	}
	remove := func() error { return errors.Join(f.Close(), os.Remove(f.Name())) }
	return openTar(ctx, f, remove, limits)
}

// unzip decompresses a file up to a limit and returns the number of bytes.
func unzip(ctx context.Context, to io.Writer, from io.ReaderAt, most int64) (int64, error) {
	const everything = 1<<63 - 1
	zr, err := gzip.NewReader(ctxio.Reader(ctx, io.NewSectionReader(from, 0, everything)))
	if err != nil {
		return 0, err
	}
	return io.Copy(to, io.LimitReader(zr, most))
}

// foreignLayout is a folder that other users can change while it is read.
type foreignLayout struct{ root *os.Root }

func (f foreignLayout) open(name string) (io.ReadCloser, int64, error) {
	file, err := openRegular(f.root, name)
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	return file, info.Size(), nil
}

// openIn opens a regular file by a name from the caller.
func openIn(root *os.Root, name string) (*os.File, error) {
	f, err := openRegular(root, name)
	if err != nil && !errors.Is(err, ErrNotAnArchive) {
		err = ErrArchiveNotFound.New(err, "cannot open %s", name)
	}
	return f, err
}

// openRegular opens a regular file. It returns an error for a named pipe, without
// waiting.
func openRegular(root *os.Root, name string) (*os.File, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = ErrNotAnArchive.New(nil, "%s is not an ordinary file", text.Clip(name))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
