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
	// logLimit is the size in bytes above which a log is emptied at the next start.
	logLimit = 10 << 20
	// tailLimit is the number of bytes that are read from the end of a log for a message.
	tailLimit = 16 << 10
	// tailLines is the number of lines of a log in a message.
	tailLines = 8
)

// logFile is a log to which this start appends.
type logFile struct {
	*os.File
	// start is the size of the log before this start.
	start int64
}

// openLog opens a log for appending, and empties it first if it is larger than logLimit.
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

// lastLines returns the last lines that were appended since openLog, for a message. It returns ""
// if the log cannot be read.
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
