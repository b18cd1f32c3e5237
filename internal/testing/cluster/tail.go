package cluster

import "sync"

// tailSize is the number of bytes of a log that are kept.
const tailSize = 16 << 10

// tail keeps the last tailSize bytes that are written to it. It is safe for concurrent use.
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
