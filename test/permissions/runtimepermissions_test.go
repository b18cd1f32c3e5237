package permissions_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
	"github.com/xpkg-dev/xpkg/pkg/runtimedefaults"
)

// escapes are ways to get more permissions, and accesses to objects of others.
var escapes = []string{
	"create rbac.authorization.k8s.io/clusterroles", "update rbac.authorization.k8s.io/clusterroles",
	"escalate rbac.authorization.k8s.io/clusterroles", "bind rbac.authorization.k8s.io/clusterroles",
	"create rbac.authorization.k8s.io/clusterrolebindings", "create rbac.authorization.k8s.io/rolebindings@" + home,
	"impersonate /users", "impersonate /groups", "impersonate /serviceaccounts@" + home,
	"create /serviceaccounts/token@" + home, "create /pods@" + home, "create /pods/exec@" + home,
	"create apiextensions.k8s.io/customresourcedefinitions", "update pkg.crossplane.io/providers",
	"update pkg.crossplane.io/providerrevisions",
	"create admissionregistration.k8s.io/validatingwebhookconfigurations", "get /nodes",
}

// onTypes returns the permissions that a runtime needs for a type.
func onTypes(resource, at string) []string {
	var out []string
	for _, verb := range []string{"get", "list", "watch", "create", "update", "patch"} {
		out = append(out, verb+" "+resource+at, verb+" "+resource+"/status"+at)
	}
	return append(out, "update "+resource+"/finalizers"+at)
}

// A runtime has the permissions for its own types and for the types of every provider,
// and no others.
func TestRuntimeHasOnlyThePermissionsThatItNeeds(t *testing.T) {
	s := newSuite(t)
	s.run(t, s.Config, controller.Permissions{})
	other := s.install(t, "sar-other", provider("sar-other", "", "", crd("others.sar-other.example.org", "Namespaced")))
	p := s.install(t, "sar", provider("sar", "", requests(readsPods), crd(
		"things.sar.example.org", "Namespaced",
	), crd("configs.sar.example.org", "Cluster")))
	minimal := s.install(t, "sar-minimal", provider(
		"sar-minimal", "  annotations: {meta.xpkg.dev/permissions: \"minimal, secrets=namespace\"}\n", "",
		crd("leasts.sar-minimal.example.org", "Namespaced"),
	))
	s.healthy(t, other)
	program, least := s.healthy(t, p), s.healthy(t, minimal)

	s.allowed(t, program, onTypes("sar.example.org/things", "@"+elsewhere)...)
	s.allowed(t, program, onTypes("sar.example.org/configs", "")...)
	s.allowed(t, program, "get /pods@"+elsewhere, "list /pods", "get /secrets@"+elsewhere, "create /configmaps@"+home,
		"create /events@default", "patch events.k8s.io/events@"+elsewhere, "update coordination.k8s.io/leases@"+home)
	s.denied(t, program, escapes...)
	s.denied(t, program, "delete sar.example.org/things@"+home,
		"deletecollection sar.example.org/things", "patch sar.example.org/things/finalizers",
		"delete /pods@"+home, "get /pods/log@"+home, "get sar-other.example.org/others@"+home,
		"update sar-other.example.org/others/status@"+home)

	s.allowed(t, least, onTypes("sar-minimal.example.org/leasts", "@"+elsewhere)...)
	s.allowed(t, least, "get /secrets@"+home, "create /events@"+elsewhere, "update coordination.k8s.io/leases@"+home)
	s.denied(t, least, escapes...)
	s.denied(t, least, "get /secrets@"+elsewhere, "list /secrets", "get /configmaps@"+
		home, "list /events", "get coordination.k8s.io/leases@"+elsewhere)

	// Each rule of each role in the cluster is granted to its subjects.
	var role rbacv1.ClusterRole
	if err := s.Client.Get(
		t.Context(), client.ObjectKey{Name: "crossplane:provider:" + program + ":system"}, &role,
	); err != nil {
		t.Fatal(err)
	}
	for _, rule := range role.Rules {
		for _, verb := range rule.Verbs {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					s.allowed(t, program, verb+" "+group+"/"+strings.Replace(resource, "*/", "things/", 1)+"@"+elsewhere)
				}
			}
		}
	}
}

// The permissions of a revision are deleted with it, and the permissions of a package with
// the package.
func TestPermissionsAreDeletedWithTheirRevision(t *testing.T) {
	s := newSuite(t)
	s.run(t, s.Config, controller.Permissions{})
	p := s.install(t, "goes", provider("goes", "", requests(readsPods), crd("things.goes.example.org", "Namespaced")))
	first := s.healthy(t, p)
	s.allowed(t, first, "get /pods@"+elsewhere, "get goes.example.org/things@"+elsewhere)
	s.upgrade(t, p, "v2", provider("goes", "", "", crd("things.goes.example.org", "Namespaced")))
	second := s.healthy(t, p)
	s.allowed(t, second, "get goes.example.org/things@"+elsewhere)
	s.denied(t, second, "get /pods@"+elsewhere)
	s.denied(t, first, "get /pods@"+elsewhere, "get goes.example.org/things@"+elsewhere)
	if err := s.Client.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, env.Limit, "the roles are gone", func() (string, bool) {
		left := ""
		for _, name := range []string{":system", ":aggregate-to-edit", ":aggregate-to-view"} {
			err := s.Client.Get(
				t.Context(), client.ObjectKey{Name: "crossplane:provider:" + second + name}, &rbacv1.ClusterRole{},
			)
			if !apierrors.IsNotFound(err) {
				left += name
			}
		}
		return left, left == ""
	})
}

// A package without a runtime has only the roles for users, in the cluster and in plans: if the manager runs none, if
// the package shares its CRDs with namespaces, and if its content has none. It loses the permissions of a runtime that
// it had.
func TestPackagesWithoutARuntimeHaveNoPermissions(t *testing.T) {
	s := newSuite(t)
	m := s.runWith(
		t, s.Config, controller.Permissions{Increase: controller.ApproveIncrease}, runtime.Everywhere(runtime.External),
	)
	none := "  annotations: {" + runtimedefaults.Annotation + ": '{\"none\": true}'}\n"
	bare := provider("bare", none, requests(readsPods), crd("things.bare.example.org", "Namespaced"))
	packages := map[string]*v1.Provider{
		"stopped": s.install(
			t, "stopped", provider("stopped", "", requests(readsPods), crd("things.stopped.example.org", "Namespaced")),
		),
		"shared": s.install(
			t, "shared", provider("shared", "", requests(readsPods), crd("things.shared.example.org", "Namespaced")),
		),
		"bare": s.install(t, "bare", bare),
	}
	revisions := map[string]string{}
	for name, p := range packages {
		revisions[name] = s.healthy(t, p)
	}
	s.allowed(t, revisions["stopped"], "get /pods@"+elsewhere)
	ref := s.Push(
		t, "permissions/planned", "v1",
		provider("planned", none, requests(readsPods), crd("things.planned.example.org", "Namespaced")),
	)
	code, raw, stderr := xpkg(t, "plan", "install", "provider", ref, "--cache-dir", t.TempDir(), "-o", "json")
	if code != 2 || !strings.Contains(raw, "things.planned.example.org") || strings.Contains(raw, `"permissions"`) {
		t.Errorf("exit code %d: the plan lacks the definition, or has permissions: %s\n%s", code, stderr, raw)
	}
	m.Stop()
	choice, err := runtime.ParseChoice("Provider/stopped=None", runtime.External)
	if err != nil {
		t.Fatal(err)
	}
	s.runWith(t, s.Config, controller.Permissions{Increase: controller.ApproveIncrease}, choice)
	env.Update(t, s.Env, packages["shared"], func(p *v1.Provider) {
		p.Annotations = map[string]string{revision.AnnotationNamespacedInstalls: revision.AllowInstalls}
	})
	for name, rev := range revisions {
		wait.Until(t, env.Limit, name+" has the roles of users only", func() (string, bool) {
			var roles rbacv1.ClusterRoleList
			if err := s.Client.List(t.Context(), &roles); err != nil {
				return err.Error(), false
			}
			var got []string
			for _, r := range roles.Items {
				if strings.Contains(r.Name, rev) {
					got = append(got, strings.TrimPrefix(r.Name, "crossplane:provider:"+rev+":"))
				}
			}
			err := s.Client.Get(
				t.Context(), client.ObjectKey{Name: "crossplane:provider:" + rev + ":system"}, &rbacv1.ClusterRoleBinding{},
			)
			return fmt.Sprint(got, err),
				slices.Equal(got, []string{"aggregate-to-edit", "aggregate-to-view"}) && apierrors.IsNotFound(err)
		})
	}
}

// The providers of one family and one publisher have permissions on each other's types, independent of
// the order of their installs. Other providers have none.
func TestAFamilySharesItsTypes(t *testing.T) {
	s := newSuite(t)
	s.run(t, s.Config, controller.Permissions{})
	family := "  labels: {pkg.crossplane.io/provider-family: provider-family-x}\n"
	a := s.install(t, "family-a", provider("family-a", family, "", crd("as.family.example.org", "Namespaced")))
	programA := s.healthy(t, a)
	b := s.install(t, "family-b", provider("family-b", family, "", crd("bs.family.example.org", "Namespaced")))
	stranger := s.installFrom(
		t, "strangers/family-c", "family-c", provider("family-c", family, "", crd("cs.family.example.org", "Namespaced")),
	)
	programB, programC := s.healthy(t, b), s.healthy(t, stranger)
	s.allowed(t, programB, "get family.example.org/as@"+elsewhere)
	s.allowed(t, programA, "get family.example.org/bs@"+elsewhere)
	s.denied(t, programC, "get family.example.org/as@"+elsewhere)
	s.denied(t, programA, "get family.example.org/cs@"+elsewhere)
	if err := s.Client.Delete(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	s.denied(t, programA, "get family.example.org/bs@"+elsewhere)
}

// The permissions for a kind exist before the API server serves it, so that no user and no runtime is denied.
func TestRolesExistBeforeTheirKinds(t *testing.T) {
	s := newSuite(t)
	audit := &env.Audit{}
	s.run(t, audit.Wrap(s.Config), controller.Permissions{})
	s.healthy(t, s.install(t, "early", provider("early", "", "", crd("things.early.example.org", "Namespaced"))))
	var order []string
	for _, c := range audit.Calls("early") {
		if kind := c.Resource; c.Method != http.MethodGet && !c.DryRun && !slices.Contains(order, kind) &&
			(kind == "clusterroles" || kind == "clusterrolebindings" || kind == "customresourcedefinitions") {
			order = append(order, kind)
		}
	}
	if len(order) < 3 || order[2] != "customresourcedefinitions" {
		t.Errorf("the first writes are those of %v", order)
	}
}

// A role that another client changes or deletes is restored.
func TestRolesAreRestored(t *testing.T) {
	s := newSuite(t)
	s.run(t, s.Config, controller.Permissions{})
	p := s.install(t, "drift", provider("drift", "", "", crd("things.drift.example.org", "Namespaced")))
	program := s.healthy(t, p)
	name := "crossplane:provider:" + program + ":system"
	var role rbacv1.ClusterRole
	if err := s.Client.Get(t.Context(), client.ObjectKey{Name: name}, &role); err != nil {
		t.Fatal(err)
	}
	was := role.Rules
	env.Update(t, s.Env, &role, func(role *rbacv1.ClusterRole) {
		nodes := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get"}}
		role.Rules = append([]rbacv1.PolicyRule{nodes}, was...)
	})
	s.denied(t, program, "get /nodes")
	if err := s.Client.Delete(t.Context(), &role); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, env.Limit, "the role is restored", func() (string, bool) {
		err := s.Client.Get(t.Context(), client.ObjectKey{Name: name}, &role)
		return fmt.Sprintf("%v: the role has %v, and had %v", err, role.Rules, was),
			err == nil && rbac.Missing(was, role.Rules) == nil
	})
	s.allowed(t, program, "get drift.example.org/things@"+elsewhere)
}
