package state

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/pause"
)

// slowReader lists one revision for each list that has begun, all of them of the package boats. A list takes a second.
type slowReader struct {
	client.Reader
	mu    sync.Mutex
	lists int
}

func (s *slowReader) List(ctx context.Context, into client.ObjectList, _ ...client.ListOption) error {
	s.mu.Lock()
	s.lists++
	n := s.lists
	s.mu.Unlock()
	for i := range n {
		rev := v1.ProviderRevision{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("boats-", i), Labels: map[string]string{v1.LabelPackage: "boats"}}}
		into.(*v1.ProviderRevisionList).Items = append(into.(*v1.ProviderRevisionList).Items, rev)
	}
	return pause.For(ctx, time.Second)
}

// Concurrent callers share lists. A list that is in progress when a caller arrives may have begun before the change that the
// caller needs to see, so its result is not used.
func TestConcurrentCallersShareLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowReader{}
		l := &LiveRevisions{Reader: s}
		var callers sync.WaitGroup
		for i := range 51 {
			if i == 1 {
				synctest.Wait() // The first list has begun.
				_ = pause.For(t.Context(), time.Millisecond)
			}
			callers.Go(func() {
				boats := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "boats"}}
				if got, err := l.Of(t.Context(), boats); err != nil || len(got) != min(i, 1)+1 {
					t.Errorf("caller %d got list %d, %v", i, len(got), err)
				}
			})
		}
		callers.Wait()
		rafts := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "rafts"}}
		if got, err := l.Of(t.Context(), rafts); err != nil || len(got) != 0 || s.lists != 3 {
			t.Errorf("%d revisions of another package, %v, after %d lists", len(got), err, s.lists)
		}
	})
}
