package oci

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/klauspost/compress/gzip"
)

// maxUnzipped bounds what a compressed archive unpacks to. An archive can hold the
// programs of several platforms.
const maxUnzipped = 4 << 30

// AddPackage puts into the store what is needed to read the package of an
// artifact, and no more, as [Remote.Fetch] does with a registry. It gives the
// manifest of the package, and the digests of all that is needed, the root first.
func (s *Store) AddPackage(ctx context.Context, a Artifact, limits Limits) (Manifest, []Digest, error) {
	limits = limits.WithDefaults()
	in := &addition{Artifact: a, store: s}
	m, err := FindManifest(ctx, in, Platform{}, limits)
	if err != nil {
		return Manifest{}, nil, err
	}
	if m.Base == nil {
		// Reading the file is what tells how many layers are needed.
		_, err = packageYAML(ctx, in, m, limits)
		return m, in.parts, err
	}
	budget := newBudget(m, limits)
	if err := budget.spend(*m.Base); err != nil {
		return Manifest{}, nil, err
	}
	r, err := in.Open(ctx, *m.Base)
	if err != nil {
		return Manifest{}, nil, err
	}
	return m, in.parts, r.Close()
}

// addition is an artifact whose content goes through a store.
type addition struct {
	Artifact
	store *Store
	parts []Digest
}

// Open implements [Artifact].
func (a *addition) Open(ctx context.Context, d Descriptor) (io.ReadCloser, error) {
	a.parts = append(a.parts, d.Digest)
	if r, err := a.store.Open(ctx, d.Digest); err == nil {
		return r, nil
	}
	from, err := a.Artifact.Open(ctx, d)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(a.store.Put(ctx, d.Digest, d.Size, from), from.Close()); err != nil {
		return nil, err
	}
	return a.store.Open(ctx, d.Digest)
}

// open implements blobs.
func (a *addition) open(ctx context.Context, d Descriptor) (io.ReadCloser, error) {
	return a.Open(ctx, d)
}

// OpenArchiveIn opens an archive or a layout as [OpenArchive] does, in a folder that
// anybody may have put files into: no link is followed out of the folder, and
// nothing but ordinary files is read.
func OpenArchiveIn(ctx context.Context, in *os.Root, name string, limits Limits) (*Archive, error) {
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
	return newArchive(ctx, strangeFolder{root}, root.Close, limits)
}

// OpenArchive is [OpenArchiveIn], for archives that are compressed with gzip, too. Such
// an archive is unpacked into the store for as long as it is open.
func (s *Store) OpenArchive(ctx context.Context, in *os.Root, name string, limits Limits) (*Archive, error) {
	info, err := in.Stat(name)
	if err != nil || info.IsDir() {
		return OpenArchiveIn(ctx, in, name, limits)
	}
	f, err := openIn(in, name)
	if err != nil {
		return nil, err
	}
	if !isGzip(f) {
		return openTar(ctx, f, f.Close, limits)
	}
	a, err := s.openGzip(ctx, f, limits)
	return a, errors.Join(err, f.Close())
}

func isGzip(f io.ReaderAt) bool {
	var magic [2]byte
	n, _ := f.ReadAt(magic[:], 0)
	return n == 2 && magic == [2]byte{0x1f, 0x8b}
}

// openGzip unpacks an archive twice: the first time only tells how much room it
// needs.
func (s *Store) openGzip(ctx context.Context, packed *os.File, limits Limits) (*Archive, error) {
	n, err := unzip(ctx, io.Discard, packed, maxUnzipped+1)
	if err != nil {
		return nil, ErrNotAnArchive.New(err, "cannot unpack the archive")
	}
	if n > maxUnzipped {
		return nil, ErrDecompressionLimit.New(nil, "the archive unpacks to more than %d bytes", int64(maxUnzipped)).
			WithDo("Unpack the archive yourself.")
	}
	f, err := s.reserve(ctx, Need{Bytes: n})
	if err != nil {
		return nil, s.writeError(err)
	}
	remove := func() error { return errors.Join(f.Close(), os.Remove(f.Name())) }
	err = s.change("unpack", func() error { _, err := unzip(ctx, f, packed, n); return err })
	if err != nil {
		return nil, errors.Join(s.writeError(err), remove())
	}
	return openTar(ctx, f, remove, limits)
}

// unzip unpacks a file, most bytes of it, and gives how many there were.
func unzip(ctx context.Context, to io.Writer, from io.ReaderAt, most int64) (int64, error) {
	const everything = 1<<63 - 1
	zr, err := gzip.NewReader(contextReader{ctx, io.NewSectionReader(from, 0, everything)})
	if err != nil {
		return 0, err
	}
	return io.Copy(to, io.LimitReader(zr, most))
}

// strangeFolder is a folder that others may change while it is read.
type strangeFolder struct{ root *os.Root }

func (f strangeFolder) open(name string) (io.ReadCloser, int64, error) {
	file, err := openOrdinary(f.root, name)
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	return file, info.Size(), nil
}

// openIn opens an ordinary file that somebody named.
func openIn(root *os.Root, name string) (*os.File, error) {
	f, err := openOrdinary(root, name)
	if err != nil && !ErrNotAnArchive.Is(err) {
		err = ErrArchiveNotFound.New(err, "cannot open %s", name)
	}
	return f, err
}

// openOrdinary opens a file. A named pipe is refused and not waited for.
func openOrdinary(root *os.Root, name string) (*os.File, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|noWait, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = ErrNotAnArchive.New(nil, "%s is not an ordinary file", clip(name))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
