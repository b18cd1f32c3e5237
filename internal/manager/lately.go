package manager

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/plan"
	"github.com/xpkg-dev/xpkg/internal/revision"
)

// lately remembers what was written of the objects of revisions until the status that
// records it can be read back. The client library answers reads from a cache that
// lags behind writes, and an object that was just written would look like one that
// somebody else has changed.
type lately struct {
	mu      sync.Mutex
	written map[types.UID]map[plan.Ref]plan.Written
}

// put remembers what was written for a revision.
func (l *lately) put(rev v1.PackageRevision, written map[plan.Ref]plan.Written) {
	if len(written) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.written == nil {
		l.written = map[types.UID]map[plan.Ref]plan.Written{}
	}
	if l.written[rev.GetUID()] == nil {
		l.written[rev.GetUID()] = map[plan.Ref]plan.Written{}
	}
	maps.Copy(l.written[rev.GetUID()], written)
}

// known is what is recorded of the objects of a package, with what its revisions
// have written lately.
func (l *lately) known(revisions []v1.PackageRevision) map[plan.Ref]plan.Written {
	known := revision.Written(revisions)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, rev := range revisions {
		news := false
		for ref, w := range l.written[rev.GetUID()] {
			if w.Generation > known[ref].Generation || w.UID != known[ref].UID {
				known[ref], news = w, true
			}
		}
		if !news {
			delete(l.written, rev.GetUID())
		}
	}
	return known
}

// drop forgets a revision that is gone.
func (l *lately) drop(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.written, uid)
}
