//go:build linux

package attack_test

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/testing/program"
)

// A user who may create Providers alone does not consent to webhooks over everything.
func TestUserOfPackagesDoesNotConsent(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane: skipped with -short")
	}
	p := newPlane(t, program.Build(t))
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "providers"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{v1.Group}, Resources: []string{"providers"}, Verbs: []string{"create", "get", "patch"}},
	}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "providers"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "providers"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "tenant"}},
	}
	if err := rbacv1.AddToScheme(p.client.Scheme()); err != nil {
		t.Fatal(err)
	}
	for _, o := range []client.Object{role, binding} {
		if err := p.client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", p.state.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Impersonate.UserName = "tenant"
	tenant, err := client.New(cfg, client.Options{Scheme: p.client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	pkg := v1.NewPackage(v1.ProviderKind)
	pkg.SetName("hook")
	pkg.SetAnnotations(map[string]string{"xpkg.dev/allowed-webhooks": "mutate * */*/*"})
	pkg.PackageSpec().Package = "registry.example.org/t/hook:v1.0.0"
	if err := tenant.Create(t.Context(), pkg); !apierrors.IsForbidden(err) ||
		!strings.Contains(err.Error(), "update providerrevisions.pkg.crossplane.io") {
		t.Fatalf("the tenant has consented: %v", err)
	}
}
