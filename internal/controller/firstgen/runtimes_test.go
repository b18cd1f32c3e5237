package firstgen

import (
	"context"
	"errors"
	"testing"

	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	"github.com/xpkg-dev/xpkg/internal/controller/kube"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// stopping is a runtime that only stops, with an error if there is one.
type stopping struct {
	runtime.Runtime
	err error
}

// Stop implements runtime.Runtime.
func (s *stopping) Stop(context.Context, plan.Owner) (bool, error) { return s.err == nil, s.err }

// The manager keeps nothing of Packages that do not exist any more, nor of their namespaces.
func TestDeletedPackagesAndTheirRuntimesAreForgotten(t *testing.T) {
	scheme := apiruntime.NewScheme()
	if err := packagesv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	by, created := &stopping{}, map[string]int{}
	r := &Packages{
		Base: Base{API: kube.API{Client: fake.NewClientBuilder().WithScheme(scheme).Build()}},
		NewRuntime: func(namespace string) runtime.Runtime {
			created[namespace]++
			return by
		},
	}
	first, second := types.NamespacedName{Namespace: "a", Name: "first"},
		types.NamespacedName{Namespace: "a", Name: "second"}
	for _, key := range []types.NamespacedName{first, second, {Namespace: "b", Name: "first"}} {
		if got := r.used.use(key, r.NewRuntime); got != by {
			t.Fatalf("the runtime of %s is %v", key, got)
		}
		r.used.remember(key, runtime.ProcessName(plan.Owner{Namespace: key.Namespace, Name: key.Name}))
	}
	check := func(when string, namespaces, processes int) {
		t.Helper()
		if len(r.used.namespaces) != namespaces || len(r.used.processes) != processes {
			t.Errorf(
				"%s: %d runtimes and %d processes are kept, want %d and %d", when, len(r.used.namespaces), len(r.used.processes),
				namespaces, processes,
			)
		}
	}
	check("three Packages", 2, 3)

	by.err = errors.New("the process does not stop")
	if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: first}); !errors.Is(err, by.err) {
		t.Errorf("got %v, want %v", err, by.err)
	}
	check("a Package whose controller does not stop", 2, 3)

	by.err = nil
	for i, key := range []types.NamespacedName{first, second} {
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
			t.Fatal(err)
		}
		if _, ok := r.used.withProcess("a-" + key.Name); ok {
			t.Errorf("the process of %s is kept", key)
		}
		check("after the deletion of "+key.Name, 2-i, 2-i)
	}
	if created["a"] != 1 || created["b"] != 1 {
		t.Errorf("runtimes were created %v times, want once for each namespace", created)
	}

	// An event about a Package of an empty namespace leaves nothing behind, with or without a runtime.
	for _, create := range []func(string) runtime.Runtime{r.NewRuntime, func(string) runtime.Runtime { return nil }} {
		r.NewRuntime = create
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{
			Namespace: "c", Name: "x",
		}}); err != nil {
			t.Fatal(err)
		}
		check("an unknown Package", 1, 1)
	}
}
