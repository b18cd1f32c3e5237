package state

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
		rev := v1.ProviderRevision{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("boats-", i), Labels: map[string]string{
			v1.LabelPackage: "boats",
		}}}
		into.(*v1.ProviderRevisionList).Items = append(into.(*v1.ProviderRevisionList).Items, rev)
	}
	return pause.For(ctx, time.Second)
}

// Concurrent callers share lists. A list that is in progress when a caller arrives may have begun before the change
// that the caller needs to see, so its result is not used.
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

// numbered lists no revisions but those of the package restored, with a resourceVersion.
type numbered struct {
	client.Reader
	version string
}

func (n numbered) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	into.SetResourceVersion(n.version)
	rev := v1.ProviderRevision{ObjectMeta: metav1.ObjectMeta{Name: "restored-1", Labels: map[string]string{
		v1.LabelPackage: "restored",
	}}}
	into.(*v1.ProviderRevisionList).Items = append(into.(*v1.ProviderRevisionList).Items, rev)
	return nil
}

// The last list shows that a package is new if it is recent, and not older than the package, unless it contains a
// revision or this process has created one meanwhile.
func TestPackageIsNew(t *testing.T) {
	for name, tc := range map[string]struct {
		pkg, version, list string
		// age is the age of the list, and created the time since the creation of a revision; 0 if there is none.
		age, created time.Duration
		want         bool
	}{
		"New":                 {"new", "7", "7", 0, 0, true},
		"Before":              {"new", "9", "10", coverage, 0, true},
		"After":               {"new", "10", "9", 0, 0, false},
		"Old":                 {"new", "7", "7", coverage + 1, 0, false},
		"Restored":            {"restored", "7", "7", 0, 0, false},
		"Unknown":             {"new", "7", "x", 0, 0, false},
		"Created":             {"new", "7", "7", time.Second, time.Second, false},
		"CreatedBeforeTheEnd": {"new", "7", "7", time.Second, created, false},
		"CreatedLongAgo":      {"new", "7", "7", time.Second, created + 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &LiveRevisions{Reader: numbered{version: tc.list}}
				p := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: tc.pkg, UID: types.UID(tc.pkg), ResourceVersion: tc.version}}
				if l.IsNew(p) {
					t.Error("a package is new before the first list")
				}
				if tc.created > 0 {
					l.Created(p)
				}
				time.Sleep(tc.created - tc.age)
				if _, err := l.Of(t.Context(), p); err != nil {
					t.Fatal(err)
				}
				time.Sleep(tc.age)
				if got := l.IsNew(p); got != tc.want {
					t.Errorf("got %t", got)
				}
			})
		})
	}
}
