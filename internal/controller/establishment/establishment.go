// Package establishment follows the CRDs that the API server establishes.
package establishment

import (
	"context"
	"fmt"
	"sync"
	"time"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/controller/watch"
)

// establishedUpdates is the number of times that an API server updates the status of a new CRD until it serves the
// kind: it accepts the names, and establishes the CRD.
const establishedUpdates = 2

// A Tracker determines from the watch of CRDs when it is worth asking whether the API server serves new kinds. The
// metadata of a CRD show that its status changed, but not how, so only discovery proves that a kind is served. All
// packages share one. The zero value is ready for use.
type Tracker struct {
	mu sync.Mutex
	// updates are the numbers of status updates of the CRDs that were created while they were watched, by name.
	updates map[string]int
	// progress is closed when a CRD comes one step closer to serving its kind.
	progress chan struct{}
}

// Watch follows the CRDs in a cache.
func (t *Tracker) Watch(ctx context.Context, c cache.Cache) error {
	informer, err := c.GetInformer(ctx, watch.Definitions(), cache.BlockUntilSynced(false))
	if err == nil {
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
			AddFunc: t.added, UpdateFunc: t.updated, DeleteFunc: t.deleted,
		})
	}
	if err != nil {
		return fmt.Errorf("watch the CustomResourceDefinitions: %w", err)
	}
	return nil
}

// added starts to count the updates of a new CRD. Those of a CRD that was created before the watch are unknown.
func (t *Tracker) added(object any, isInInitialList bool) {
	o, ok := object.(client.Object)
	if !ok || isInInitialList {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.updates == nil {
		t.updates = map[string]int{}
	}
	t.updates[o.GetName()] = 0
	t.announce()
}

// updated counts an update of the status, which leaves the generation as it is.
func (t *Tracker) updated(before, after any) {
	old, ok := before.(client.Object)
	now, ok2 := after.(client.Object)
	if !ok || !ok2 || old.GetGeneration() != now.GetGeneration() || old.GetResourceVersion() == now.GetResourceVersion() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if n, ok := t.updates[now.GetName()]; ok && n < establishedUpdates {
		t.updates[now.GetName()] = n + 1
		t.announce()
	}
}

func (t *Tracker) deleted(object any) {
	if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	if o, ok := object.(client.Object); ok {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.updates, o.GetName())
	}
}

// announce wakes the callers of Wait. The mutex must be held.
func (t *Tracker) announce() {
	if t.progress != nil {
		close(t.progress)
		t.progress = nil
	}
}

// Wait returns when the API server has probably established some CRDs, when no new CRD of any package has made progress
// for a while, or at the end of a time limit. Created are those among the CRDs that the caller has just created: the
// watch may not show them yet.
func (t *Tracker) Wait(ctx context.Context, names []string, created map[string]bool, quiet, limit time.Duration) error {
	end := time.NewTimer(limit)
	defer end.Stop()
	for {
		var progress <-chan struct{}
		if names, progress = t.pending(names, created); progress == nil {
			return nil
		}
		silence := time.NewTimer(quiet)
		select {
		case <-progress:
			silence.Stop()
		case <-silence.C:
			return nil
		case <-end.C:
			silence.Stop()
			return nil
		case <-ctx.Done():
			silence.Stop()
			return ctx.Err()
		}
	}
}

// pending returns the names from the first CRD on that is probably not established yet, and a channel that is closed at
// the next progress of any new CRD; nil if all are established.
func (t *Tracker) pending(names []string, created map[string]bool) ([]string, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, name := range names {
		if n, known := t.updates[name]; known && n < establishedUpdates || !known && created[name] {
			if t.progress == nil {
				t.progress = make(chan struct{})
			}
			return names[i:], t.progress
		}
	}
	return nil, nil
}
