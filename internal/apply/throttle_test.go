package apply_test

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// narrow is an API server that refuses more than a few calls at once.
type narrow struct {
	mu             sync.Mutex
	room, underWay int
	most, refused  int
}

func (n *narrow) answer(r *http.Request) (*http.Response, error) {
	n.mu.Lock()
	if n.underWay == n.room {
		n.refused++
		n.mu.Unlock()
		return statusReply(429, metav1.StatusReasonTooManyRequests, "Retry-After", "1")(r)
	}
	n.underWay++
	n.most = max(n.most, n.underWay)
	n.mu.Unlock()
	time.Sleep(50 * time.Millisecond)
	n.mu.Lock()
	n.underWay--
	n.mu.Unlock()
	return holdsObject(metav1.ObjectMeta{UID: "u"})(r)
}

func creates(plural string, n int) plan.Plan {
	var p plan.Plan
	for i := range n {
		p.Changes = append(p.Changes, plan.Change{
			Action: plan.Create, Ref: definition(plural + strconv.Itoa(i) + ".apply.test"),
		})
	}
	return p
}

// Several plans that are applied at once share the capacity of the server: none
// fails, and the server throttles only a few of their writes.
func TestConcurrentPlansShareTheCapacityOfTheServer(t *testing.T) {
	for _, room := range []int{1, 3, 8, 20} {
		t.Run(strconv.Itoa(room), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &narrow{room: room}
				c, _ := play(t, server.answer)
				var group sync.WaitGroup
				for i := range 5 {
					group.Go(func() {
						written, err := c.Run(t.Context(), creates("plan"+strconv.Itoa(i)+"x", 100), always([]byte("{}")))
						if err != nil || len(written) != 100 {
							t.Errorf("plan %d: %d written: %v", i, len(written), err)
						}
					})
				}
				group.Wait()
				if server.refused > 25 {
					t.Errorf("%d of 500 writes were refused", server.refused)
				}
				t.Logf("room for %d: at most %d at once, %d refused", room, server.most, server.refused)
			})
		})
	}
}

// Reads are answered at once, however many writes wait.
func TestReadsDoNotWaitForWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := play(t, func(r *http.Request) (*http.Response, error) {
			if r.Method != http.MethodGet {
				time.Sleep(time.Minute)
			}
			return holdsObject(metav1.ObjectMeta{UID: "u"})(r)
		})
		var group sync.WaitGroup
		group.Go(func() {
			if _, err := c.Run(t.Context(), creates("write", 100), always([]byte("{}"))); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		began := time.Now()
		if _, err := c.Metadata(t.Context(), []plan.Ref{definition("a.apply.test")}); err != nil {
			t.Error(err)
		}
		if waited := time.Since(began); waited != 0 {
			t.Errorf("a read waited %s", waited)
		}
		group.Wait()
	})
}

// A failure of one plan does not affect another one.
func TestOneFailureStopsOnePlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := play(t, func(r *http.Request) (*http.Response, error) {
			time.Sleep(time.Second)
			if r.URL.Query().Get("fieldManager") != plan.FieldManager {
				t.Errorf("%s %s does not say who writes", r.Method, r.URL)
			}
			if r.ContentLength > 1000 {
				return statusReply(413, metav1.StatusReasonRequestEntityTooLarge)(r)
			}
			return holdsObject(metav1.ObjectMeta{UID: "u"})(r)
		})
		var group sync.WaitGroup
		group.Go(func() {
			written, err := c.Run(t.Context(), creates("large", 50), always([]byte(`{"spec":"`+strings.Repeat("x", 2000)+`"}`)))
			if !errors.Is(err, apply.ErrRejected) || len(written) > 0 {
				t.Errorf("%d written: %v", len(written), err)
			}
		})
		group.Go(func() {
			if _, err := c.Run(t.Context(), creates("small", 50), always([]byte("{}"))); err != nil {
				t.Error(err)
			}
		})
		group.Wait()
	})
}
