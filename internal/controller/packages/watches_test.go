package packages

import (
	"context"
	"errors"
	"testing"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
)

// unreadable is a cache that cannot be read.
type unreadable struct{ client.Client }

func (unreadable) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("not now")
}

// A handler that cannot read the cache enqueues nothing. The full resync makes up for that.
func TestHandlersEnqueueNothingWhenTheCacheCannotBeRead(t *testing.T) {
	config := &v1beta1.ImageConfig{}
	config.Spec.MatchImages = []v1beta1.ImageMatch{{Prefix: "r"}}
	for name, h := range map[string]handler.EventHandler{
		"ImageConfig": enqueueForImageConfig(unreadable{}, nil, v1.ProviderKind),
		"Secret":      enqueueForSecret(unreadable{}, nil, v1.ProviderKind),
	} {
		q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		h.Create(t.Context(), event.CreateEvent{Object: config}, q)
		h.Delete(t.Context(), event.DeleteEvent{Object: config}, q)
		if n := q.Len(); n > 0 {
			t.Errorf("%s: %d objects are enqueued", name, n)
		}
		q.ShutDown()
	}
}
