package permissions_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/permission"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
)

// approve approves the permissions that a package waits for.
func approve(t *testing.T, p *v1.Provider) string {
	t.Helper()
	code, stdout, stderr := xpkg(t, "approve", p.Name, "--yes")
	if code != 0 {
		t.Fatalf("xpkg approve ends with %d:\n%s", code, stderr)
	}
	return stdout + stderr
}

// A version that requests more permissions waits for approval, while the former version runs and
// nothing is written. The approval covers these permissions: a version that requests others waits
// again, and one that requests fewer does not.
//
// hardening: H1
func TestAdditionalPermissionsWaitForApproval(t *testing.T) {
	s := newSuite(t)
	s.run(t, s.Config, controller.Permissions{Increase: controller.ApproveIncrease})
	of := func(spec string, definitions ...string) string {
		return provider("increase", "", spec, append(definitions, crd("things.increase.example.org", "Namespaced"))...)
	}
	p := s.install(t, "increase", of(requests(readsPods)))
	first := s.healthy(t, p)

	s.upgrade(t, p, "v2", of(
		requests(readsPods, `{apiGroups: [""], resources: [nodes], verbs: [get]}`),
		crd("mores.increase.example.org", "Namespaced"),
	))
	message := s.waits(t, p, rbac.ErrPermissionIncrease.Name)
	if !strings.Contains(message, "get nodes in the core group") || !strings.Contains(message, "mores") ||
		strings.Contains(message, "pods") {
		t.Errorf("the message does not name exactly what is added: %s", message)
	}
	s.absent(t, &apiextensionsv1.CustomResourceDefinition{}, "mores.increase.example.org")
	second := p.Status.CurrentRevision
	s.absent(t, &rbacv1.ClusterRole{}, "crossplane:provider:"+second+":system")
	s.allowed(t, first, "get /pods@"+elsewhere)
	if p.Status.Activation != nil {
		t.Error("the activation deadline runs while the permissions wait for approval")
	}
	for _, c := range []v1.ConditionType{v1.TypeReconciling, v1.TypeStalled} {
		if p.GetCondition(c).Status == corev1.ConditionTrue {
			t.Errorf("a package that waits for a person has the condition %s", c)
		}
	}

	if said := approve(t, p); !strings.Contains(said, "+ get nodes in the core group") ||
		!strings.Contains(said, "provider/increase approved") {
		t.Errorf("xpkg approve:\n%s", said)
	}
	s.healthy(t, p)
	if said := approve(t, p); !strings.Contains(said, "no pending approval") {
		t.Errorf("xpkg approve of a package without pending approval:\n%s", said)
	}
	s.allowed(t, second, "get /nodes", "get increase.example.org/mores@"+elsewhere)

	s.upgrade(t, p, "v3", of(
		requests(readsPods, `{apiGroups: [""], resources: [nodes], verbs: [get, list]}`),
		crd("mores.increase.example.org", "Namespaced"),
	))
	if message := s.waits(t, p, rbac.ErrPermissionIncrease.Name); !strings.Contains(message, "list nodes") {
		t.Errorf("the message does not name what is added: %s", message)
	}
	// Neither a former request nor an annotation in the package is an approval.
	fingerprint := permission.AnnotationApproved + ": " + rbac.Fingerprint([]rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"list"},
	}})
	s.upgrade(t,
		p, "v3-again", provider("increase", "  annotations: {\""+strings.Replace(fingerprint, ": ", "\": \"", 1)+"\"}\n",
			requests(readsPods, `{apiGroups: [""], resources: [nodes], verbs: [get, list]}`),
			crd("mores.increase.example.org", "Namespaced"), crd("things.increase.example.org", "Namespaced")))
	third := p.Status.CurrentRevision
	s.until(t, p, func(ready v1.Condition) bool {
		return p.Status.CurrentRevision != third && string(ready.Reason) == rbac.ErrPermissionIncrease.Name &&
			strings.Contains(ready.Message, fingerprint)
	})
	s.upgrade(t, p, "v4", of("", crd("mores.increase.example.org", "Namespaced")))
	fourth := s.healthy(t, p)
	s.denied(t, fourth, "get /nodes", "get /pods@"+elsewhere)
}

// The owner of a package can ask for approval, and cannot do without it.
func TestAPackageCanAskForApproval(t *testing.T) {
	s := newSuite(t)
	s.run(t, s.Config, controller.Permissions{})
	p := s.install(t, "cautious", provider("cautious", "", "", crd("things.cautious.example.org", "Namespaced")))
	s.healthy(t, p)
	env.Update(t, s.Env, p, func(p *v1.Provider) {
		p.Annotations = map[string]string{permission.AnnotationIncrease: string(controller.ApproveIncrease)}
	})
	s.upgrade(t, p, "v2", provider("cautious", "", requests(readsPods), crd("things.cautious.example.org", "Namespaced")))
	s.waits(t, p, rbac.ErrPermissionIncrease.Name)
}
