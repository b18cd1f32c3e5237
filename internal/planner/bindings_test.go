package planner_test

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
)

// The plan of an update names the bindings of users for the ServiceAccount of the running revision, which the new
// revision does not use.
func TestPlanWarnsOfBindingsForTheServiceAccountOfARevision(t *testing.T) {
	e, s := env.New(t), newFakeContent()
	const first, second = "registry.example.com/bound/p:v1", "registry.example.com/bound/p:v2"
	s.put(first, provider("p", "", crd("bound.preview.test", "Thing", "one")))
	s.put(second, provider("p", "", crd("bound.preview.test", "Thing", "two")))
	stop := runManager(t, e.Config, s).Stop
	pl := newPlanner(t, e.Config, s)
	p := env.NewProvider("bound", first)
	e.CreateTemporary(t, p)
	settled(t, e.Client, p)
	stop()
	announceRuntimes(t, e.Client)
	update := func(config string) []string {
		planned := install(t, pl, with(p, func(p v1.Package) {
			p.PackageSpec().Package = second
			if config != "" {
				p.RuntimeSpec().RuntimeConfigRef = &v1.RuntimeConfigReference{Name: config}
			}
		}))
		return slices.DeleteFunc(
			planned.UnusualWarnings(), func(w string) bool { return !strings.Contains(w, "ServiceAccount") },
		)
	}
	account := p.Status.CurrentRevision
	subject := func(namespace, name string) []rbacv1.Subject {
		return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}}
	}
	role := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"}
	others := []rbacv1.ClusterRoleBinding{
		{ObjectMeta: metav1.ObjectMeta{Name: "bound-other-namespace"}, Subjects: subject("default", account)},
		{ObjectMeta: metav1.ObjectMeta{Name: "bound-other-account"}, Subjects: subject(pl.Namespace, account+"0")},
		{ObjectMeta: metav1.ObjectMeta{Name: "bound-user"}, Subjects: []rbacv1.Subject{{
			APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: account,
		}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "bound-of-the-package", OwnerReferences: []metav1.OwnerReference{{
			APIVersion: v1.GroupVersion.String(), Kind: v1.ProviderKind, Name: p.Name, UID: p.UID,
		}}}, Subjects: subject(pl.Namespace, account)},
	}
	for _, b := range others {
		b.RoleRef = role
		e.CreateTemporary(t, &b)
	}
	if got := update(""); len(got) > 0 {
		t.Errorf("no binding names the ServiceAccount of the revision, and the plan warns %q", got)
	}
	e.CreateTemporary(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "bound-admin"}, RoleRef: role, Subjects: subject(pl.Namespace, account),
	})
	e.CreateTemporary(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "bound-edit"}, RoleRef: role,
		Subjects: subject(pl.Namespace, account),
	})
	got := update("")
	want := "ClusterRoleBinding bound-admin, RoleBinding default/bound-edit grant to the ServiceAccount " + account + ":"
	if len(got) != 1 || !strings.Contains(got[0], want) {
		t.Errorf("the plan warns %q, want one warning with %q", got, want)
	}
	named := &v1beta1.DeploymentRuntimeConfig{ObjectMeta: metav1.ObjectMeta{Name: "bound"}}
	named.Spec.ServiceAccountTemplate = &v1beta1.ServiceAccountTemplate{Metadata: &v1beta1.ObjectMeta{Name: &account}}
	e.CreateTemporary(t, named)
	if got := update(named.Name); len(got) > 0 {
		t.Errorf("the new revision uses the same ServiceAccount, and the plan warns %q", got)
	}
}
