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
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// waitLocked waits until the Lock has exactly these entries, each written as
// "REPOSITORY VERSION" and the repositories that it needs.
func (w *dependencyEnv) waitLocked(t *testing.T, want ...string) {
	t.Helper()
	want = append(want, "stranger v1.0.0")
	slices.Sort(want)
	wait.Until(t, limit, fmt.Sprintf("the Lock contains %q", want), func() (string, bool) {
		lock := &v1beta1.Lock{}
		if err := w.Client.Get(t.Context(), client.ObjectKey{Name: v1beta1.LockName}, lock); err != nil {
			return err.Error(), false
		}
		got := []string{}
		for _, p := range lock.Packages {
			line := strings.TrimPrefix(p.Source, w.repository("")) + " " + p.Version
			for _, d := range p.Dependencies {
				line += " " + strings.TrimPrefix(d.Package, w.repository(""))
			}
			got = append(got, line)
		}
		slices.Sort(got)
		return fmt.Sprintf("%q", got), slices.Equal(got, want)
	})
}

// The Lock is derived from the packages. No decision uses its content, so a changed
// or deleted Lock affects no package.
//
// hardening: F6
func TestLockIsDerived(t *testing.T) {
	w := newDependencyEnv(t, "")
	w.push(t, "Provider", "lamp:v1.0.0")
	w.push(t, "Provider", "wire:v1.0.0")
	root := w.config(t, "locked", w.push(t, "Configuration", "house:v1.0.0", "lamp", "wire"))
	w.WaitHealthy(t, root)
	whole := []string{"house v1.0.0 lamp wire", "lamp v1.0.0", "wire v1.0.0"}
	w.waitLocked(t, whole...)

	lock := &v1beta1.Lock{ObjectMeta: metav1.ObjectMeta{Name: v1beta1.LockName}}
	if err := w.Client.Delete(t.Context(), lock); err != nil {
		t.Fatal(err)
	}
	w.waitLocked(t, whole...)

	env.Update(t, w.Env, lock, func(lock *v1beta1.Lock) {
		twice := lock.Packages[0]
		lock.Packages = []v1beta1.LockPackage{
			twice, twice,
			{Name: "", Source: "", Version: "", Dependencies: []v1beta1.Dependency{}},
			{Name: "made-up", Kind: new(
				"Nonsense",
			), Source: "registry.example.com/made/up", Version: "v0.0.1", Dependencies: []v1beta1.Dependency{
				{Package: "registry.example.com/made/up", Constraints: "!"},
			}},
		}
	})
	w.waitLocked(t, whole...)
	w.WaitHealthy(t, root)

	next := w.push(t, "Configuration", "house:v1.1.0", "lamp")
	env.Update(t, w.Env, v1.Package(root), func(p v1.Package) { p.PackageSpec().Package = next })
	w.waitLocked(t, "house v1.1.0 lamp", "lamp v1.0.0", "wire v1.0.0")
	moved := w.push(t, "Configuration", "villa:v1.0.0", "wire")
	env.Update(t, w.Env, v1.Package(root), func(p v1.Package) { p.PackageSpec().Package = moved })
	w.waitLocked(t, "villa v1.0.0 wire", "lamp v1.0.0", "wire v1.0.0")
	if err := w.Client.Delete(t.Context(), root); err != nil {
		t.Fatal(err)
	}
	w.waitLocked(t, "lamp v1.0.0", "wire v1.0.0")
	w.assertUnchanged(t)
}

// A revision that is not active needs nothing yet, and its package installs nothing.
func TestInactiveRevisionHasNoDependencies(t *testing.T) {
	w := newDependencyEnv(t, "")
	w.push(t, "Provider", "idle:v1.0.0")
	p := newConfiguration("dep-waits", w.push(t, "Configuration", "waits:v1.0.0", "idle"))
	p.Spec.RevisionActivationPolicy = v1.ManualActivation
	w.CreateTemporary(t, p)
	w.WaitCondition(t, p, v1.TypeInstalled, corev1.ConditionFalse, "")
	rev := w.Revisions(t, p)[0]
	if got := w.all(t); !slices.Equal(got, []string{"configuration/dep-waits"}) {
		t.Errorf("there is %v", got)
	}
	env.Update(t, w.Env, rev, func(rev v1.PackageRevision) { rev.RevisionSpec().DesiredState = v1.RevisionActive })
	w.WaitHealthy(t, p)
	w.waitInstalled(t, &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "dep-idle"}}, "v1.0.0")
	w.assertUnchanged(t)
}

// The Lock has the condition that tools of the field wait for: dependencies that cannot be resolved, with
// the package and the reason; dependencies that are satisfied; and none without packages.
func TestLockReportsTheResolutionOfDependencies(t *testing.T) {
	w := newDependencyEnv(t, "")
	w.waitResolved(t, corev1.ConditionTrue, "")
	root := w.config(t, "resolved", w.push(t, "Configuration", "reports:v1.0.0", "missing"))
	w.waitResolved(t, corev1.ConditionFalse, w.repository("reports")+":v1.0.0: ")
	w.push(t, "Provider", "missing:v1.0.0")
	env.Update(t, w.Env, v1.Package(root), func(p v1.Package) { p.SetAnnotations(map[string]string{"retry": "now"}) })
	w.WaitHealthy(t, root)
	w.waitResolved(t, corev1.ConditionTrue, "")

	// A finalizer of Crossplane core is removed: the deletion of the Lock waits for nothing.
	lock := &v1beta1.Lock{}
	lock.Name = v1beta1.LockName
	env.Update(
		t, w.Env, lock, func(lock *v1beta1.Lock) { lock.Finalizers = append(lock.Finalizers, v1beta1.FinalizerLock) },
	)
	wait.Until(t, limit, "the finalizer is removed", func() (string, bool) {
		if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(lock), lock); err != nil {
			return err.Error(), false
		}
		return fmt.Sprint(lock.Finalizers), len(lock.Finalizers) == 0
	})
}

// waitResolved waits until the Lock has the Resolved condition with a status, and a message that
// contains a text.
func (w *dependencyEnv) waitResolved(t *testing.T, status corev1.ConditionStatus, message string) {
	t.Helper()
	wait.Until(t, limit, fmt.Sprintf("Resolved is %s: %s", status, message), func() (string, bool) {
		lock := &v1beta1.Lock{}
		if err := w.Client.Get(t.Context(), client.ObjectKey{Name: v1beta1.LockName}, lock); err != nil {
			return err.Error(), false
		}
		c := lock.GetCondition(v1beta1.TypeResolved)
		return fmt.Sprintf("%+v", c), c.Status == status && strings.Contains(c.Message, message)
	})
}
