package manager

import (
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// behindPause is how long a look waits for what was watched to have what was
	// written last, and behindLimit how long after that write it does: a
	// server that was brought back from a backup counts from an earlier number.
	behindPause = 10 * time.Millisecond
	behindLimit = 2 * time.Second
)

// ownWrites remember what was written last of an object, until it was seen. A look at
// what was watched before that would decide the same once more, and be refused.
type ownWrites struct {
	now func() time.Time

	mu   sync.Mutex
	last map[types.UID]ownWrite
}

type ownWrite struct {
	version uint64
	at      time.Time
}

// wrote takes the version that an object has since it was written.
func (w *ownWrites) wrote(o metav1.Object) {
	version, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last == nil {
		w.last = map[types.UID]ownWrite{}
	}
	w.last[o.GetUID()] = ownWrite{version, w.now()}
}

// behind reports whether an object is older than what was written of it.
func (w *ownWrites) behind(o metav1.Object) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	last, ok := w.last[o.GetUID()]
	if !ok {
		return false
	}
	version, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	if err == nil && version < last.version && w.now().Sub(last.at) < behindLimit {
		return true
	}
	delete(w.last, o.GetUID())
	return false
}
