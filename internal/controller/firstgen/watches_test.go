package firstgen

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller/kube"
	"github.com/xpkg-dev/xpkg/internal/controller/status"
	"github.com/xpkg-dev/xpkg/internal/revision"
)

// A change of a Provider reconciles the install objects that use it, and those that are not ready, also if they used
// another Provider before.
func TestProvidersEnqueueTheInstallObjectsThatTheyConcern(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := packagesv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for _, kind := range packagesv1alpha1.InstallKinds() {
		var objects []client.Object
		for name, tc := range map[string]struct {
			provider string
			summary  revision.Summary
		}{
			"uses": {"boats", available}, "uses-other": {"ships", available}, "waits": {"", creating("waits")},
			"waits-after-other": {"ships", creating("waits")}, "boats": {"", available},
		} {
			in := packagesv1alpha1.NewInstall(kind)
			in.SetNamespace("system")
			in.SetName(name)
			in.InstallStatus().Provider = tc.provider
			status.Set(in, metav1.Time{}, tc.summary)
			objects = append(objects, in)
		}
		b := &Base{API: kube.API{
			Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(objects...).Build(),
		}, Namespace: "system"}
		q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		b.enqueueInstalls(kind).Update(t.Context(), event.UpdateEvent{
			ObjectOld: &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "boats"}},
			ObjectNew: &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "boats"}},
		}, q)
		var got []string
		for q.Len() > 0 {
			r, _ := q.Get()
			got = append(got, r.Name)
		}
		q.ShutDown()
		slices.Sort(got)
		if want := []string{"boats", "uses", "waits", "waits-after-other"}; !slices.Equal(got, want) {
			t.Errorf("%s: enqueued %v, want %v", kind, got, want)
		}
	}
}
