package origin

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
)

// A reader with ListOnce lists the ImageConfigs once, after a failed attempt again, and returns copies.
func TestListOnceListsImageConfigsOnce(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	lists, fail := 0, errors.New("unavailable")
	config := &v1beta1.ImageConfig{ObjectMeta: metav1.ObjectMeta{Name: "mirror"}}
	cluster := fake.NewClientBuilder().WithScheme(scheme).WithObjects(config).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			lists++
			if lists == 1 {
				return fail
			}
			return c.List(ctx, list, opts...)
		},
	}).Build()
	reader := ListOnce(cluster)
	var list v1beta1.ImageConfigList
	if err := reader.List(t.Context(), &list); !errors.Is(err, fail) {
		t.Fatalf("the first list returns %v, want the error", err)
	}
	for range 3 {
		var list v1beta1.ImageConfigList
		if err := reader.List(t.Context(), &list); err != nil || len(list.Items) != 1 || list.Items[0].Name != "mirror" {
			t.Fatalf("got %+v and %v, want the ImageConfig", list.Items, err)
		}
		list.Items[0].Name = "changed"
	}
	if lists != 2 {
		t.Errorf("listed %d times, want once after the error", lists)
	}
}
