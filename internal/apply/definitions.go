package apply

import (
	"sync"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// establishing is longer than an API server usually needs until it serves a definition that was written. A read that others
// share may not show the names of one that was written a shorter time ago.
const establishing = 5 * time.Second

// definitionWrites records the last write of a definition in each API group. It is safe for concurrent use.
type definitionWrites struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// record records the write of an object, if it is a definition.
func (w *definitionWrites) record(ref plan.Ref) {
	if !defines(ref.Kind) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last == nil {
		w.last = map[string]time.Time{}
	}
	w.last[groupOf(ref)] = time.Now()
}

// isQuiet reports whether shared reads show the definitions of all groups.
func (w *definitionWrites) isQuiet(groups map[string]bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for group := range groups {
		if at, ok := w.last[group]; ok && time.Since(at) < establishing {
			return false
		}
	}
	return true
}
