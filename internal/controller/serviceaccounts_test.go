package controller_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
)

// The ServiceAccount of a package stays its own: a configuration of another package cannot name it, and it is restored
// when it is deleted. Packages whose ServiceAccount the same configuration names share it.
func TestServiceAccountsOfPackages(t *testing.T) {
	s, _, r := newDeploymentEnv(t)
	install := func(name string, config *v1beta1.DeploymentRuntimeConfig) *v1.Provider {
		t.Helper()
		ref, _ := r.push(t, "runtime/"+name+":v1", provider(name, crd(name+".test", "Thing", "one")))
		p := env.NewProvider(name, ref)
		if config != nil {
			p.Spec.RuntimeConfigRef = &v1.RuntimeConfigReference{Name: config.Name}
		}
		s.CreateTemporary(t, p)
		return p
	}
	naming := func(name, account string) *v1beta1.DeploymentRuntimeConfig {
		c := &v1beta1.DeploymentRuntimeConfig{ObjectMeta: metav1.ObjectMeta{Name: name}}
		c.Spec.ServiceAccountTemplate = &v1beta1.ServiceAccountTemplate{Metadata: &v1beta1.ObjectMeta{Name: &account}}
		s.CreateTemporary(t, c)
		return c
	}
	account := func(name string) *corev1.ServiceAccount {
		a := &corev1.ServiceAccount{}
		if err := s.Client.Get(
			t.Context(), client.ObjectKey{Namespace: controller.DefaultNamespace, Name: name}, a,
		); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		return a
	}
	victim := install("victim", nil)
	untilSettled(t, s, victim)
	name := activeOf(t, s, victim)
	before := account(name)
	evil := install("evil", naming("steal", name))
	s.WaitCondition(t, evil, v1.TypeHealthy, corev1.ConditionFalse, "RuntimePrivileges")
	remove(t, s, evil)
	if got := account(name); got.ResourceVersion != before.ResourceVersion {
		t.Errorf("the ServiceAccount of another package was changed: %v", got.OwnerReferences)
	}

	if err := s.Client.Delete(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the ServiceAccount is restored, and pods have its token", func() bool {
		d := &appsv1.Deployment{}
		if err := s.Client.Get(
			t.Context(), client.ObjectKey{Namespace: controller.DefaultNamespace, Name: name}, d,
		); err != nil {
			t.Fatal(err)
		}
		now := account(name).UID
		return now != "" && now != before.UID && d.Spec.Template.Annotations["xpkg.dev/service-account"] == string(now) &&
			d.Status.ObservedGeneration == d.Generation && d.Status.UpdatedReplicas == 1 && d.Status.Replicas == 1
	})
	untilSettled(t, s, victim)

	family := naming("family", "cloud")
	first, second := install("first", family), install("second", family)
	untilSettled(t, s, first)
	untilSettled(t, s, second)
	uid := account("cloud").UID
	holder := second
	if account("cloud").OwnerReferences[0].Name == activeOf(t, s, first) {
		holder = first
	}
	other := map[*v1.Provider]*v1.Provider{first: second, second: first}[holder]
	remove(t, s, holder)
	untilSettled(t, s, other)
	if got := account("cloud"); got.UID != uid {
		t.Error("the ServiceAccount was deleted with the first of two packages that use it")
	}
	remove(t, s, other)
	eventually(t, "the ServiceAccount is deleted with the last package", func() bool { return account("cloud").UID == "" })
	remove(t, s, victim)
}
