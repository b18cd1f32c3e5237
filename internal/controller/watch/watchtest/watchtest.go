// Package watchtest provides checks of watch handlers for the tests of several controllers.
package watchtest

import (
	"context"
	"errors"
	"testing"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
)

// Unreadable is a cache that cannot be read.
type Unreadable struct{ client.Client }

// List implements [client.Reader]. It fails.
func (Unreadable) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("not now")
}

// EnqueuesNothing checks that handlers, by name, enqueue nothing for an ImageConfig.
func EnqueuesNothing(t *testing.T, handlers map[string]handler.EventHandler) {
	t.Helper()
	config := &v1beta1.ImageConfig{}
	config.Spec.MatchImages = []v1beta1.ImageMatch{{Prefix: "r"}}
	for name, h := range handlers {
		q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		h.Create(t.Context(), event.CreateEvent{Object: config}, q)
		h.Delete(t.Context(), event.DeleteEvent{Object: config}, q)
		if n := q.Len(); n > 0 {
			t.Errorf("%s: %d objects are enqueued", name, n)
		}
		q.ShutDown()
	}
}
