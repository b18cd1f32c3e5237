package upgrade_test

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// load writes custom resources of the provider continuously, and records the accepted writes.
type load struct {
	suite *suite

	mu       sync.Mutex
	accepted map[string]int64
	writes   int
	failed   []error
}

// things is the number of custom resources.
const things = 20

// startLoad writes until it is stopped.
func startLoad(s *suite) (l *load, stop func()) {
	l = &load{suite: s, accepted: map[string]int64{}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for n := int64(1); ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				l.write(fmt.Sprintf("thing-%d", n%things), n)
			}
		}
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	s.Cleanup(stop)
	return l, stop
}

// write creates or changes one Thing with a forced server-side apply.
func (l *load) write(name string, number int64) {
	t := newThing(name)
	t.Object["spec"] = map[string]any{"number": number}
	err := l.suite.Client.Apply(
		context.Background(), client.ApplyConfigurationFromUnstructured(t), client.FieldOwner("load"), client.ForceOwnership,
	)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writes++
	if err != nil {
		l.failed = append(l.failed, fmt.Errorf("%s at %d: %w", name, number, err))
		return
	}
	l.accepted[name] = number
}

func newThing(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "upgrade.test", Version: "v1", Kind: "Thing"})
	u.SetName(name)
	return u
}

// untilSeen waits until a version of the provider has processed all accepted writes.
func (l *load) untilSeen(version string) {
	s := l.suite
	s.Helper()
	l.mu.Lock()
	accepted := maps.Clone(l.accepted)
	l.mu.Unlock()
	wait.Until(s, env.Limit, "all writes are processed by "+version, func() (string, bool) {
		for name, number := range accepted {
			t := newThing(name)
			if err := s.Client.Get(s.Context(), client.ObjectKeyFromObject(t), t); err != nil {
				return err.Error(), false
			}
			written, _, _ := unstructured.NestedInt64(t.Object, "spec", "number")
			seen, _, _ := unstructured.NestedInt64(t.Object, "status", "seen")
			by, _, _ := unstructured.NestedString(t.Object, "status", "by")
			if written < number {
				s.Fatalf("%s: the write of %d is lost, it has %d", name, number, written)
			}
			if seen < number || by != version {
				return fmt.Sprintf("%s at %d: %d seen by %q", name, number, seen, by), false
			}
		}
		return "", true
	})
}
