package packages

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xpkg-dev/xpkg/apis"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller/watch/watchtest"
)

// A handler that cannot read the cache enqueues nothing. The full resync makes up for that.
func TestHandlersEnqueueNothingWhenTheCacheCannotBeRead(t *testing.T) {
	watchtest.EnqueuesNothing(t, map[string]handler.EventHandler{
		"ImageConfig": enqueueForImageConfig(watchtest.Unreadable{}, nil, v1.ProviderKind),
		"Secret":      enqueueForSecret(watchtest.Unreadable{}, nil, v1.ProviderKind),
		"CRD":         enqueueWhenDeleted(watchtest.Unreadable{}, v1.ProviderKind),
	})
}

// A package that is being deleted is reconciled when the last CRD of a stage is gone, and not for each CRD before.
func TestTheLastCRDOfAStageEnqueuesItsPackage(t *testing.T) {
	definition := func(name string, owner types.UID) *metav1.PartialObjectMetadata {
		o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{
			{UID: owner},
		}}}
		o.SetGroupVersionKind(definitionKind)
		return o
	}
	scheme, err := apis.NewScheme()
	if err == nil {
		err = apiextensionsv1.AddToScheme(scheme)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		deleting bool
		gone     *metav1.PartialObjectMetadata
		rest     []client.Object
		want     int
	}{
		"the last one": {true, definition("boats.example.org", "p"), nil, 1},
		"one of two": {
			true, definition("boats.example.org", "p"), []client.Object{definition("ships.example.org", "p")}, 0,
		},
		"the last of its stage": {
			true, definition("boats.example.org", "p"), []client.Object{definition("providerconfigs.example.org", "p")}, 1,
		},
		"beside another package": {
			true, definition("boats.example.org", "p"), []client.Object{definition("ships.example.org", "other")}, 1,
		},
		"of another package":     {true, definition("boats.example.org", "other"), nil, 0},
		"the package is to stay": {false, definition("boats.example.org", "p"), nil, 0},
		"a stage of two, not yet": {
			true, definition("providerconfigs.a.org", "p"), []client.Object{definition("storeconfigs.a.org", "p")}, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "boats", UID: "p", Finalizers: []string{
				v1.FinalizerRuntimeProtection,
			}}}
			if tc.deleting {
				now := metav1.Now()
				p.DeletionTimestamp = &now
			}
			cluster := fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(tc.rest, p)...).Build()
			q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer q.ShutDown()
			enqueueWhenDeleted(cluster, v1.ProviderKind).Delete(t.Context(), event.DeleteEvent{Object: tc.gone}, q)
			if got := q.Len(); got != tc.want {
				t.Errorf("%d packages are enqueued, want %d", got, tc.want)
			}
		})
	}
}
