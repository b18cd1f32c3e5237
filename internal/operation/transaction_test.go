package operation

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/xpkg-dev/xpkg/apis"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/apis/xpkg/v1alpha1"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/inventory"
)

// A transaction installs a package explicitly, or as a dependency. It never makes a dependency of a package that a user
// has installed explicitly, and makes an explicit package of a dependency only if it wants one.
func TestTransactionsKeepExplicitPackages(t *testing.T) {
	explicit, dependency, unmarked := named(v1.ProviderKind, "hull"), named(v1.ProviderKind, "hull"),
		named(v1.ProviderKind, "hull")
	dependency.SetLabels(map[string]string{graph.LabelAutoInstalled: "true"})
	graph.SetRequiredBy(unmarked, []string{"r/deck"})
	requiredBy := map[string]string{graph.AnnotationRequiredBy: "r/deck"}
	for name, tc := range map[string]struct {
		live         v1.Package
		annotations  map[string]string
		isDependency bool
	}{
		"new":                           {nil, nil, false},
		"new dependency":                {nil, requiredBy, true},
		"explicit":                      {explicit, nil, false},
		"explicit, as a dependency":     {explicit, requiredBy, false},
		"dependency":                    {dependency, requiredBy, true},
		"dependency, explicitly":        {dependency, nil, false},
		"dependency without its label":  {unmarked, requiredBy, true},
		"explicitly, without its label": {unmarked, nil, false},
	} {
		w := v1alpha1.WantedPackage{PackageName: nameOf(explicit), Annotations: tc.annotations}
		got := wanted(w, tc.live)
		if is := graph.IsAutoInstalled(got) || graph.IsUnmarkedDependency(got); is != tc.isDependency {
			t.Errorf("%s: %v, %v", name, got.GetLabels(), got.GetAnnotations())
		}
	}
}

// A transaction removes dependents first, also packages whose dependencies the manager is about to add to the Lock.
func TestRemovalsWaitForTheLock(t *testing.T) {
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	mast, rope := &v1.Configuration{ObjectMeta: metav1.ObjectMeta{Name: "mast"}},
		&v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "rope"}}
	mast.Spec.Package, mast.Status.CurrentRevision = "registry.example.com/mast:v1", "mast-1"
	rope.Spec.Package, rope.Status.CurrentRevision = "registry.example.com/rope:v1", "rope-1"
	lock := &v1beta1.Lock{ObjectMeta: metav1.ObjectMeta{Name: v1beta1.LockName}}
	lock.Packages = []v1beta1.LockPackage{{Name: "rope-1", Source: "registry.example.com/rope", Version: "v1"}}
	cluster := fake.NewClientBuilder().WithScheme(scheme).WithObjects(mast, rope, lock).Build()
	x := &v1alpha1.Transaction{}
	x.Spec.Remove = []v1alpha1.RemovedPackage{{PackageName: nameOf(named(v1.ProviderKind, "rope"))}, {
		PackageName: nameOf(named(v1.ConfigurationKind, "mast")),
	}}
	synctest.Test(t, func(t *testing.T) {
		time.AfterFunc(time.Second, func() {
			lock.Packages = append(lock.Packages, v1beta1.LockPackage{
				Name: "mast-1", Source: "registry.example.com/mast", Version: "v1",
				Dependencies: []v1beta1.Dependency{{Package: "registry.example.com/rope"}},
			})
			if err := cluster.Update(t.Context(), lock); err != nil {
				t.Error(err)
			}
		})
		all, err := inventory.LoadNamed(t.Context(), cluster)
		if err != nil {
			t.Fatal(err)
		}
		steps, err := engineOf(cluster, io.Discard).TransactionSteps(t.Context(), all, x)
		if err != nil || len(steps) != 2 || steps[0].Live.GetName() != "mast" || steps[0].group >= steps[1].group {
			t.Errorf("%v, %v", steps, err)
		}
	})
}
