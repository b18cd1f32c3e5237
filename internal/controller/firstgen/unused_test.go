package firstgen

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/revision"
)

// PackageInstalls use one Provider of a repository. The manager deletes another one that it created and that was never
// installed, and the last one with the last PackageInstall.
func TestProvidersThatNoPackageInstallUsesAreDeleted(t *testing.T) {
	provider := func(name string) *v1.Provider {
		p := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u", Annotations: map[string]string{
			revision.AnnotationNamespacedInstalls: revision.AllowInstalls, revision.AnnotationCreatedForNamespaces: "true",
		}}}
		p.Spec.Package = "r.example.org/acme/boats:v1"
		return p
	}
	installed := &v1.ProviderRevision{ObjectMeta: metav1.ObjectMeta{Name: "z-1", Labels: map[string]string{
		v1.LabelPackage: "z",
	}}}
	installed.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: v1.GroupVersion.String(), Kind: v1.ProviderKind, Name: "z", UID: "u", Controller: new(true),
	}}
	installed.Status.ObjectRefs = []v1.TypedReference{{
		Kind: "CustomResourceDefinition", Name: "boats.example.org", UID: "1",
	}}
	in := newInstall(packagesv1alpha1.PackageInstallKind)
	in.InstallSpec().Source, in.InstallSpec().Package = "r.example.org", "acme/boats:v1"
	for name, tc := range map[string]struct {
		objects []client.Object
		want    string
	}{
		"two that were never installed":  {[]client.Object{provider("b"), provider("a"), in}, "a"},
		"one that has objects":           {[]client.Object{provider("a"), provider("z"), installed, in}, "z"},
		"one":                            {[]client.Object{provider("a"), in}, "a"},
		"no PackageInstall":              {[]client.Object{provider("a"), provider("b")}, ""},
		"no PackageInstall, and objects": {[]client.Object{provider("a"), provider("z"), installed}, "z"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &NamespaceInstalls{Base: *newBase(t, tc.objects...)}
			r.API.Cluster = definitionsOwnedBy(t, "others")
			if err := r.deleteUnused(t.Context()); err != nil {
				t.Fatal(err)
			}
			left := &v1.ProviderList{}
			if err := r.API.Client.List(t.Context(), left); err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, p := range left.Items {
				got += p.Name
			}
			if got != tc.want {
				t.Errorf("the Providers %q are left, want %q", got, tc.want)
			}
		})
	}
}

// A Provider whose CRDs are just being created is not deleted, although its revision does not list them yet: there may
// be custom resources.
func TestAProviderIsKeptWhileItsCRDsAreCreated(t *testing.T) {
	p := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u", Annotations: map[string]string{
		revision.AnnotationNamespacedInstalls: revision.AllowInstalls, revision.AnnotationCreatedForNamespaces: "true",
	}}}
	p.Spec.Package = "r.example.org/acme/boats:v1"
	r := &NamespaceInstalls{Base: *newBase(t, p)}
	r.API.Cluster = definitionsOwnedBy(t, "u")
	if err := r.deleteUnused(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := r.API.Client.Get(t.Context(), client.ObjectKeyFromObject(p), &v1.Provider{}); err != nil {
		t.Error(err)
	}
}

// definitionsOwnedBy returns a cluster with a CRD whose owner has the UID.
func definitionsOwnedBy(t *testing.T, uid string) *apply.Cluster {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(
			w, `{"metadata": {}, "items": [{"metadata": {"name": "boats.example.org", "ownerReferences": [{"uid": %q}]}}]}`, uid,
		)
	}))
	t.Cleanup(server.Close)
	cluster, err := apply.NewCluster(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return cluster
}
