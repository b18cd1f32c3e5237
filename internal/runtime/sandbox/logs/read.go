package logs

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	// pollInterval is the polling interval when a log is followed.
	pollInterval = 200 * time.Millisecond
	// tailBlock is the number of bytes that are read at a time from the end of a log.
	tailBlock = 64 << 10
)

// Open reads the log of a runtime in the folder of a supervisor, which may be stopped or run in
// another process. It starts with the last tail lines: all lines if tail is negative, none if it is
// zero. With follow, it continues across rotations until the context is done. The reader returns
// io.EOF at the end of the log, or when the context is done. Open fails with NoProgramLog if the
// log does not exist or cannot be read.
func Open(ctx context.Context, dir, name string, follow bool, tail int) (io.ReadCloser, error) {
	if !validName().MatchString(name) {
		return nil, ErrNoLog.New(nil, "there is no runtime %q", name)
	}
	r := &reader{ctx: ctx, follow: follow, path: logPath(dir, name)}
	old, err := os.Open(rotatedPath(dir, name))
	if err := ignoreAbsent(err); err != nil {
		return nil, ErrNoLog.New(err, "cannot read the log of %s", name)
	}
	now, err := os.Open(r.path)
	if err := ignoreAbsent(err); err != nil {
		return nil, errors.Join(ErrNoLog.New(err, "cannot read the log of %s", name), closeAll(old))
	}
	r.files = slices.DeleteFunc([]*os.File{old, now}, func(f *os.File) bool { return f == nil })
	if len(r.files) == 0 {
		return nil, ErrNoLog.New(nil, "there is no log of a runtime %s in %s", name, filepath.Join(dir, Folder))
	}
	if err := r.seek(tail); err != nil {
		return nil, errors.Join(ErrNoLog.New(err, "cannot read the log of %s", name), r.Close())
	}
	return r, nil
}

// reader reads the files of a log, the oldest first.
type reader struct {
	ctx    context.Context // io.Reader has no context parameter.
	follow bool
	path   string
	files  []*os.File
}

// Read implements [io.Reader].
func (r *reader) Read(p []byte) (int, error) {
	for {
		n, err := r.files[0].Read(p)
		if n > 0 || err != nil && !errors.Is(err, io.EOF) {
			return n, err
		}
		more, err := r.next()
		if err != nil {
			return 0, err
		}
		if more {
			continue
		}
		if !r.follow || !r.wait() {
			return 0, io.EOF
		}
	}
}

// next switches to the next file if there is one. The writer renames a file before it
// creates a new one, so the current file is complete as soon as the path refers to
// another file.
func (r *reader) next() (bool, error) {
	if len(r.files) == 1 {
		f, err := r.successor()
		if f == nil {
			return errors.Is(err, errUnread), ignore(err, errUnread)
		}
		r.files = append(r.files, f)
	}
	err := r.files[0].Close()
	r.files = r.files[1:]
	return true, err
}

// errUnread is returned if a file was written to before it was rotated.
var errUnread = errors.New("there is more to read")

// successor opens the file that replaced the one being read. It returns nil if the file
// was not replaced.
func (r *reader) successor() (*os.File, error) {
	mine, err := r.files[0].Stat()
	if err != nil {
		return nil, err
	}
	now, err := os.Stat(r.path)
	if err != nil || os.SameFile(mine, now) {
		return nil, ignore(err, fs.ErrNotExist)
	}
	// From now on, the rotated file is not written to.
	if mine, err = r.files[0].Stat(); err != nil {
		return nil, err
	}
	if at, err := r.files[0].Seek(0, io.SeekCurrent); err != nil || at < mine.Size() {
		return nil, cmp.Or(err, errUnread)
	}
	f, err := os.Open(r.path)
	return f, ignore(err, fs.ErrNotExist)
}

// Close implements [io.Closer].
func (r *reader) Close() error { return closeAll(r.files...) }

// seek moves to the last tail lines.
func (r *reader) seek(tail int) error {
	if tail < 0 {
		return nil
	}
	for i := len(r.files) - 1; i >= 0; i-- {
		found, err := seekLines(r.files[i], tail)
		if err != nil {
			return err
		}
		if tail -= found; tail <= 0 {
			err := closeAll(r.files[:i]...)
			r.files = r.files[i:]
			return err
		}
	}
	return nil
}

// seekLines moves to the start of the last lines of a file. It returns the number of
// lines found, up to the requested number. A final line without a line break counts.
func seekLines(f *os.File, lines int) (int, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if lines == 0 {
		_, err := f.Seek(0, io.SeekEnd)
		return 0, err
	}
	found := 0
	buf := make([]byte, tailBlock)
	// The last byte belongs to the last line, with or without a line break.
	for end := info.Size() - 1; end > 0; {
		block := buf[:min(end, tailBlock)]
		end -= int64(len(block))
		if _, err := f.ReadAt(block, end); err != nil {
			return 0, err
		}
		for i := bytes.LastIndexByte(block, '\n'); i >= 0; i = bytes.LastIndexByte(block[:i], '\n') {
			if found++; found == lines {
				_, err := f.Seek(end+int64(i)+1, io.SeekStart)
				return found, err
			}
		}
	}
	if info.Size() > 0 {
		found++
	}
	_, err = f.Seek(0, io.SeekStart)
	return found, err
}

func closeAll(files ...*os.File) error {
	var err error
	for _, f := range files {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}

// wait waits for the polling interval, and returns false if the context is done.
func (r *reader) wait() bool {
	timer := time.NewTimer(pollInterval)
	defer timer.Stop()
	select {
	case <-r.ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

func ignoreAbsent(err error) error { return ignore(err, fs.ErrNotExist) }

func ignore(err, expected error) error {
	if errors.Is(err, expected) {
		return nil
	}
	return err
}
