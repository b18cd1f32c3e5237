package terminal

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"sync/atomic"
	"syscall"

	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/archive"
)

// WriteOutput writes a result to the file of an output flag, or to standard output for "-". All commands use it for
// their results. Errors have the given code, except that of a full device, which is no fault of the command line.
func (e *Env) WriteOutput(file string, code errcode.Code, write func(io.Writer) error) error {
	if fileutil.IsStdout(file) {
		return write(e.Stdout)
	}
	err := fileutil.WriteOutput(e.Context, file, fileutil.PublicMode, write)
	if err == nil {
		return nil
	}
	var known *errcode.Error
	if !errors.As(err, &known) {
		if fileutil.IsFull(err) {
			code = archive.ErrCannotWrite
		}
		err = code.New(withoutPath(err), "cannot write %s", file)
	}
	return withOutputAdvice(file, err)
}

// Messages returns the stream for the messages of a command whose result goes to file: standard
// output, or standard error if file is standard output.
func (e *Env) Messages(file string) io.Writer {
	if fileutil.IsStdout(file) {
		return e.Stderr
	}
	return e.Stdout
}

// WriteArchive writes a package file. It returns an error if the output is a terminal.
func (e *Env) WriteArchive(ctx context.Context, file string, a oci.Artifact, limits oci.Limits) (oci.Digest, error) {
	if !fileutil.IsStdout(file) {
		d, err := oci.Copy(ctx, archive.ToFile(file, archive.WriteOptions{}, limits), a)
		return d, withOutputAdvice(file, err)
	}
	if IsTerminal(e.Stdout) {
		return oci.Digest{},
			ErrUsage.New(nil, "standard output is a terminal").WithDo("Name a file, or redirect standard output to one.")
	}
	return a.Root().Digest, archive.Write(ctx, e.Stdout, a, archive.WriteOptions{}, limits)
}

// withOutputAdvice returns err with advice for the reason why file cannot be written.
func withOutputAdvice(file string, err error) error {
	var advice string
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fileutil.ErrIsDirectory):
		advice = "Name a file in this directory instead of " + wording.ShellWord(file) + "."
	case errors.Is(err, fileutil.ErrReadOnly) && !errors.Is(err, fs.ErrPermission):
		advice = "Run `chmod u+w " + wording.ShellWord(file) + "` to allow replacing the file, or name another file."
	case errors.Is(err, fs.ErrPermission):
		advice = "Use a file that is writable for this user."
	case errors.Is(err, syscall.ENOSPC):
		advice = "Free space on the device of " + wording.ShellWord(file) + ", or name a file on another device."
	case errors.Is(err, syscall.EROFS):
		advice = "Name a file on another file system."
	case errors.Is(err, syscall.ENOTDIR):
		advice = wording.ShellWord(filepath.Dir(file)) + " is not a directory: name a file in another one."
	case errors.Is(err, fs.ErrNotExist):
		advice = "Create the directory with `mkdir -p " + wording.ShellWord(filepath.Dir(file)) + "`, or name another file."
	default:
		return err
	}
	return errcode.From(err).WithDo("%s", advice)
}

// withoutPath returns the reason of an error without the path in its text.
func withoutPath(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// CheckedWriter is standard output. It records the first error, so that a command fails even if
// it ignores the error of a write.
type CheckedWriter struct {
	io.Writer
	// Program is the name by which the user runs the program.
	Program string
	// Color highlights text that commands print for people.
	Color bool
	// Pager is the command that shows text that is longer than the terminal, or empty.
	Pager  string
	failed atomic.Pointer[errcode.Error]
}

// Write implements io.Writer.
func (w *CheckedWriter) Write(b []byte) (int, error) {
	n, err := w.Writer.Write(b)
	if err == nil {
		return n, nil
	}
	failed := archive.ErrCannotWrite.New(withoutPath(err), "cannot write to standard output").
		WithDo("Check where the output of this command is redirected to, and the space there.")
	w.failed.CompareAndSwap(nil, failed)
	return n, failed
}

// Err returns the first error of a write.
func (w *CheckedWriter) Err() error {
	if failed := w.failed.Load(); failed != nil {
		return failed
	}
	return nil
}
