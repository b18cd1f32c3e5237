package controller_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// startManager starts a manager with the content, and returns its environment.
func startManager(t *testing.T, content controller.Content) *env.Env {
	t.Helper()
	e := env.New(t)
	e.RunManager(t, controller.Options{Content: content})
	return e
}

func TestInstallUpgradeUninstall(t *testing.T) {
	s := newFakeContent()
	const first, second = "registry.example.com/test/lifecycle:v1.0.0", "registry.example.com/test/lifecycle:v2.0.0"
	s.push(first, provider("lifecycle", crd("lifecycle.test", "Kept", "one"), crd("lifecycle.test", "Dropped", "one")))
	s.push(second, provider("lifecycle", crd("lifecycle.test", "Kept", "two"), crd("lifecycle.test", "Added", "two")))
	e := startManager(t, s)

	p := env.NewProvider("lifecycle", first)
	e.CreateTemporary(t, p)
	e.WaitHealthy(t, p)
	rev1 := p.Status.CurrentRevision
	if diff := cmp.Diff([]string{"Provider/lifecycle*"}, owners(t, e.Client, "kepts.lifecycle.test")); diff != "" {
		t.Errorf("owners after the install (-want +got):\n%s", diff)
	}
	r := &v1.ProviderRevision{}
	if err := e.Client.Get(t.Context(), client.ObjectKey{Name: rev1}, r); err != nil {
		t.Fatal(err)
	}
	if r.Annotations["meta.crossplane.io/source"] != "example.org/lifecycle" {
		t.Errorf("the annotations of the metadata did not reach the revision: %v", r.Annotations)
	}
	if r.Spec.Revision != 1 || len(r.Status.ObjectRefs) != 2 || r.Status.ObjectRefs[0].UID == "" {
		t.Errorf("revision %d with objects %+v", r.Spec.Revision, r.Status.ObjectRefs)
	}

	env.Update(t, e, p, func(p *v1.Provider) { p.Spec.Package = second })
	wait.Until(t, limit, "the second revision is healthy", func() (string, bool) {
		if err := e.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err.Error(), false
		}
		h := p.GetCondition(v1.TypeHealthy)
		return fmt.Sprintf("%+v", p.Status),
			p.Status.CurrentRevision != rev1 && h.Status == corev1.ConditionTrue && p.Status.CurrentIdentifier == second
	})
	if diff := cmp.Diff([]string{"Provider/lifecycle*"}, owners(t, e.Client, "kepts.lifecycle.test")); diff != "" {
		t.Errorf("owners after the upgrade (-want +got):\n%s", diff)
	}
	wait.Until(t, limit, "the old revision has released what the new one dropped", func() (string, bool) {
		got := owners(t, e.Client, "droppeds.lifecycle.test")
		return fmt.Sprint(got), cmp.Equal(got, []string{"Provider/lifecycle"})
	})

	if err := e.Client.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"kepts.lifecycle.test", "droppeds.lifecycle.test", "addeds.lifecycle.test"} {
		wait.Until(t, limit, name+" is deleted", func() (string, bool) {
			err := e.Client.Get(t.Context(), client.ObjectKey{Name: name}, &apiextensionsv1.CustomResourceDefinition{})
			return fmt.Sprint(err), apierrors.IsNotFound(err)
		})
	}
	if n := s.lookups(first); n != 1 {
		t.Errorf("the tag was resolved %d times, want once", n)
	}
}

// hardening: I-4
func TestTwoPackagesWithOneObject(t *testing.T) {
	s := newFakeContent()
	const a, b = "registry.example.com/test/holder:v1.0.0", "registry.example.com/test/comer:v1.0.0"
	s.push(a, provider("holder", crd("conflict.test", "Shared", "a")))
	s.push(b, provider("comer", crd("conflict.test", "Shared", "b"), crd("conflict.test", "Own", "b")))
	e := startManager(t, s)

	holder := env.NewProvider("holder", a)
	e.CreateTemporary(t, holder)
	e.WaitHealthy(t, holder)
	comer := env.NewProvider("comer", b)
	e.CreateTemporary(t, comer)
	e.WaitCondition(
		t, comer, v1.TypeHealthy, corev1.ConditionFalse,
		"ForeignOwner: objects of the package cannot be established: CustomResourceDefinition shareds.conflict.test belongs to Provider/holder",
	)
	err := e.Client.Get(
		t.Context(), client.ObjectKey{Name: "owns.conflict.test"}, &apiextensionsv1.CustomResourceDefinition{},
	)
	if !apierrors.IsNotFound(err) {
		t.Errorf("a part of the refused package was installed (%v)", err)
	}

	if err := e.Client.Delete(t.Context(), holder); err != nil {
		t.Fatal(err)
	}
	e.WaitHealthy(t, comer)
}

func TestManualActivation(t *testing.T) {
	s := newFakeContent()
	const first, second = "registry.example.com/test/manual:v1.0.0", "registry.example.com/test/manual:v2.0.0"
	s.push(first, provider("manual", crd("manual.test", "Thing", "one")))
	s.push(second, provider("manual", crd("manual.test", "Thing", "two")))
	e := startManager(t, s)

	p := env.NewProvider("manual", first)
	p.Spec.RevisionActivationPolicy = v1.ManualActivation
	e.CreateTemporary(t, p)
	e.WaitCondition(t, p, v1.TypeInstalled, corev1.ConditionFalse, "waits to be activated")
	rev1 := p.Status.CurrentRevision
	activate(t, e.Client, rev1)
	e.WaitCondition(t, p, v1.TypeInstalled, corev1.ConditionTrue, "")
	e.WaitHealthy(t, p)

	env.Update(t, e, p, func(p *v1.Provider) { p.Spec.Package = second })
	e.WaitCondition(t, p, v1.TypeInstalled, corev1.ConditionFalse, "waits to be activated")
	rev2 := p.Status.CurrentRevision
	r := &v1.ProviderRevision{}
	if err := e.Client.Get(t.Context(), client.ObjectKey{Name: rev1}, r); err != nil {
		t.Fatal(err)
	}
	if r.Spec.DesiredState != v1.RevisionActive {
		t.Error("the running revision was deactivated before a user activated the new one")
	}
	activate(t, e.Client, rev2)
	wait.Until(t, limit, "the old revision is inactive and the new one has the higher number", func() (string, bool) {
		one, two := &v1.ProviderRevision{}, &v1.ProviderRevision{}
		if err := errors.Join(
			e.Client.Get(t.Context(), client.ObjectKey{Name: rev1}, one),
			e.Client.Get(t.Context(), client.ObjectKey{Name: rev2}, two),
		); err != nil {
			return err.Error(), false
		}
		return fmt.Sprintf("%+v %+v", one.Spec, two.Spec),
			one.Spec.DesiredState == v1.RevisionInactive && two.Spec.Revision == 2
	})
	e.WaitHealthy(t, p)
}

func TestDependencies(t *testing.T) {
	s := newFakeContent()
	const conf, needed = "registry.example.com/test/conf:v1.0.0", "registry.example.com/test/needed:v1.2.0"
	s.push(conf, meta(
		"Configuration", "conf",
		"spec:\n  dependsOn:\n  - provider: registry.example.com/test/needed\n    version: \">=v1.1.0\"\n",
	))
	s.push(needed, provider("needed", crd("needed.test", "Thing", "one")))
	e := startManager(t, s)

	configuration := &v1.Configuration{ObjectMeta: metav1.ObjectMeta{Name: "conf"}, Spec: v1.ConfigurationSpec{
		PackageSpec: v1.PackageSpec{Package: conf},
	}}
	e.CreateTemporary(t, configuration)
	e.WaitCondition(
		t, configuration, v1.TypeHealthy, corev1.ConditionFalse,
		"DependencyMissing: 1 dependency of 1 not installed: registry.example.com/test/needed >=v1.1.0.",
	)
	dependency := env.NewProvider("needed", needed)
	e.CreateTemporary(t, dependency)
	e.WaitHealthy(t, configuration)

	wait.Until(t, limit, "the lock names both and the dependency", func() (string, bool) {
		lock := &v1beta1.Lock{}
		if err := e.Client.Get(t.Context(), client.ObjectKey{Name: v1beta1.LockName}, lock); err != nil {
			return err.Error(), false
		}
		edges := map[string]string{}
		for _, p := range lock.Packages {
			for _, d := range p.Dependencies {
				edges[p.Source+" "+p.Version] = d.Package + " " + d.Constraints
			}
		}
		return fmt.Sprintf("%+v", lock.Packages),
			edges["registry.example.com/test/conf v1.0.0"] == "registry.example.com/test/needed >=v1.1.0"
	})
}

func TestFailuresAreReported(t *testing.T) {
	s := newFakeContent()
	const function = "registry.example.com/test/function:v1.0.0"
	s.push(function, meta("Function", "function", ""))
	e := startManager(t, s)

	wrong := env.NewProvider("wrong-kind", function)
	e.CreateTemporary(t, wrong)
	e.WaitCondition(
		t, wrong, v1.TypeHealthy, corev1.ConditionFalse,
		"WrongKind: registry.example.com/test/function:v1.0.0 is a Function and not a Provider.",
	)
	e.WaitCondition(t, wrong, v1.TypeInstalled, corev1.ConditionFalse, "WrongKind")

	absent := env.NewProvider("absent", "registry.example.com/test/absent:v1.0.0")
	e.CreateTemporary(t, absent)
	e.WaitCondition(t, absent, v1.TypeHealthy, corev1.ConditionFalse, "the registry has no such tag")
	s.push("registry.example.com/test/absent:v1.0.0", provider("absent"))
	e.WaitHealthy(t, absent)
}

func TestPause(t *testing.T) {
	s := newFakeContent()
	const ref = "registry.example.com/test/paused:v1.0.0"
	s.push(ref, provider("paused", crd("paused.test", "Thing", "one")))
	e := startManager(t, s)

	p := env.NewProvider("paused", ref)
	p.Annotations = map[string]string{v1.AnnotationPaused: "true"}
	e.CreateTemporary(t, p)
	e.WaitCondition(t, p, v1.TypeSynced, corev1.ConditionFalse, "paused")
	env.Update(t, e, p, func(p *v1.Provider) { p.Annotations = nil })
	e.WaitHealthy(t, p)
	if c := p.GetCondition(v1.TypeSynced); c.Reason == v1.ReasonPaused {
		t.Errorf("the package still reports a pause: %+v", c)
	}
}
