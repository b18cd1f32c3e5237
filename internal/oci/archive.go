package oci

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"github.com/xpkg-dev/xpkg/internal/failure"
)

// ErrArchiveNotFound is the failure of a file or folder that is not there.
var ErrArchiveNotFound = failure.Register(failure.Code{
	Name: "ArchiveNotFound", Class: failure.NotFound,
	Cause: "The .xpkg file, archive or layout that was named does not exist or cannot be opened.",
	Fix:   "Check the path; xpkg build writes such a file.",
})

// ErrNotAnArchive is the failure of a file that holds no image.
var ErrNotAnArchive = failure.Register(failure.Code{
	Name: "NotAnArchive", Class: failure.Invalid,
	Cause: "The file is neither an OCI layout nor an archive as docker save writes it.",
	Fix:   "Build the file with xpkg build, or save the image with a tool that writes one of the two.",
})

// Archive is an artifact in a file or a folder: a .xpkg file, a tar as `docker
// save` writes it, or an OCI layout. Close it when it is no longer needed.
type Archive struct {
	content
	files fileSet
	close func() error
}

// Close releases the file. Content that was opened from the archive cannot be
// read any longer.
func (a *Archive) Close() error { return a.close() }

// fileSet gives the files of an archive by their clean names.
type fileSet interface {
	open(name string) (io.ReadCloser, int64, error)
}

// OpenArchive opens a .xpkg file, another archive, or the folder of an OCI
// layout. An archive that is a layout is read as one; any other has its manifest
// made from manifest.json, and the annotations of its layers from the labels of
// the configuration, as tools of the field do when they push it.
func OpenArchive(ctx context.Context, name string, limits Limits) (*Archive, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, ErrArchiveNotFound.New(err, "cannot open %s", name)
	}
	if info.IsDir() {
		root, err := os.OpenRoot(name)
		if err != nil {
			return nil, ErrArchiveNotFound.New(err, "cannot open %s", name)
		}
		return newArchive(ctx, folder{root}, root.Close, limits)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, ErrArchiveNotFound.New(err, "cannot open %s", name)
	}
	return openTar(ctx, f, f.Close, limits)
}

// ReadArchive reads an archive from a stream, such as standard input, by way of a
// file in tempDir that is removed when the archive is closed. It reads
// most bytes and fails when there are more.
func ReadArchive(ctx context.Context, r io.Reader, tempDir string, most int64, limits Limits) (*Archive, error) {
	f, err := os.CreateTemp(tempDir, "xpkg-*")
	if err != nil {
		return nil, ErrStoreWrite.New(err, "cannot keep the archive while it is read")
	}
	remove := func() error { return errors.Join(f.Close(), os.Remove(f.Name())) }
	n, err := io.Copy(f, io.LimitReader(contextReader{ctx, r}, most+1))
	switch {
	case err != nil:
		err = ErrStoreWrite.New(err, "cannot keep the archive while it is read")
	case n > most:
		err = ErrLayerTooLarge.New(nil, "the archive has more than %d bytes (--max-archive-size)", most)
	}
	if err != nil {
		return nil, errors.Join(err, remove())
	}
	return openTar(ctx, f, remove, limits)
}

func openTar(ctx context.Context, f *os.File, done func() error, limits Limits) (*Archive, error) {
	files, err := indexTar(f, limits.WithDefaults())
	if err != nil {
		return nil, errors.Join(err, done())
	}
	return newArchive(ctx, files, done, limits)
}

func newArchive(ctx context.Context, files fileSet, done func() error, limits Limits) (*Archive, error) {
	a := &Archive{files: files, close: done}
	if err := a.load(ctx, limits.WithDefaults()); err != nil {
		return nil, errors.Join(err, done())
	}
	return a, nil
}

func (a *Archive) load(ctx context.Context, limits Limits) error {
	index, err := a.readFile(indexFile, limits)
	if err == nil {
		return a.loadLayout(index, limits)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	manifests, err := a.readFile(dockerManifests, limits)
	if errors.Is(err, fs.ErrNotExist) {
		return ErrNotAnArchive.New(nil, "there is neither %s nor %s", indexFile, dockerManifests)
	}
	if err != nil {
		return err
	}
	return a.loadDocker(ctx, manifests, limits)
}

// loadLayout finds the root of a layout. An index.json with one entry stands for
// that entry; one with several is itself the index.
func (a *Archive) loadLayout(index []byte, limits Limits) error {
	var layout struct {
		Version string `json:"imageLayoutVersion"`
	}
	mark, err := a.readFile(layoutFile, limits)
	if err != nil || json.Unmarshal(mark, &layout) != nil || layout.Version != "1.0.0" {
		return ErrNotAnArchive.New(err, "the archive has %s without the %s of version 1.0.0", indexFile, layoutFile)
	}
	doc, err := ParseDocument(index, "", limits)
	if err != nil {
		return err
	}
	if !doc.IsIndex() {
		return ErrInvalidManifest.New(nil, "%s is not an index", indexFile)
	}
	switch len(doc.Manifests) {
	case 0:
		return ErrEmptyIndex.New(nil, "%s has no entry", indexFile)
	case 1:
		a.root = doc.Manifests[0]
		// What stands in index.json about the root is not part of the content.
		a.root.Annotations = nil
	default:
		a.root = Descriptor{MediaType: doc.MediaType, Digest: DigestOf(index), Size: int64(len(index))}
		a.add(a.root.Digest, bytesSource(index))
	}
	return nil
}

// Open implements [Artifact].
func (a *Archive) Open(ctx context.Context, d Descriptor) (io.ReadCloser, error) {
	if open, ok := a.sources[d.Digest]; ok {
		return open(ctx)
	}
	r, size, err := a.files.open(blobName(d.Digest))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrBlobNotFound.New(nil, "the archive does not hold %s", d.Digest)
	}
	if err != nil {
		return nil, err
	}
	if size != d.Size {
		return nil, errors.Join(ErrSizeMismatch.New(nil, "%s has %d bytes in the archive and %d in its descriptor", d.Digest.Short(), size, d.Size), r.Close())
	}
	return r, nil
}

// readFile gives a small file of the archive.
func (a *Archive) readFile(name string, limits Limits) (_ []byte, err error) {
	r, size, err := a.files.open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if size > limits.Manifest {
		return nil, ErrManifestTooLarge.New(nil, "%s has %d bytes and may have %d (--max-manifest-size)", clip(name), size, limits.Manifest)
	}
	data := bytes.NewBuffer(make([]byte, 0, size))
	if _, err := data.ReadFrom(io.LimitReader(r, size)); err != nil {
		return nil, ErrBrokenLayer.New(err, "cannot read %s of the archive", clip(name))
	}
	return data.Bytes(), nil
}

// folder is a layout in a directory. Links that lead out of it are not followed.
type folder struct{ root *os.Root }

func (f folder) open(name string) (io.ReadCloser, int64, error) {
	file, err := f.root.Open(name)
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = ErrNotAnArchive.New(nil, "%s is not an ordinary file", name)
	}
	if err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	return file, info.Size(), nil
}

// tarFiles are the files of a plain tar, found without unpacking it.
type tarFiles struct {
	file    io.ReaderAt
	entries map[string]tarEntry
}

// tarEntry is a part of the tar, or a link to another entry.
type tarEntry struct {
	offset, size int64
	link         string
}

// indexTar notes where the entries of a tar begin. The same name twice is
// refused, because readers would not agree on which of them counts.
func indexTar(f io.ReadSeeker, limits Limits) (*tarFiles, error) {
	at, ok := f.(io.ReaderAt)
	if !ok {
		return nil, fmt.Errorf("an archive must be a file")
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, ErrArchiveNotFound.New(err, "cannot read the archive")
	}
	files := &tarFiles{file: at, entries: map[string]tarEntry{}}
	tr := tar.NewReader(f)
	counter := tarScanner{limits: limits}
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, notAnArchive(counter.tarError(err))
		}
		if err := counter.count(h); err != nil {
			return nil, err
		}
		offset, err := f.Seek(0, io.SeekCurrent)
		if err != nil {
			return nil, ErrArchiveNotFound.New(err, "cannot read the archive")
		}
		if err := files.add(h, offset); err != nil {
			return nil, err
		}
	}
}

func notAnArchive(err error) error {
	if ErrNotATar.Is(err) {
		return ErrNotAnArchive.New(nil, "the file is not a tar")
	}
	return err
}

func (t *tarFiles) add(h *tar.Header, offset int64) error {
	entry := tarEntry{offset: offset, size: h.Size}
	switch h.Typeflag {
	case tar.TypeReg:
		if irregular(h) != "" {
			return ErrNotRegularFile.New(nil, "the entry %q of the archive is a sparse file", clip(h.Name))
		}
	case tar.TypeSymlink:
		entry = tarEntry{link: path.Join(path.Dir(h.Name), h.Linkname)}
	case tar.TypeLink:
		entry = tarEntry{link: path.Clean(h.Linkname)}
	default:
		return nil
	}
	name := path.Clean(h.Name)
	if _, twice := t.entries[name]; twice {
		return ErrDuplicateEntry.New(nil, "the archive has %q twice", clip(name))
	}
	t.entries[name] = entry
	return nil
}

// open gives a file. Older archives of Docker store a layer that occurs twice as
// a link, so one link is followed, within the archive.
func (t *tarFiles) open(name string) (io.ReadCloser, int64, error) {
	entry, ok := t.entries[path.Clean(name)]
	if ok && entry.link != "" {
		entry, ok = t.entries[entry.link]
	}
	if !ok || entry.link != "" {
		return nil, 0, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	return io.NopCloser(io.NewSectionReader(t.file, entry.offset, entry.size)), entry.size, nil
}
