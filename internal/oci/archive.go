package oci

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"

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
