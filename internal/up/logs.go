package up

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
)

const (
	// logLimit is the size in bytes above which a log starts anew at the next start.
	logLimit = 10 << 20
	// tailLimit is how much of the end of a log is read for a message.
	tailLimit = 16 << 10
	// tailLines is how many lines of it are shown.
	tailLines = 8
)

// A logFile is a log of the directory that this start appends to.
type logFile struct {
	*os.File
	// start is the size of the log before this start.
	start int64
}

// openLog opens a log of the directory for appending, and empties it first when it
// has grown beyond the limit.
func openLog(folder, name string) (*logFile, error) {
	path := filepath.Join(folder, name)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, ErrDataDirUnusable.New(err, "cannot open the log %s", path)
	}
	l := &logFile{File: f}
	if l.start, err = f.Seek(0, io.SeekEnd); err == nil && l.start > logLimit {
		l.start, err = 0, f.Truncate(0)
	}
	if err != nil {
		return nil, errors.Join(ErrDataDirUnusable.New(err, "cannot prepare the log %s", path), f.Close())
	}
	return l, nil
}

// lastLines returns the last lines that were appended by this start, for a message. An
// unreadable log has no lines.
func (l *logFile) lastLines() string {
	f, err := os.Open(l.Name())
	if err != nil {
		return ""
	}
	defer f.Close()
	from := l.start
	if info, err := f.Stat(); err == nil {
		from = max(from, info.Size()-tailLimit)
	}
	content, err := io.ReadAll(io.NewSectionReader(f, from, tailLimit))
	if err != nil {
		return ""
	}
	lines := strings.Split(string(bytes.TrimSpace(content)), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}
