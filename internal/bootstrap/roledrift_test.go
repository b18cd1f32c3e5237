package bootstrap_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// checkDriftIsReverted changes the roles of a runtime as another client would: their owners, rules and
// subjects. The manager restores them, and deletes them with their revision.
func (s *testEnv) checkDriftIsReverted(t *testing.T) {
	t.Helper()
	text := func(requests string) string {
		all := stream(v1.ProviderKind, "drifted", definition("drifted", requests))
		return strings.Replace(
			all, "  name: drifted\n", "  name: drifted\n  annotations: {meta.xpkg.dev/permissions: minimal}\n", 1,
		)
	}
	p := env.NewPackage(v1.ProviderKind, "drifted", s.Push(t, "bootstrap/drifted", "v1.0.0", text("a")))
	s.EnsureCreated(t, p)
	s.WaitReady(t, p)
	everywhere := client.ObjectKey{Name: "crossplane:provider:" + p.PackageStatus().CurrentRevision + ":system"}
	within := client.ObjectKey{Namespace: s.namespace, Name: everywhere.Name}
	nobody := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "nobody"}}
	disown := func(o client.Object) { o.SetOwnerReferences(nil) }
	s.checkReverted(
		t, everywhere, &rbacv1.ClusterRole{}, disown, func(o client.Object) { o.(*rbacv1.ClusterRole).Rules = nil },
	)
	s.checkReverted(
		t, everywhere, &rbacv1.ClusterRoleBinding{}, disown,
		func(o client.Object) { o.(*rbacv1.ClusterRoleBinding).Subjects = nobody },
	)
	s.checkReverted(t, within, &rbacv1.Role{}, disown, func(o client.Object) { o.(*rbacv1.Role).Rules = nil })
	s.checkReverted(
		t, within, &rbacv1.RoleBinding{}, disown, func(o client.Object) { o.(*rbacv1.RoleBinding).Subjects = nobody },
	)
	second := s.Push(t, "bootstrap/drifted", "v2.0.0", text("b"))
	s.change(t, p, func(spec *v1.PackageSpec) { spec.Package = second })
	for _, o := range []client.Object{&rbacv1.Role{}, &rbacv1.RoleBinding{}} {
		wait.Until(t, env.Limit, fmt.Sprintf("the %T of the first version is gone", o), func() (string, bool) {
			err := s.Client.Get(t.Context(), within, o)
			return fmt.Sprint(err), client.IgnoreNotFound(err) == nil && err != nil
		})
	}
}

// checkReverted changes one object several times, and waits until each change is reverted.
func (s *testEnv) checkReverted(t *testing.T, key client.ObjectKey, o client.Object, changes ...func(client.Object)) {
	t.Helper()
	read := func() client.Object {
		if err := s.Client.Get(t.Context(), key, o); err != nil {
			t.Fatal(err)
		}
		is := o.DeepCopyObject().(client.Object)
		is.SetResourceVersion("")
		is.SetManagedFields(nil)
		return is
	}
	was := read()
	for i, change := range changes {
		wait.Until(t, env.Limit, key.Name+" is changed", func() (string, bool) {
			read()
			change(o)
			err := s.Client.Update(t.Context(), o)
			return fmt.Sprint(err), err == nil
		})
		wait.Until(t, env.Limit, fmt.Sprintf("change %d of the %T is reverted", i, o), func() (string, bool) {
			diff := cmp.Diff(was, read())
			return diff, diff == ""
		})
	}
}
