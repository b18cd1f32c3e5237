package inventory

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/frontend"
	"github.com/xpkg-dev/xpkg/internal/graph"
)

// A dependency that was installed under one name and is required under another is not an orphan.
func TestAutoremoveAppliesImageConfigs(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1.AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	rewriting := &v1beta1.ImageConfig{ObjectMeta: metav1.ObjectMeta{Name: "rewriting"}, Spec: v1beta1.ImageConfigSpec{
		MatchImages:  []v1beta1.ImageMatch{{Type: "Prefix", Prefix: "public.example.com/"}},
		RewriteImage: &v1beta1.ImageRewrite{Prefix: "mirror.example.com/"},
	}}
	cable := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "cable", Labels: map[string]string{
		graph.LabelAutoInstalled: "true",
	}}}
	cable.Spec.Package, cable.Status.CurrentRevision = "mirror.example.com/cable:v1.0.0", "cable-1"
	base := &v1.Configuration{ObjectMeta: metav1.ObjectMeta{Name: "base"}}
	base.Spec.Package, base.Status.CurrentRevision = "mirror.example.com/base:v1.0.0", "base-1"
	lock := &v1beta1.Lock{ObjectMeta: metav1.ObjectMeta{Name: v1beta1.LockName}, Packages: []v1beta1.LockPackage{
		{Name: "cable-1", Source: "mirror.example.com/cable", Version: "v1.0.0"},
		{Name: "base-1", Source: "mirror.example.com/base", Version: "v1.0.0", Dependencies: []v1beta1.Dependency{
			{Package: "public.example.com/cable", Constraints: ">=v1.0.0"},
		}},
	}}
	for name, want := range map[string]int{"with the image config": 0, "without": 1} {
		objects := fake.NewClientBuilder().WithScheme(scheme).WithObjects(cable.DeepCopy(), base.DeepCopy(), lock.DeepCopy())
		if want == 0 {
			objects = objects.WithObjects(rewriting)
		}
		all, err := LoadNamed(t.Context(), objects.Build())
		if err != nil {
			t.Fatal(err)
		}
		g, err := all.Graph(frontend.Uses{})
		if err != nil {
			t.Fatal(err)
		}
		if got := g.Orphans(); len(got) != want {
			t.Errorf("%s: the orphans are %v", name, got)
		}
	}
}
