package store

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ctxio"
)

// write stores the content of r under path, completely or not at all, after it reserves
// space. It returns an error of r unchanged, so that network errors are not reported as
// disk errors.
func (s *Store) write(ctx context.Context, path string, need Need, r io.Reader) error {
	f, err := s.reserve(ctx, need)
	if err != nil {
		return s.writeError(err)
	}
	in := &ctxio.Recorder{R: r}
	if err := s.fill(f, path, in); err != nil {
		if in.Err != nil {
			return in.Err
		}
		return s.writeError(err)
	}
	return nil
}

// writeSmall is like write for the store's own small files, without a reservation.
func (s *Store) writeSmall(path, text string) error {
	f, err := s.temp(0)
	if err == nil {
		err = s.fill(f, path, strings.NewReader(text))
	}
	if err != nil {
		return s.writeError(err)
	}
	return nil
}

// writeError returns err with the code ErrStoreWrite, unless it has a code or the context
// ended.
func (s *Store) writeError(err error) error {
	var known *errcode.Error
	if errors.As(err, &known) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return ErrStoreWrite.New(err, "cannot write to the store %s", s.dir)
}

// reserve creates a temporary file with the size of the write, so that no other write
// uses that space.
func (s *Store) reserve(ctx context.Context, need Need) (f *os.File, err error) {
	if s.makeRoom == nil {
		return s.temp(0)
	}
	err = s.makeRoom(ctx, need, func() error {
		f, err = s.temp(need.Bytes)
		return err
	})
	return f, err
}

// Scratch creates a temporary file in the store; the function write fills it with size
// bytes. The bytes count against the limit of the store until the caller closes and
// removes the file. It fails with ErrStoreWrite if the disk fails.
func (s *Store) Scratch(ctx context.Context, size int64, write func(io.Writer) error) (*os.File, error) {
	f, err := s.reserve(ctx, Need{Bytes: size})
	if err != nil {
		return nil, s.writeError(err)
	}
	if err := s.change("unpack", func() error { return write(f) }); err != nil {
		return nil, errors.Join(s.writeError(err), f.Close(), os.Remove(f.Name()))
	}
	return f, nil
}

// temp creates a temporary file of a size. It is locked while it is open, which
// distinguishes it from a file of a killed process.
func (s *Store) temp(size int64) (f *os.File, err error) {
	err = s.change("create a temporary file", func() error {
		f, err = os.CreateTemp(filepath.Join(s.dir, tempDir), tempPrefix+"*")
		return err
	})
	if err != nil {
		return nil, err
	}
	tryLock(f, true)
	if size == 0 {
		return f, nil
	}
	if err := s.change("reserve room", func() error { return f.Truncate(size) }); err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	return f, nil
}

// fill writes a temporary file and renames it to path.
func (s *Store) fill(f *os.File, path string, r io.Reader) error {
	return s.settle(f, path, func() error { _, err := io.Copy(f, r); return err })
}

// settle completes a temporary file with write, and renames it to path. If it fails, it removes the file.
func (s *Store) settle(f *os.File, path string, write func() error) (err error) {
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	steps := []struct {
		what string
		do   func() error
	}{
		{"write", write},
		{"sync", f.Sync},
		{"create a folder", func() error { return os.MkdirAll(filepath.Dir(path), dirMode) }},
		{"rename", func() error { return settle(f, path) }},
		{"sync a folder", func() error { return syncDir(filepath.Dir(path)) }},
	}
	for _, step := range steps {
		if err := s.change(step.what, step.do); err != nil {
			return err
		}
	}
	s.stamp(path)
	return nil
}

// change runs do, a change of the directory, unless Options.Before fails.
func (s *Store) change(what string, do func() error) error {
	if s.before != nil {
		if err := s.before(what); err != nil {
			return err
		}
	}
	return do()
}

// stamp records the time of the last use of a new entry: now, or never for a store of
// Peek.
func (s *Store) stamp(path string) {
	if s.peeks {
		_ = os.Chtimes(path, time.Unix(0, 0), time.Unix(0, 0))
		return
	}
	s.touch(path)
}

// touch records a use of an entry as its modification time, for eviction. A failure is
// harmless.
func (s *Store) touch(path string) {
	if s.peeks {
		return
	}
	now := s.now()
	_ = os.Chtimes(path, now, now)
}

// quarantine moves a damaged entry to the quarantine directory for diagnosis. It keeps
// one entry for each name.
func (s *Store) quarantine(path, name string) {
	aside := filepath.Join(s.dir, quarantineDir, name)
	if err := s.change("put aside", func() error { return os.Rename(path, aside) }); err != nil {
		_ = os.Remove(path)
	}
}
