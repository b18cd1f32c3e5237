package apply_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// atOnce is an API server that answers no call before a number of calls wait.
type atOnce struct {
	mu      sync.Mutex
	missing int
	full    chan struct{}
}

// RoundTrip implements http.RoundTripper.
func (a *atOnce) RoundTrip(r *http.Request) (*http.Response, error) {
	a.mu.Lock()
	if a.missing--; a.missing == 0 {
		close(a.full)
	}
	a.mu.Unlock()
	<-a.full
	return holdsObject(metav1.ObjectMeta{})(r)
}

// Objects are deleted with as many concurrent calls as the limit admits, also if there are more objects.
func TestObjectsAreDeletedConcurrently(t *testing.T) {
	const objects, concurrent = 40, 10
	synctest.Test(t, func(t *testing.T) {
		server := &atOnce{missing: concurrent, full: make(chan struct{})}
		c, err := apply.NewCluster(&rest.Config{Host: "http://played.test", Transport: server})
		if err != nil {
			t.Fatal(err)
		}
		var all []plan.Change
		for i := range objects {
			all = append(all, plan.Change{
				Action: plan.Delete, Ref: definition(fmt.Sprintf("boats%d.apply.test", i)), UID: "1", ResourceVersion: "1",
			})
		}
		if err := c.DeleteAll(t.Context(), all); err != nil {
			t.Fatal(err)
		}
		if done := concurrent - server.missing; done != objects {
			t.Errorf("%d calls for %d objects", done, objects)
		}
	})
}

// After a failure, no other deletion starts.
func TestDeletionsEndAtAFailure(t *testing.T) {
	c, server := play(t, statusReply(http.StatusForbidden, metav1.StatusReasonForbidden))
	var all []plan.Change
	for i := range 100 {
		all = append(all, plan.Change{
			Action: plan.Delete, Ref: definition(fmt.Sprintf("boats%d.apply.test", i)), UID: "1", ResourceVersion: "1",
		})
	}
	if err := c.DeleteAll(t.Context(), all); err == nil || len(server.calls) == len(all) {
		t.Errorf("%v after %d calls", err, len(server.calls))
	}
}
