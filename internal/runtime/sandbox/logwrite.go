package sandbox

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

const (
	// DefaultLogSize is the size in bytes at which a log is rotated. At most two files
	// are kept.
	DefaultLogSize = 10 << 20
	// maxLine is how much longer a log gets than that for the sake of whole lines.
	maxLine = 64 << 10
	// keptLogs is the number of logs to keep of runtimes that no longer run.
	keptLogs = 100
)

// logPath returns the path of the log of a runtime, and oldLogPath the path of the
// rotated one.
func logPath(folder, name string) string    { return filepath.Join(folder, name+".log") }
func oldLogPath(folder, name string) string { return logPath(folder, name) + ".1" }

// logFile writes the output of a runtime. It drops output that cannot be written: a full
// disk must not stop the runtime.
type logFile struct {
	path string
	most int64

	mu   sync.Mutex
	file *os.File
	size int64
	// lost is the first failure since the last write that worked.
	lost error
}

func openLog(folder, name string, most int64) (*logFile, error) {
	l := &logFile{path: logPath(folder, name), most: most}
	return l, l.open()
}

func (l *logFile) open() error {
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	l.file, l.size = f, info.Size()
	return nil
}

// Write implements io.Writer. It never fails.
func (l *logFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	rest := p
	if l.size+int64(len(rest)) > l.most {
		// Finish the current line.
		end := bytes.IndexByte(rest, '\n') + 1
		if end == 0 && l.size < l.most+maxLine {
			end = len(rest)
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

func (l *logFile) append(p []byte) {
	if len(p) == 0 || l.file == nil {
		return
	}
	n, err := l.file.Write(p)
	l.size += int64(n)
	l.lost = err
}

func (l *logFile) rotate() {
	if l.file == nil {
		return
	}
	err := errors.Join(l.file.Close(), os.Rename(l.path, l.path+".1"))
	l.file = nil
	l.lost = errors.Join(err, l.open())
}

func (l *logFile) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return l.lost
	}
	err := errors.Join(l.lost, l.file.Close())
	l.file = nil
	return err
}

// pruneLogs removes the logs of the runtimes that have not run for longest.
func pruneLogs(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	var infos []fs.FileInfo
	for _, e := range entries {
		if info, err := e.Info(); err == nil && filepath.Ext(e.Name()) == ".log" {
			infos = append(infos, info)
		}
	}
	if len(infos) <= keptLogs {
		return nil
	}
	oldestFirst(infos)
	for _, info := range infos[:len(infos)-keptLogs] {
		path := filepath.Join(folder, info.Name())
		err = errors.Join(err, os.Remove(path), ignoreAbsent(os.Remove(path+".1")))
	}
	return err
}
