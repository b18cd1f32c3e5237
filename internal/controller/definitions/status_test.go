package definitions

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/xpkg-dev/xpkg/apis"
	"github.com/xpkg-dev/xpkg/apis/apiextensions/v1alpha1"
	"github.com/xpkg-dev/xpkg/internal/state"
)

// A write of conditions keeps the other fields of a status.
func TestConditionsKeepOtherFields(t *testing.T) {
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"activated": []any{"a"}}}}
	o.SetGroupVersionKind(state.PolicyGVK)
	o.SetName("shown")
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(o).WithStatusSubresource(o).Build()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
	if err := setCondition(t.Context(), c, metav1.Now(), o, v1alpha1.RunningPolicy()); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
	list, _, _ := unstructured.NestedStringSlice(o.Object, "status", "activated")
	if len(list) != 1 || len(conditionsOf(o).Conditions) != 1 {
		t.Errorf("the status is %v", o.Object["status"])
	}
}
