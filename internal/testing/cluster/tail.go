package cluster

import "sync"

// tailSize is how much of a log is kept, in bytes.
const tailSize = 16 << 10

// A tail keeps the last tailSize bytes that are written to it.
type tail struct {
	mu      sync.Mutex
	content []byte
}

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.content = append(t.content, p...)
	if extra := len(t.content) - tailSize; extra > 0 {
		t.content = append(t.content[:0], t.content[extra:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.content)
}
