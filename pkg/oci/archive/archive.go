package archive

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/assembly"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ctxio"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/text"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

// ErrArchiveNotFound is the code for a file or folder that does not exist.
var ErrArchiveNotFound = errcode.Code{
	Name: "ArchiveNotFound", Class: errcode.NotFound,
	Cause: "The named .xpkg file, archive or layout does not exist or cannot be opened.",
	Fix:   "Check the path; xpkg build writes such a file.",
}

// ErrNotAnArchive is the code for a file that does not contain an image.
var ErrNotAnArchive = errcode.Code{
	Name: "NotAnArchive", Class: errcode.Invalid,
	Cause: "The file is neither an OCI layout nor an archive in the format of docker save.",
	Fix:   "Build the file with xpkg build, or save the image with a tool that writes one of these formats.",
}

// Archive is an artifact in a file or a folder: a .xpkg file, a tar in the format of
// `docker save`, or an OCI layout. Close it when it is no longer needed.
type Archive struct {
	content assembly.Assembly
	files   fileSet
	close   func() error
}

// Close releases the file. Content that was opened from the archive cannot be
// read any longer.
func (a *Archive) Close() error { return a.close() }

// Open opens a .xpkg file, another archive, or the directory of an OCI layout. It reads a
// layout as it is. For other archives it builds the manifest from manifest.json, and the
// annotations of the layers from the labels of the configuration, as other tools do when
// they push such an archive.
func Open(ctx context.Context, name string, limits oci.Limits) (*Archive, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, ErrArchiveNotFound.New(err, "cannot open %s", name)
	}
	if info.IsDir() {
		root, err := os.OpenRoot(name)
		if err != nil {
			return nil, ErrArchiveNotFound.New(err, "cannot open %s", name)
		}
		a, err := newArchive(ctx, folder{root}, root.Close, limits)
		return a, withName(err, name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, ErrArchiveNotFound.New(err, "cannot open %s", name)
	}
	a, err := openTar(ctx, f, f.Close, limits)
	return a, withName(err, name)
}

// withName adds the path to the error of a file or folder that is not an archive.
func withName(err error, name string) error {
	var failed *errcode.Error
	if !errors.As(err, &failed) || !errors.Is(failed, ErrNotAnArchive) {
		return err
	}
	return ErrNotAnArchive.New(err, "cannot read %s", name).WithDo("%s", failed.Do)
}

// Read reads an archive from a stream, such as standard input, through a file in tempDir
// that is removed when the archive is closed. It fails if the stream has more than most
// bytes.
func Read(ctx context.Context, r io.Reader, tempDir string, most int64, limits oci.Limits) (*Archive, error) {
	f, err := os.CreateTemp(tempDir, "xpkg-*")
	if err != nil {
		return nil, store.ErrStoreWrite.New(err, "cannot store the archive temporarily")
	}
	remove := func() error { return errors.Join(f.Close(), os.Remove(f.Name())) }
	n, err := io.Copy(f, io.LimitReader(ctxio.Reader(ctx, r), most+1))
	switch {
	case err != nil:
		err = store.ErrStoreWrite.New(err, "cannot store the archive temporarily")
	case n > most:
		err = oci.ErrLayerTooLarge.New(nil, "the archive has more than %d bytes (--max-archive-size)", most)
	}
	if err != nil {
		return nil, errors.Join(err, remove())
	}
	return openTar(ctx, f, remove, limits)
}

func openTar(ctx context.Context, f *os.File, done func() error, limits oci.Limits) (*Archive, error) {
	files, err := indexTar(f, limits.WithDefaults())
	if err != nil {
		return nil, errors.Join(err, done())
	}
	return newArchive(ctx, files, done, limits)
}

func newArchive(ctx context.Context, files fileSet, done func() error, limits oci.Limits) (*Archive, error) {
	a := &Archive{files: files, close: done}
	if err := a.load(ctx, limits.WithDefaults()); err != nil {
		return nil, errors.Join(err, done())
	}
	return a, nil
}

func (a *Archive) load(ctx context.Context, limits oci.Limits) error {
	index, err := a.readFile(indexFile, limits)
	if err == nil {
		return a.loadLayout(index, limits)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	manifests, err := a.readFile(dockerManifests, limits)
	if errors.Is(err, fs.ErrNotExist) {
		return ErrNotAnArchive.New(nil, "it contains neither %s nor %s", indexFile, dockerManifests)
	}
	if err != nil {
		return err
	}
	return a.loadDocker(ctx, manifests, limits)
}

// loadLayout finds the root of a layout: the entry of an index.json with one entry, and
// otherwise index.json itself.
func (a *Archive) loadLayout(index []byte, limits oci.Limits) error {
	var layout struct {
		Version string `json:"imageLayoutVersion"`
	}
	mark, err := a.readFile(layoutFile, limits)
	if err != nil || json.Unmarshal(mark, &layout) != nil || layout.Version != "1.0.0" {
		return ErrNotAnArchive.New(err, "the archive has %s without the %s of version 1.0.0", indexFile, layoutFile)
	}
	doc, err := oci.ParseDocument(index, "", limits)
	if err != nil {
		return err
	}
	if !doc.IsIndex() {
		return oci.ErrInvalidManifest.New(nil, "%s is not an index", indexFile)
	}
	switch len(doc.Manifests) {
	case 0:
		return oci.ErrEmptyIndex.New(nil, "%s has no entry", indexFile)
	case 1:
		a.content.Desc = doc.Manifests[0]
		// The fields of the root in index.json are not part of the content.
		a.content.Desc.Annotations = nil
	default:
		a.content.Desc = oci.Descriptor{MediaType: doc.MediaType, Digest: oci.DigestOf(index), Size: int64(len(index))}
		a.content.Add(a.content.Desc.Digest, assembly.BytesSource(index))
	}
	return nil
}

// Root implements [oci.Artifact].
func (a *Archive) Root() oci.Descriptor { return a.content.Desc }

// Digest returns the digest of the root.
func (a *Archive) Digest() oci.Digest { return a.content.Desc.Digest }

// Open implements [oci.Artifact].
func (a *Archive) Open(ctx context.Context, d oci.Descriptor) (io.ReadCloser, error) {
	if r, err := a.content.Open(ctx, d); !errors.Is(err, oci.ErrBlobNotFound) {
		return r, err
	}
	r, size, err := a.files.open(blobName(d.Digest))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, oci.ErrBlobNotFound.New(nil, "the archive does not contain %s", d.Digest)
	}
	if err != nil {
		return nil, err
	}
	if size != d.Size {
		return nil, errors.Join(oci.ErrSizeMismatch.New(
			nil, "%s has %d bytes in the archive and %d in its descriptor", d.Digest.Short(), size, d.Size,
		), r.Close())
	}
	return r, nil
}

// readFile returns the content of a small file of the archive.
func (a *Archive) readFile(name string, limits oci.Limits) (_ []byte, err error) {
	r, size, err := a.files.open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if size > limits.Manifest {
		return nil, oci.ErrManifestTooLarge.New(
			nil, "%s has %d bytes, at most %d are allowed (--max-manifest-size)", text.Clip(name), size, limits.Manifest,
		)
	}
	data := bytes.NewBuffer(make([]byte, 0, size))
	if _, err := data.ReadFrom(io.LimitReader(r, size)); err != nil {
		return nil, oci.ErrBrokenLayer.New(err, "cannot read %s of the archive", text.Clip(name))
	}
	return data.Bytes(), nil
}
