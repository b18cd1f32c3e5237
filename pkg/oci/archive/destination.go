package archive

import (
	"github.com/xpkg-dev/xpkg/internal/fileutil"

	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ctxio"
)

// ErrCannotWrite is the code for a file or folder that cannot be written.
var ErrCannotWrite = errcode.Code{
	Name: "CannotWrite", Class: errcode.Unavailable,
	Cause: "An output file or folder cannot be written.",
	Fix:   "Check the path, its permissions and the free space.",
}

// ErrLayoutExists is the code for an output folder that is not empty.
var ErrLayoutExists = errcode.Code{
	Name: "LayoutExists", Class: errcode.Conflict,
	Cause: "The output folder of a layout is not empty.",
	Fix:   "Name an empty folder, or one that does not exist.",
}

// ToFile returns a Destination that writes a file as [Write] does. A regular file is
// replaced atomically once the archive is complete. Symbolic links are followed; a
// device or a named pipe is written to and not replaced.
func ToFile(path string, opts WriteOptions, limits oci.Limits) oci.Destination {
	return archiveFile{path, opts, limits}
}

type archiveFile struct {
	path   string
	opts   WriteOptions
	limits oci.Limits
}

func (d archiveFile) Write(ctx context.Context, a oci.Artifact) (oci.Digest, error) {
	err := fileutil.WriteOutput(ctx, d.path, fileutil.PublicMode, func(w io.Writer) error {
		return Write(ctx, w, a, d.opts, d.limits)
	})
	return a.Root().Digest, writeError(d.path, err)
}

// ToLayout returns a Destination that writes an OCI layout to a folder, which must be empty or
// not exist.
func ToLayout(dir, name string, limits oci.Limits) oci.Destination {
	return layoutFolder{dir, name, limits}
}

type layoutFolder struct {
	dir, name string
	limits    oci.Limits
}

// Write writes index.json last: a folder without it is not a layout.
func (d layoutFolder) Write(ctx context.Context, a oci.Artifact) (oci.Digest, error) {
	root := a.Root()
	if entries, err := os.ReadDir(d.dir); err == nil && len(entries) > 0 {
		return oci.Digest{}, ErrLayoutExists.New(nil, "the folder %s is not empty", d.dir)
	}
	// The content is public.
	if err := os.MkdirAll(filepath.Join(d.dir, filepath.FromSlash(blobsFolder)), 0o755); err != nil {
		return oci.Digest{}, folderError(err, d.dir)
	}
	index, err := layoutIndex(root, d.name)
	if err != nil {
		return oci.Digest{}, err
	}
	if err := oci.Walk(
		ctx, a, d.limits, func(ctx context.Context, desc oci.Descriptor, _ []byte) error { return d.blob(ctx, a, desc) },
	); err != nil {
		return oci.Digest{}, err
	}
	if err := d.file(layoutFile, []byte(layoutContent)); err != nil {
		return oci.Digest{}, err
	}
	return root.Digest, d.file(indexFile, index)
}

func (d layoutFolder) blob(ctx context.Context, a oci.Artifact, desc oci.Descriptor) (err error) {
	r, err := a.Open(ctx, desc)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return replaceFile(filepath.Join(d.dir, filepath.FromSlash(blobName(desc.Digest))), func(w io.Writer) error {
		_, err := io.Copy(w, oci.VerifyReader(ctxio.Reader(ctx, r), desc))
		return err
	})
}

func (d layoutFolder) file(name string, data []byte) error {
	return replaceFile(filepath.Join(d.dir, name), func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// folderError returns the error of a folder that cannot be created.
func folderError(err error, dir string) error {
	return withFolderAdvice(ErrCannotWrite.New(err, "cannot create the folder %s", dir), dir)
}

// withFolderAdvice replaces the advice of an error of a folder with advice for its cause.
func withFolderAdvice(failed *errcode.Error, dir string) error {
	if advice := fileutil.DirectoryAdvice(failed.Why, dir, ""); advice != "" {
		return failed.WithDo("%s", advice)
	}
	return failed
}

// replaceFile writes a file of a layout atomically.
func replaceFile(path string, write func(io.Writer) error) error {
	return writeError(path, fileutil.Replace(path, fileutil.PublicMode, write))
}

// writeError returns err with the code ErrCannotWrite, unless it has a code or the
// context ended.
func writeError(path string, err error) error {
	if err == nil || errcode.Known(err) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return ErrCannotWrite.New(fileutil.WithoutPath(err), "cannot write %s", path)
}
