package oci

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/xpkg-dev/xpkg/internal/failure"
)

// write puts what r gives under path: whole, or not at all. Room is made for it
// first. An error of r comes back as it is, so that the network is not blamed on
// the disk.
func (s *Store) write(ctx context.Context, path string, need Need, r io.Reader) error {
	f, err := s.reserve(ctx, need)
	if err != nil {
		return s.writeError(err)
	}
	in := &sourceReader{r: r}
	if err := s.fill(f, path, in); err != nil {
		if in.err != nil {
			return in.err
		}
		return s.writeError(err)
	}
	return nil
}

// writeSmall is write for what the store keeps about itself, for which no room is
// made.
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

// writeError tells that the disk failed, unless the error tells more than that.
func (s *Store) writeError(err error) error {
	var known *failure.Error
	if errors.As(err, &known) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return ErrStoreWrite.New(err, "cannot write to the store %s", s.dir)
}

// reserve makes a temporary file that takes up what is going to be written, so
// that nobody else counts on that room.
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

// temp makes a temporary file of a size. It is locked for as long as it is open,
// which tells it from one that a killed process left behind.
func (s *Store) temp(size int64) (f *os.File, err error) {
	err = s.change("make a temporary file", func() error {
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

// fill writes a temporary file and makes it the entry under path.
func (s *Store) fill(f *os.File, path string, r io.Reader) (err error) {
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
		{"write", func() error { _, err := io.Copy(f, r); return err }},
		{"sync", f.Sync},
		{"make a folder", func() error { return os.MkdirAll(filepath.Dir(path), dirMode) }},
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

// change makes a change of the directory, unless whoever is told of it before
// prevents it.
func (s *Store) change(what string, do func() error) error {
	if s.before != nil {
		if err := s.before(what); err != nil {
			return err
		}
	}
	return do()
}

// stamp records when a new entry was last used: now, or never when this store only
// looks.
func (s *Store) stamp(path string) {
	if s.peeks {
		_ = os.Chtimes(path, time.Unix(0, 0), time.Unix(0, 0))
		return
	}
	s.touch(path)
}

// touch records the use of an entry as its modification time, for whoever has to
// choose what to evict. Failing to record it is harmless.
func (s *Store) touch(path string) {
	if s.peeks {
		return
	}
	now := s.now()
	_ = os.Chtimes(path, now, now)
}

// quarantine takes a damaged entry out of the way and keeps it for whoever wants
// to know what happened. One entry is kept for each name.
func (s *Store) quarantine(path, name string) {
	aside := filepath.Join(s.dir, quarantineDir, name)
	if err := s.change("put aside", func() error { return os.Rename(path, aside) }); err != nil {
		_ = os.Remove(path)
	}
}

// sourceReader remembers why reading failed.
type sourceReader struct {
	r   io.Reader
	err error
}

func (s *sourceReader) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}
