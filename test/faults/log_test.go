package faults_test

import (
	"bytes"
	"strings"
	"sync"
)

// journal keeps what package managers log, for rounds that fail.
type journal struct {
	mu    sync.Mutex
	lines bytes.Buffer
}

// Write implements [io.Writer].
func (j *journal) Write(p []byte) (int, error) {
	const most = 256 << 10
	j.mu.Lock()
	defer j.mu.Unlock()
	if extra := j.lines.Len() - most; extra > 0 {
		j.lines.Next(extra)
	}
	return j.lines.Write(p)
}

// about gives the last few lines that hold a word.
func (j *journal) about(word string) string {
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
