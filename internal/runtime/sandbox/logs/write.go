package logs

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

const (
	// DefaultSize is the size in bytes at which a log is rotated. At most two files
	// are kept.
	DefaultSize = 10 << 20
	// maxLine is the number of bytes by which a log may exceed its limit to end with a
	// whole line.
	maxLine = 64 << 10
	// maxKept is the maximum number of logs that Prune keeps.
	maxKept = 100
)

// Writer writes the output of a runtime to its log. It drops output that cannot be written, because
// a full disk must not stop the runtime. It is safe for concurrent use.
type Writer struct {
	path  string
	limit int64

	mu   sync.Mutex
	file *os.File
	size int64
	// inLine reports whether the file may end within a line.
	inLine bool
	// lost is the error of the last write, or nil.
	lost error
}

// NewWriter opens the log of a runtime in the folder of a supervisor. The log is rotated
// at limit bytes.
func NewWriter(dir, name string, limit int64) (*Writer, error) {
	l := &Writer{path: logPath(dir, name), limit: limit}
	return l, l.open()
}

func (l *Writer) open() error {
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	l.file, l.size = f, info.Size()
	l.inLine = l.size > 0
	return nil
}

// Write implements io.Writer. It never fails.
func (l *Writer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	rest := p
	if l.size > 0 && l.size+int64(len(rest)) > l.limit {
		end := 0
		if l.inLine {
			end = bytes.IndexByte(rest, '\n') + 1
			if end == 0 && l.size < l.limit+maxLine {
				end = len(rest)
			}
		}
		l.append(rest[:end])
		rest = rest[end:]
		if len(rest) > 0 {
			l.rotate()
		}
	}
	l.append(rest)
	return len(p), nil
}

func (l *Writer) append(p []byte) {
	if len(p) == 0 || l.file == nil {
		return
	}
	n, err := l.file.Write(p)
	l.size += int64(n)
	l.inLine = n > 0 && p[n-1] != '\n'
	l.lost = err
}

func (l *Writer) rotate() {
	if l.file == nil {
		return
	}
	err := errors.Join(l.file.Close(), os.Rename(l.path, l.path+rotatedSuffix))
	l.file = nil
	l.lost = errors.Join(err, l.open())
}

// Close closes the log. It returns the error of the last write.
func (l *Writer) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return l.lost
	}
	err := errors.Join(l.lost, l.file.Close())
	l.file = nil
	return err
}

// Prune creates the log folder of a supervisor, and removes all but the most recently
// written logs.
func Prune(dir string) error {
	folder := filepath.Join(dir, Folder)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	var infos []fs.FileInfo
	for _, e := range entries {
		if info, err := e.Info(); err == nil && filepath.Ext(e.Name()) == suffix {
			infos = append(infos, info)
		}
	}
	if len(infos) <= maxKept {
		return nil
	}
	slices.SortFunc(infos, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, info := range infos[:len(infos)-maxKept] {
		path := filepath.Join(folder, info.Name())
		err = errors.Join(err, os.Remove(path), ignoreAbsent(os.Remove(path+rotatedSuffix)))
	}
	return err
}
