package controller

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

// unreadable is a cluster of which nothing can be listed.
type unreadable struct{ client.Client }

func (unreadable) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("not now")
}

// Where packages cannot be listed, a change of something else makes nobody look: what
// is missed so is made up for by the regular look at everything.
func TestWatchesOfAnUnreadableCluster(t *testing.T) {
	w := &world{client: unreadable{}}
	config := &v1beta1.ImageConfig{}
	config.Spec.MatchImages = []v1beta1.ImageMatch{{Prefix: "r"}}
	for name, h := range map[string]handler.EventHandler{
		"ImageConfigOfPackages":  w.onImageConfig(v1.ProviderKind),
		"ImageConfigOfRevisions": w.onRevisionImageConfig(v1.ProviderKind),
		"Secret":                 w.onSecret(v1.ProviderKind),
		"Dependents":             w.dependents(v1.ProviderKind),
		"HandOver":               w.onHandOver(v1.ProviderKind),
		"Drift":                  w.onDrift(v1.ProviderKind, "CustomResourceDefinition"),
	} {
		q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		h.Create(t.Context(), event.CreateEvent{Object: config}, q)
		h.Delete(t.Context(), event.DeleteEvent{Object: config}, q)
		if n := q.Len(); n > 0 {
			t.Errorf("%s: %d objects are looked at", name, n)
		}
		q.ShutDown()
	}
}
