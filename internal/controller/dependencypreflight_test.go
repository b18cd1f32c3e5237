package controller_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
)

// pushWithKinds publishes a Provider at dep/NAME:TAG that contains CRDs of the group foreseen.test.
func (w *dependencyEnv) pushWithKinds(t testing.TB, name string, kinds ...string) string {
	t.Helper()
	short, _, _ := strings.Cut(name, ":")
	stream := provider(short)
	for _, kind := range kinds {
		stream += crd("foreseen.test", kind, short)
	}
	ref, _ := w.registry.push(t, "dep/"+name, stream)
	return ref
}

// A dependency with an object that another package holds is a conflict of the whole
// dependency tree: nothing of the tree is created, the condition names the holder, and
// the install continues when the object is deleted.
func TestObjectConflictOfADependencyPreventsTheInstall(t *testing.T) {
	w := newDependencyEnv(t, "")
	w.push(t, "Provider", "clean:v1.0.0")
	refused := func(t *testing.T, p *v1.Configuration, parts ...string) {
		t.Helper()
		w.WaitCondition(t, p, v1.TypeHealthy, corev1.ConditionFalse, "ForeignOwner: ")
		for _, part := range parts {
			if message := p.GetCondition(v1.TypeHealthy).Message; !strings.Contains(message, part) {
				t.Errorf("the message does not contain %q:\n%s", part, message)
			}
		}
	}
	only := func(t *testing.T, want ...string) {
		t.Helper()
		if got := w.all(t); !slices.Equal(got, want) {
			t.Errorf("there is %v, want %v", got, want)
		}
	}

	t.Run("with another package", func(t *testing.T) {
		holder := env.NewProvider("dep-holder", w.pushWithKinds(t, "holder:v1.0.0", "Ship", "Raft"))
		w.CreateTemporary(t, holder)
		w.WaitHealthy(t, holder)
		w.pushWithKinds(t, "fleet:v1.0.0", "Ship", "Boat")
		p := w.config(t, "harbor", w.push(t, "Configuration", "harbor:v1.0.0", "fleet", "clean"))
		refused(t, p, "ships.foreseen.test", w.repository("fleet"), "Provider/"+holder.Name)
		only(t, "configuration/dep-harbor", "provider/dep-holder")
		w.remove(t, holder)
		w.WaitHealthy(t, p)
		for _, name := range []string{"dep-fleet", "dep-clean"} {
			w.waitInstalled(t, &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: name}}, "v1.0.0")
		}
		for _, p := range []v1.Package{p, env.NewProvider("dep-fleet", ""), env.NewProvider("dep-clean", "")} {
			w.remove(t, p)
		}
	})

	t.Run("with each other", func(t *testing.T) {
		w.pushWithKinds(t, "left:v1.0.0", "Sail")
		w.pushWithKinds(t, "right:v1.0.0", "Sail")
		p := w.config(t, "both-sails", w.push(t, "Configuration", "both-sails:v1.0.0", "left", "right"))
		refused(t, p, "sails.foreseen.test", w.repository("left"), w.repository("right"))
		only(t, "configuration/dep-both-sails")
		w.remove(t, p)
	})
	t.Run("with the package itself", func(t *testing.T) {
		w.pushWithKinds(t, "anchor:v1.0.0", "Anchor")
		ref, _ := w.registry.push(t, "dep/chain:v1.0.0", meta("Provider", "chain",
			fmt.Sprintf("spec:\n  dependsOn:\n  - {provider: %s, version: '>=v1'}\n", w.repository("anchor")))+
			crd("foreseen.test", "Anchor", "chain"))
		p := env.NewProvider("dep-chain", ref)
		w.CreateTemporary(t, p)
		w.WaitCondition(t, p, v1.TypeHealthy, corev1.ConditionFalse, "anchors.foreseen.test, which "+w.repository("anchor")+
			" contains, belongs to provider/dep-chain")
		only(t, "provider/dep-chain")
		w.remove(t, p)
	})
	t.Run("with an object of a user", func(t *testing.T) {
		users := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(
			[]byte(strings.TrimPrefix(crd("foreseen.test", "Rope", "user"), "---\n")), users,
		); err != nil {
			t.Fatal(err)
		}
		w.CreateTemporary(t, users)
		w.pushWithKinds(t, "rope:v1.0.0", "Rope")
		p := w.config(t, "rigging", w.push(t, "Configuration", "rigging:v1.0.0", "rope", "clean"))
		w.WaitCondition(t, p, v1.TypeHealthy, corev1.ConditionFalse, "NeedsAdoption: ")
		want := "xpkg install provider " + w.repository("rope") + ":v1.0.0 dep-rope --adopt"
		if message := p.GetCondition(v1.TypeHealthy).Message; !strings.Contains(message, want) {
			t.Errorf("the message does not contain %q:\n%s", want, message)
		}
		only(t, "configuration/dep-rigging")
		w.remove(t, p)
	})
	t.Run("an object that moves to a dependency is no conflict", func(t *testing.T) {
		p := env.NewProvider("dep-split", w.pushWithKinds(t, "split:v1.0.0", "Mast"))
		w.CreateTemporary(t, p)
		w.WaitHealthy(t, p)
		w.pushWithKinds(t, "mast:v1.0.0", "Mast")
		ref, _ := w.registry.push(t, "dep/split:v2.0.0", meta("Provider", "split",
			fmt.Sprintf("spec:\n  dependsOn:\n  - {provider: %s, version: '>=v1'}\n", w.repository("mast"))))
		upgradeTo(t, w.testEnv, p, ref)
		mast := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "dep-mast"}}
		w.waitInstalled(t, mast, "v1.0.0")
		w.remove(t, p)
		w.remove(t, mast)
	})
	w.assertUnchanged(t)
}
