package oci

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/xpkg-dev/xpkg/internal/failure"
)

// ErrCannotWrite is the failure of a file or folder that cannot be written.
var ErrCannotWrite = failure.Register(failure.Code{
	Name: "CannotWrite", Class: failure.Unavailable,
	Cause: "A file or folder that the command was to write cannot be written.",
	Fix:   "Check the path, its permissions and the space that is left.",
})

// ErrLayoutExists is the failure of a folder that holds something already.
var ErrLayoutExists = failure.Register(failure.Code{
	Name: "LayoutExists", Class: failure.Conflict,
	Cause: "The folder that a layout is to be written to is not empty.",
	Fix:   "Name an empty folder, or one that does not exist.",
})

// Destination is a place that an artifact can be copied to.
type Destination interface {
	// Write takes over all content of an artifact, byte for byte, and gives the
	// digest of its root.
	Write(ctx context.Context, a Artifact) (Digest, error)
}

// Copy brings an artifact to another place. Manifests are never written anew, so
// that digests, annotations and signatures stay valid.
func Copy(ctx context.Context, to Destination, from Artifact) (Digest, error) {
	return to.Write(ctx, from)
}

// To is a repository, with the tag of the reference if it has one.
func (r *Remote) To(ref Reference) Destination { return repository{r, ref} }

type repository struct {
	remote *Remote
	ref    Reference
}

func (d repository) Write(ctx context.Context, a Artifact) (Digest, error) {
	return d.remote.Push(ctx, d.ref, a)
}

// ToArchive is a file as [WriteArchive] writes it. The file appears when all of
// it is written, and replaces one that is there.
func ToArchive(path string, opts ArchiveOptions, limits Limits) Destination {
	return archiveFile{path, opts, limits}
}

type archiveFile struct {
	path   string
	opts   ArchiveOptions
	limits Limits
}

func (d archiveFile) Write(ctx context.Context, a Artifact) (Digest, error) {
	err := replaceFile(d.path, func(w io.Writer) error { return WriteArchive(ctx, w, a, d.opts, d.limits) })
	return a.Root().Digest, err
}

// ToLayout is the folder of an OCI layout. It must be empty or not exist.
func ToLayout(dir, name string, limits Limits) Destination { return layoutFolder{dir, name, limits} }

type layoutFolder struct {
	dir, name string
	limits    Limits
}

// Write puts index.json last: a folder without it is no layout.
func (d layoutFolder) Write(ctx context.Context, a Artifact) (Digest, error) {
	root := a.Root()
	if entries, err := os.ReadDir(d.dir); err == nil && len(entries) > 0 {
		return Digest{}, ErrLayoutExists.New(nil, "the folder %s is not empty", d.dir)
	}
	if err := os.MkdirAll(filepath.Join(d.dir, filepath.FromSlash(blobsFolder)), 0o755); err != nil { //nolint:gosec // The content is public.
		return Digest{}, ErrCannotWrite.New(err, "cannot make the folder %s", d.dir)
	}
	index, err := layoutIndex(root, d.name)
	if err != nil {
		return Digest{}, err
	}
	if err := walk(ctx, a, d.limits, func(ctx context.Context, desc Descriptor, _ []byte) error { return d.blob(ctx, a, desc) }); err != nil {
		return Digest{}, err
	}
	if err := d.file(layoutFile, []byte(layoutContent)); err != nil {
		return Digest{}, err
	}
	return root.Digest, d.file(indexFile, index)
}

func (d layoutFolder) blob(ctx context.Context, a Artifact, desc Descriptor) (err error) {
	r, err := a.Open(ctx, desc)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return replaceFile(filepath.Join(d.dir, filepath.FromSlash(blobName(desc.Digest))), func(w io.Writer) error {
		_, err := io.Copy(w, verifyReader(contextReader{ctx, r}, desc))
		return err
	})
}

func (d layoutFolder) file(name string, data []byte) error {
	return replaceFile(filepath.Join(d.dir, name), func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// replaceFile writes a file beside its place and moves it there when it is whole.
func replaceFile(path string, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), writingPrefix+"*")
	if err != nil {
		return ErrCannotWrite.New(err, "cannot write %s", path)
	}
	defer func() {
		if err == nil {
			return
		}
		_ = f.Close()
		_ = os.Remove(f.Name())
		if !failureOf(err) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
			err = ErrCannotWrite.New(err, "cannot write %s", path)
		}
	}()
	if err := write(f); err != nil {
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
