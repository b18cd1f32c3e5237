package operation

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/xpkg-dev/xpkg/apis"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// The error of a package that exists again names the packages that require it, and without any states that another
// client has installed it.
func TestRecreatedNamesTheDependents(t *testing.T) {
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	base, top := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "base"}},
		&v1.Configuration{ObjectMeta: metav1.ObjectMeta{Name: "top"}}
	base.Spec.Package, top.Spec.Package = "registry.example.com/base:v1", "registry.example.com/top:v1"
	shared := base.DeepCopy()
	shared.Annotations = map[string]string{revision.AnnotationCreatedForNamespaces: "true"}
	lock := &v1beta1.Lock{ObjectMeta: metav1.ObjectMeta{Name: v1beta1.LockName}, Packages: []v1beta1.LockPackage{
		{Name: "top-1", Source: "registry.example.com/top", Version: "v1", Dependencies: []v1beta1.Dependency{{
			Package: "registry.example.com/base", Constraints: ">=v1",
		}}},
	}}
	for want, cluster := range map[string]*fake.ClientBuilder{
		"Uninstall the packages that require it first: configuration/top.": fake.NewClientBuilder().WithScheme(scheme).
			WithObjects(base, top, lock),
		"No package requires it: another client has installed it again, and it stays. To uninstall it too, run `xpkg uninstall provider/base`.": fake.NewClientBuilder().
			WithScheme(scheme).WithObjects(base),
	} {
		if got := errcode.From((&Engine{Client: cluster.Build()}).recreated(t.Context(), base)).Do; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	const used = "The manager has created it again for PackageInstalls that use it. Delete these first; `xpkg plan uninstall provider/base` lists them."
	if got := errcode.From((&Engine{
		Client: fake.NewClientBuilder().WithScheme(scheme).Build(),
	}).recreated(t.Context(), shared)).Do; got != used {
		t.Errorf("got %s, want %s", got, used)
	}
}
