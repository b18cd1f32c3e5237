// Package fileutil writes files: outputs that a user names, and internal files, which are
// replaced atomically.
package fileutil

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// PublicMode is the mode of a file without secrets. The umask applies.
const PublicMode fs.FileMode = 0o666

// PrivateMode is the mode of a file with secrets.
const PrivateMode fs.FileMode = 0o600

// Reasons why a path cannot be an output.
var (
	ErrIsDirectory = errors.New("it is a directory")
	ErrReadOnly    = errors.New("it is read-only")
)

// IsStdout reports whether an output flag with this value names standard output.
func IsStdout(path string) bool {
	switch path {
	case "-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1":
		return true
	}
	return false
}

// WriteOutput writes the output that a user names by path.
//
// A new file gets the mode perm, reduced by the umask. An existing regular file is
// replaced atomically once the new content is complete and synced, and keeps its owner
// and, within perm, its mode; if write fails, the file stays unchanged. Symbolic links
// are followed and kept. A device or a named pipe is written to and never replaced. A
// directory is refused with ErrIsDirectory, and a file without write permission with
// ErrReadOnly, also for root.
//
// WriteOutput returns the error of ctx if ctx ends while a named pipe has no reader or
// a slow one.
func WriteOutput(ctx context.Context, path string, perm fs.FileMode, write func(io.Writer) error) error {
	f, isDescriptor, err := openDescriptor(path)
	if err != nil {
		return err
	}
	if isDescriptor {
		return writeThrough(ctx, f, write)
	}
	// The kernel follows the links first, and refuses one that another user planted in
	// a directory such as /tmp (fs.protected_symlinks).
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		target, err := followLinks(path)
		if err != nil {
			return err
		}
		return Replace(target, perm, write)
	case err != nil:
		return err
	case info.IsDir():
		return pathError(path, ErrIsDirectory)
	case !info.Mode().IsRegular():
		f, err := openContext(ctx, path)
		if err != nil {
			return err
		}
		return writeThrough(ctx, f, write)
	}
	return replaceExisting(path, info, perm, write)
}

// WriteFile is like WriteOutput for data in memory.
func WriteFile(ctx context.Context, path string, perm fs.FileMode, data []byte) error {
	return WriteOutput(ctx, path, perm, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// Replace creates the file path, or replaces whatever has this name except a
// directory, once write has produced the whole content and the content is synced. The
// name is synced, too. If write fails, path stays unchanged. The file gets the mode perm, reduced by the umask.
func Replace(path string, perm fs.FileMode, write func(io.Writer) error) error {
	return replace(path, perm, nil, write)
}

// ReplaceFile is like Replace for data in memory.
func ReplaceFile(path string, perm fs.FileMode, data []byte) error {
	return Replace(path, perm, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// MkdirAll is like [os.MkdirAll]. The names of the directories that it creates are on the disk when it returns.
func MkdirAll(path string, perm fs.FileMode) error {
	missing := filepath.Clean(path)
	var parents []string
	for {
		if _, err := os.Stat(missing); !errors.Is(err, fs.ErrNotExist) {
			break // Another error is that of creating the directory.
		}
		missing = filepath.Dir(missing)
		parents = append(parents, missing)
	}
	if err := os.MkdirAll(path, perm); err != nil {
		return err
	}
	for _, parent := range parents {
		if err := Sync(parent); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	return nil
}

func replaceExisting(path string, info fs.FileInfo, perm fs.FileMode, write func(io.Writer) error) error {
	if info.Mode().Perm()&0o222 == 0 {
		return pathError(path, ErrReadOnly)
	}
	// Opening the file shows whether the kernel lets this process write to it: the
	// permissions, a read-only file system, and a file that another user planted in a
	// directory such as /tmp (fs.protected_regular). The content is not touched.
	probe, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, perm)
	if errors.Is(err, fs.ErrPermission) {
		return pathError(path, fmt.Errorf("%w: %w", ErrReadOnly, errors.Unwrap(err)))
	}
	if err != nil {
		return err
	}
	if err := probe.Close(); err != nil {
		return err
	}
	target, err := followLinks(path)
	if err != nil {
		return err
	}
	return replace(target, perm, info, write)
}

// openContext opens a device or a named pipe for writing. The open of a pipe blocks
// until it has a reader.
func openContext(ctx context.Context, path string) (*os.File, error) {
	type result struct {
		f   *os.File
		err error
	}
	opened := make(chan result)
	go func() {
		f, err := os.OpenFile(path, os.O_WRONLY|noControllingTerminal, 0)
		select {
		case opened <- result{f, err}:
		case <-ctx.Done():
			_ = f.Close()
		}
	}()
	select {
	case r := <-opened:
		return r.f, r.err
	case <-ctx.Done():
		return nil, pathError(path, ctx.Err())
	}
}

// writeThrough writes to an open device, pipe or descriptor, and closes it.
func writeThrough(ctx context.Context, f *os.File, write func(io.Writer) error) error {
	stop := context.AfterFunc(ctx, func() { _ = f.SetWriteDeadline(time.Unix(1, 0)) })
	defer stop()
	err := errors.Join(write(f), f.Close())
	if errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() != nil {
		return pathError(f.Name(), ctx.Err())
	}
	return err
}

func pathError(path string, err error) error { return &fs.PathError{Op: "write", Path: path, Err: err} }

// nameTarget replaces the name of a temporary file in err by path, which users know.
func nameTarget(path string, err error) error {
	var link *os.LinkError
	var open *fs.PathError
	switch {
	case errors.As(err, &link):
		return pathError(path, link.Err)
	case errors.As(err, &open):
		return pathError(path, open.Err)
	}
	return err
}
