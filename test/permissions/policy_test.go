package permissions_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/permission"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
)

func policyOf(t *testing.T, s *suite, name, text string) *corev1.ConfigMap {
	t.Helper()
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: name}, Data: map[string]string{
		rbac.PolicyKey: text,
	}}
	s.EnsureCreated(t, c)
	return c
}

const readsPods = `{apiGroups: [""], resources: [pods], verbs: [get, list]}`

// A request above the maximum stops an install before its first write. When the maximum is raised, the install
// continues. When it is lowered, granted permissions are removed, also of a paused revision. While it cannot be read,
// nothing is granted.
func TestPolicy(t *testing.T) {
	s := newSuite(t)
	policy := policyOf(t, s, "policy", "allow: [{name: deployments-only, apiGroups: [apps]}]")
	s.run(t, s.Config, controller.Permissions{Policy: permission.PolicySource{ConfigMap: "policy"}})
	p := s.install(
		t, "policy", provider("policy", "", requests(readsPods), crd("things.policy.example.org", "Namespaced")),
	)
	if message := s.waits(
		t, p, rbac.ErrPermissionDenied.Name,
	); !strings.Contains(message, "get, list pods in the core group") {
		t.Errorf("the refusal does not name the request: %s", message)
	}
	s.absent(t, &apiextensionsv1.CustomResourceDefinition{}, "things.policy.example.org")
	system := "crossplane:provider:" + p.Status.CurrentRevision + ":system"
	s.absent(t, &rbacv1.ClusterRole{}, system)

	change := func(data map[string]string) {
		t.Helper()
		env.Update(t, s.Env, policy, func(policy *corev1.ConfigMap) { policy.Data = data })
	}
	change(map[string]string{rbac.PolicyKey: "allow: [{name: pods, resources: [pods], verbs: [get, list]}]"})
	s.healthy(t, p)
	var role rbacv1.ClusterRole
	if err := s.Client.Get(t.Context(), client.ObjectKey{Name: system}, &role); err != nil {
		t.Fatal(err)
	}
	asked := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list"}}}
	if missing := rbac.Missing(role.Rules, asked); missing != nil {
		t.Errorf("the role lacks %v", missing)
	}

	pause := func(value string) {
		t.Helper()
		rev := s.Revisions(t, p)[0]
		if err := s.Client.Patch(
			t.Context(), rev,
			client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+v1.AnnotationPaused+`":`+value+`}}}`)),
		); err != nil {
			t.Fatal(err)
		}
	}
	pause(`"true"`)
	change(map[string]string{rbac.PolicyKey: "deny: [{name: no-pods, resources: [pods]}]"})
	if message := s.waits(t, p, rbac.ErrPermissionDenied.Name); !strings.Contains(message, "no-pods") {
		t.Errorf("the refusal does not name the rule: %s", message)
	}
	if err := s.Client.Get(t.Context(), client.ObjectKey{Name: system}, &role); err != nil {
		t.Fatal(err)
	}
	if rbac.Missing(role.Rules, asked) == nil {
		t.Error("the role still has permissions that the policy denies")
	}

	if c := s.Revisions(t, p)[0].GetCondition(v1.TypeSynced); c.Reason != v1.ReasonPaused {
		t.Errorf("the paused revision reports %+v", c)
	}
	pause("null")

	change(map[string]string{"another": "key"})
	if message := s.waits(t, p, rbac.ErrPolicyUnreadable.Name); !strings.Contains(message, rbac.PolicyKey) {
		t.Errorf("the failure does not say what is wrong: %s", message)
	}
	if err := s.Client.Delete(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	other := s.install(
		t, "policy-none", provider("policy-none", "", requests(readsPods), crd("others.policy.example.org", "Namespaced")),
	)
	s.waits(t, other, rbac.ErrPolicyUnreadable.Name)
	s.absent(t, &apiextensionsv1.CustomResourceDefinition{}, "others.policy.example.org")
}
