//go:build linux

package attack_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/internal/testing/program"
	"github.com/xpkg-dev/xpkg/internal/testing/scratch"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// A runtime configuration that names the ServiceAccount of another package does not give its package the identity of
// that runtime, and removing the package does not delete it. A runtime whose ServiceAccount is deleted gets a token of
// a new one.
func TestRuntimeConfigTakesNoAccountOfAnotherPackage(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane: skipped with -short")
	}
	runtime, err := scratch.Compile(filepath.Join("testdata", "hostile"))
	if err != nil {
		t.Fatal(err)
	}
	a := &arena{plane: newPlane(t, program.Build(t)), registry: cluster.Registry(t), runtime: runtime}
	const path = "/apis/victim.test/v1/things"
	victim := a.install(
		t, v1.ProviderKind, "victim", a.push(t, "victim", provider("victim", crd("things.victim.test", "")), "poll", path),
		nil,
	)
	a.until(t, victim, "Ready")
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: controller.DefaultNamespace, Name: victim.PackageStatus().CurrentRevision,
	}}
	a.get(t, account)
	a.untilLog(t, victim, "poll: 200 "+string(account.UID))

	config := &v1beta1.DeploymentRuntimeConfig{ObjectMeta: metav1.ObjectMeta{Name: "steal"}}
	config.Spec.ServiceAccountTemplate = &v1beta1.ServiceAccountTemplate{Metadata: &v1beta1.ObjectMeta{
		Name: &account.Name,
	}}
	if err := a.client.Create(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	evil := v1.NewPackage(v1.ProviderKind)
	evil.SetName("evil")
	evil.PackageSpec().Package = a.push(t, "evil", provider("evil", crd("things.evil.test", "")), "poll", path)
	evil.RuntimeSpec().RuntimeConfigRef = &v1.RuntimeConfigReference{Name: config.Name}
	if err := a.client.Create(t.Context(), evil); err != nil {
		t.Fatal(err)
	}
	a.until(t, evil, "RuntimePrivileges")
	a.remove(t, evil)
	before := account.DeepCopy()
	a.get(t, account)
	if diff := cmp.Diff(before.ObjectMeta, account.ObjectMeta); diff != "" {
		t.Errorf("the ServiceAccount of the other package was changed:\n%s", diff)
	}

	if err := a.client.Delete(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, limit, "the ServiceAccount is restored", func() (string, bool) {
		err := a.client.Get(t.Context(), client.ObjectKeyFromObject(account), account)
		return fmt.Sprint(err), err == nil && account.UID != before.UID
	})
	a.untilLog(t, victim, "poll: 200 "+string(account.UID))
	a.until(t, victim, "Ready")
}

func (p *plane) get(t *testing.T, o client.Object) {
	t.Helper()
	if err := p.client.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
}

func (p *plane) untilLog(t *testing.T, pkg v1.Package, part string) {
	t.Helper()
	wait.Until(t, limit, "the runtime reports "+part, func() (string, bool) {
		log := p.runtimeLog(t, pkg)
		return log, strings.Contains(log, part)
	})
}
