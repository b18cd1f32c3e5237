package establishment

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
)

// event is an event of the watch of CRDs.
type event struct {
	kind, name string
	// version is the resourceVersion, and generation the generation of an update, if it differs.
	version    string
	generation int64
}

func (e event) deliver(to *Tracker) {
	o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: e.name, ResourceVersion: e.version, Generation: 1 + e.generation,
	}}
	old := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: e.name, ResourceVersion: "1", Generation: 1}}
	switch e.kind {
	case "listed":
		to.added(o, true)
	case "added":
		to.added(o, false)
	case "updated":
		to.updated(old, o)
	case "deleted":
		to.deleted(toolscache.DeletedFinalStateUnknown{Key: e.name, Obj: o})
	}
}

// The wait for new CRDs ends when the watch has shown both updates of each; after a time without progress; and at its
// limit. It does not wait for CRDs of which nothing is known.
func TestWaitFollowsTheWatch(t *testing.T) {
	const quiet, limit = 2 * time.Second, 20 * time.Second
	added, first, second := event{kind: "added", name: "a"}, event{kind: "updated", name: "a", version: "2"},
		event{kind: "updated", name: "a", version: "3"}
	names, both := []string{"a"}, []string{"a", "b"}
	for name, tc := range map[string]struct {
		names, created []string
		// events come one each second, the first before the wait.
		events []event
		want   time.Duration
	}{
		"Known":       {names, names, []event{added, first, second}, 2 * time.Second},
		"NotShownYet": {names, names, nil, quiet},
		"NotCreated":  {names, nil, nil, 0},
		"Listed":      {names, nil, []event{{kind: "listed", name: "a"}}, 0},
		"Stalled":     {names, names, []event{added, first}, time.Second + quiet},
		"OneOfTwo":    {both, both, []event{added, first, second}, 2*time.Second + quiet},
		"Resync": {names, names, []event{added, first, {kind: "updated", name: "a", version: "1"}}, time.Second +
			quiet},
		"NewContent": {
			names, names, []event{added, first, {kind: "updated", name: "a", version: "3", generation: 1}}, time.Second + quiet,
		},
		"AnotherProgresses": {
			names, nil, []event{added, {kind: "added", name: "b"}, {kind: "updated", name: "b", version: "2"}, first, second},
			4 * time.Second,
		},
		"AnotherIsChanged": {
			names, nil,
			[]event{added, {kind: "updated", name: "old", version: "2"}, {kind: "updated", name: "old", version: "3"}}, quiet,
		},
		"Deleted": {names, nil, []event{added, {kind: "deleted", name: "a"}}, quiet},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tracker, began := &Tracker{}, time.Now()
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				created := map[string]bool{}
				for _, name := range tc.created {
					created[name] = true
				}
				if len(tc.events) > 0 {
					tc.events[0].deliver(tracker)
					go func() {
						for _, next := range tc.events[1:] {
							time.Sleep(time.Second)
							next.deliver(tracker)
						}
					}()
				}
				if err := tracker.Wait(ctx, tc.names, created, quiet, limit); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took != tc.want {
					t.Errorf("waited %s, want %s", took, tc.want)
				}
			})
		})
	}
}

// The limit and the context end a wait during which others make progress.
func TestWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, began := &Tracker{}, time.Now()
		event{kind: "added", name: "a"}.deliver(tracker)
		others, stopOthers := context.WithCancel(t.Context())
		var delivery sync.WaitGroup
		delivery.Go(func() {
			for others.Err() == nil {
				time.Sleep(time.Second)
				event{kind: "added", name: "b"}.deliver(tracker)
			}
		})
		if err := tracker.Wait(t.Context(), []string{"a"}, nil, 2*time.Second, 5*time.Second); err != nil ||
			time.Since(began) != 5*time.Second {
			t.Errorf("waited %s, %v; want the limit of 5s", time.Since(began), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began = time.Now()
		if err := tracker.Wait(ctx, []string{"a"}, nil, 2*time.Second, 5*time.Second); err == nil ||
			time.Since(began) != 3*time.Second {
			t.Errorf("waited %s, %v; want the end of the context after 3s", time.Since(began), err)
		}
		stopOthers()
		delivery.Wait()
	})
}
