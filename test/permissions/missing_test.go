package permissions_test

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/bootstrap"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
)

// bootstrapped grants the manager the permissions of the manifests, and runs it with its own
// identity.
func (s *suite) bootstrapped(t *testing.T, o bootstrap.Options) {
	t.Helper()
	o.Version = "test"
	all, err := bootstrap.Manifests(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range all {
		switch object.(type) {
		case *apiextensionsv1.CustomResourceDefinition:
			s.EnsureCreated(t, object)
		case *rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding, *rbacv1.Role, *rbacv1.RoleBinding:
			// Other tests have other rights.
			if err := s.Client.Delete(t.Context(), object.DeepCopyObject().(client.Object)); client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
			s.EnsureCreated(t, object)
		}
	}
	permissions := controller.Permissions{Namespaced: o.Namespaced}
	if o.PermissionPolicy != "" {
		permissions.Policy.ConfigMap = o.PermissionPolicy
	}
	s.run(t, s.identity(t, bootstrap.Name), permissions)
}

// toApply returns the text in a message that an administrator is to apply.
func toApply(t *testing.T, message string) string {
	t.Helper()
	_, text, found := strings.Cut(message, "\n\n")
	if !found {
		t.Fatalf("the message has nothing to apply: %s", message)
	}
	return text
}

// A manager with the permissions of the manifests grants no others. A package that needs more is not
// installed until the printed manifests are applied, without a restart; nothing less suffices.
//
// hardening: H2
func TestManagerGrantsOnlyPermissionsThatItHas(t *testing.T) {
	s := newSuite(t)
	s.bootstrapped(t, bootstrap.Options{PackageGroups: []string{"held.example.org"}})
	held := s.install(
		t, "held",
		provider("held", "", "", crd("things.held.example.org", "Namespaced"), crd("configs.held.example.org", "Cluster")),
	)
	program := s.healthy(t, held)
	s.allowed(t, program, onTypes("held.example.org/things", "@"+elsewhere)...)

	lacking := s.install(
		t, "lacking", provider("lacking", "", requests(readsPods), crd("things.lacking.example.org", "Namespaced")),
	)
	message := s.waits(t, lacking, rbac.ErrPermissionMissing.Name)
	s.absent(t, &apiextensionsv1.CustomResourceDefinition{}, "things.lacking.example.org")
	s.absent(t, &rbacv1.ClusterRole{}, "crossplane:provider:"+lacking.Status.CurrentRevision+":aggregate-to-edit")
	text := toApply(t, message)
	if strings.Contains(text, "secrets") || !strings.Contains(text, "lacking.example.org") ||
		!strings.Contains(text, "pods") {
		t.Errorf("what is to be applied is not what is missing:\n%s", text)
	}
	s.apply(t, text)
	program = s.healthy(t, lacking)
	s.allowed(t, program, "get /pods@"+elsewhere, "update lacking.example.org/things@"+elsewhere)
	s.denied(
		t, bootstrap.Name, "escalate rbac.authorization.k8s.io/clusterroles", "bind rbac.authorization.k8s.io/clusterroles",
		"get /nodes",
	)
}

// With "*" the manager may grant anything, with the verbs escalate and bind.
func TestManagerGrantsAnyPermissionWithEscalate(t *testing.T) {
	s := newSuite(t)
	s.bootstrapped(t, bootstrap.Options{PackageGroups: []string{"*"}})
	p := s.install(
		t, "anything", provider("anything", "", requests(readsPods), crd("things.anything.example.org", "Namespaced")),
	)
	program := s.healthy(t, p)
	s.allowed(t, program, "get /pods@"+elsewhere, "update anything.example.org/things@"+elsewhere, "get /secrets@"+
		elsewhere)
	s.denied(t, bootstrap.Name, "get /secrets@"+elsewhere, "list /secrets", "delete /pods@"+elsewhere)
	// It reads and rewrites custom resources of the package.
	s.allowed(t, bootstrap.Name, "list anything.example.org/things", "patch anything.example.org/things@"+elsewhere)
}

// In namespaced mode neither the manager nor its runtimes have permissions in other namespaces, except
// for cluster-scoped resources.
func TestNamespacedMode(t *testing.T) {
	s := newSuite(t)
	s.bootstrapped(t, bootstrap.Options{Namespaced: true, PackageGroups: []string{"narrow.example.org"}})
	p := s.install(t,
		"narrow", provider("narrow", "", requests(`{apiGroups: [narrow.example.org], resources: [others], verbs: [delete]}`),
			crd("things.narrow.example.org", "Namespaced")))
	program := s.healthy(t, p)
	s.allowed(t, program, onTypes("narrow.example.org/things", "@"+home)...)
	s.allowed(t, program, "get /secrets@"+home, "create /events@"+home, "update coordination.k8s.io/leases@"+
		home, "delete narrow.example.org/others@"+home)
	s.denied(t, program, onTypes("narrow.example.org/things", "@"+elsewhere)...)
	s.denied(t, program, "get /secrets@"+elsewhere, "list /secrets", "get /configmaps@"+
		elsewhere, "list narrow.example.org/things", "delete narrow.example.org/others@"+elsewhere)
	s.denied(t, program, escapes...)
	s.denied(t, bootstrap.Name, "get /secrets@"+elsewhere, "list /secrets", "get narrow.example.org/things@"+
		elsewhere, "create rbac.authorization.k8s.io/roles@"+elsewhere)

	wide := s.install(
		t, "wide",
		provider("wide", "", "", crd("bits.narrow.example.org", "Namespaced"), crd("wides.narrow.example.org", "Cluster")),
	)
	text := toApply(t, s.waits(t, wide, rbac.ErrPermissionMissing.Name))
	if strings.Contains(text, "bits") {
		t.Errorf("what is to be applied has to do with types of the namespace:\n%s", text)
	}
	s.apply(t, text)
	program = s.healthy(t, wide)
	s.allowed(t, program, onTypes("narrow.example.org/wides", "")...)
	s.denied(t, program, onTypes("narrow.example.org/bits", "@"+elsewhere)...)
}
