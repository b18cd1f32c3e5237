package faults_test

import (
	"bytes"
	"strings"
	"sync"
)

// logTail keeps the last output of package managers, for instances that fail.
type logTail struct {
	mu    sync.Mutex
	lines bytes.Buffer
}

// Write implements [io.Writer].
func (j *logTail) Write(p []byte) (int, error) {
	const most = 256 << 10
	j.mu.Lock()
	defer j.mu.Unlock()
	if extra := j.lines.Len() - most; extra > 0 {
		j.lines.Next(extra)
	}
	return j.lines.Write(p)
}

// matching returns the last lines that contain a word.
func (j *logTail) matching(word string) string {
	const most = 25
	j.mu.Lock()
	defer j.mu.Unlock()
	var out []string
	for line := range strings.Lines(j.lines.String()) {
		if strings.Contains(line, word) {
			out = append(out, line)
		}
	}
	return strings.Join(out[max(0, len(out)-most):], "")
}
