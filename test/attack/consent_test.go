//go:build linux

package attack_test

import (
	"errors"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/program"
)

// A user who may create Providers alone does not consent to webhooks over everything.
func TestUserOfPackagesDoesNotConsent(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane: skipped with -short")
	}
	p := newPlane(t, program.Build(t))
	if err := errors.Join(
		rbacv1.AddToScheme(p.client.Scheme()), authorizationv1.AddToScheme(p.client.Scheme()),
	); err != nil {
		t.Fatal(err)
	}
	env.Grant(t, p.client, env.User("tenant"), rbacv1.PolicyRule{
		APIGroups: []string{v1.Group}, Resources: []string{"providers"}, Verbs: []string{"create", "get", "patch"},
	})
	cfg, err := clientcmd.BuildConfigFromFlags("", p.state.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	tenant, err := client.New(env.AsUser(cfg, "tenant"), client.Options{Scheme: p.client.Scheme()})
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
