package controller_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
)

// A package installs without its optional dependency. When that is installed, at
// any version, the package is reconciled, and no other one is.
//
// hardening: F12
func TestOptionalDependencies(t *testing.T) {
	w := newDependencyEnv(t, graph.None)
	first := w.push(t, "Provider", "relay:v1.0.0")
	second := w.push(t, "Provider", "relay:v2.0.0")
	guild := w.config(t, "guild", w.push(t, "Configuration", "guild:v1.0.0", "?relay <v2"))
	w.waitOptionalAbsent(t, guild, "relay <v2")
	if got := w.all(t); !slices.Equal(got, []string{"configuration/dep-guild"}) {
		t.Errorf("there is %v", got)
	}
	if e := w.lockEntry(t, "dep/guild"); len(e.Dependencies) != 0 || len(e.OptionalDependencies) != 1 ||
		e.OptionalDependencies[0].Constraints != "<v2" {
		t.Errorf("the Lock contains %+v", e)
	}

	relay := env.NewProvider("dep-by-hand", first)
	w.CreateTemporary(t, relay)
	w.WaitHealthy(t, relay)
	w.waitOptionalAbsent(t, guild)
	env.Update(t, w.Env, relay, func(p *v1.Provider) { p.Spec.Package = second })
	w.WaitCondition(t,
		guild, v1.TypeHealthy, corev1.ConditionFalse, "DependencyVersion: dependencies at a version that does not match: "+
			w.repository("relay")+" is installed at v2.0.0, but the package works only with <v2")
	w.WaitHealthy(t, relay)
	env.Update(t, w.Env, relay, func(p *v1.Provider) { p.Spec.Package = first })
	w.waitOptionalAbsent(t, guild)
	env.Update(t, w.Env, relay, func(p *v1.Provider) { p.Spec.Package = second })
	w.WaitCondition(t, guild, v1.TypeHealthy, corev1.ConditionFalse, "works only with <v2")
	w.remove(t, relay)
	w.waitOptionalAbsent(t, guild, "relay <v2")

	// It may come at a version that does not fit, too.
	relay = env.NewProvider("dep-by-hand", second)
	w.CreateTemporary(t, relay)
	w.WaitCondition(t, guild, v1.TypeHealthy, corev1.ConditionFalse, "works only with <v2")
	w.assertUnchanged(t)
}

// checkOptionalDependencies installs optional dependencies of a package as dependencies of others:
// at a compatible version, or not at all.
func (w *dependencyEnv) checkOptionalDependencies(t *testing.T) {
	club := w.config(t, "club", w.push(t, "Configuration", "club:v1.0.0", "?relay <v2"))
	w.waitOptionalAbsent(t, club, "relay <v2")
	fan := w.config(t, "fan", w.push(t, "Configuration", "fan:v1.0.0", "relay"))
	relay := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "dep-relay"}}
	w.waitInstalled(t, relay, "v1.0.0")
	w.WaitHealthy(t, fan)
	w.waitOptionalAbsent(t, club)
	w.remove(t, fan)
	w.remove(t, relay)
	rival := w.config(t, "rival", w.push(t, "Configuration", "rival:v1.0.0", "relay v2"))
	w.WaitCondition(t, rival, v1.TypeHealthy, corev1.ConditionFalse, "configuration/dep-club works only with "+
		w.repository("relay")+" <v2")
	w.waitOptionalAbsent(t, club, "relay <v2")
	w.remove(t, rival)
	w.remove(t, club)
}

// waitOptionalAbsent waits until a package is healthy and reports these optional dependencies as
// absent.
func (w *dependencyEnv) waitOptionalAbsent(t *testing.T, p v1.Package, want ...string) {
	t.Helper()
	for i := range want {
		want[i] = w.repository(want[i])
	}
	w.WaitHealthy(t, p)
	eventually(t, fmt.Sprintf("%q is reported as absent", want), func() bool {
		revs := w.Revisions(t, p)
		return len(revs) == 1 && slices.Equal(revs[0].RevisionStatus().AbsentOptionalDependencies, want)
	})
}

// lockEntry returns the entry of a repository in the Lock.
func (w *dependencyEnv) lockEntry(t *testing.T, repository string) v1beta1.LockPackage {
	t.Helper()
	var out v1beta1.LockPackage
	eventually(t, repository+" is in the Lock", func() bool {
		lock := &v1beta1.Lock{}
		if err := w.Client.Get(t.Context(), client.ObjectKey{Name: v1beta1.LockName}, lock); err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(
			lock.Packages, func(p v1beta1.LockPackage) bool { return strings.HasSuffix(p.Source, repository) },
		)
		if at >= 0 {
			out = lock.Packages[at]
		}
		return at >= 0
	})
	return out
}
