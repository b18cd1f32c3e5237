package manager_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/content"
	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/oci"
	"github.com/xpkg-dev/xpkg/internal/testing/plane"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// shelf is a place of packages for tests: what is put on it can be resolved and
// read by its reference, and every look-up is counted.
type shelf struct {
	mu       sync.Mutex
	tags     map[string]oci.Digest
	packages map[oci.Digest]string
	resolved map[string]int
}

func newShelf() *shelf {
	return &shelf{tags: map[string]oci.Digest{}, packages: map[oci.Digest]string{}, resolved: map[string]int{}}
}

func (s *shelf) put(ref, stream string) oci.Digest {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := oci.DigestOf([]byte(stream))
	s.tags[ref], s.packages[d] = d, stream
	return d
}

func (s *shelf) lookups(ref string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.resolved[ref]
}

var errNoSuchTag = errors.New("the registry has no such tag")

func (s *shelf) Resolve(_ context.Context, o content.Origin, _ time.Duration) (oci.Digest, error) {
	ref := o.Ref
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resolved[ref.String()]++
	d, ok := s.tags[ref.String()]
	if !ok {
		return oci.Digest{}, content.ErrNotCached.New(errNoSuchTag, "%s", ref)
	}
	return d, nil
}

func (s *shelf) Read(_ context.Context, o content.Origin, d oci.Digest, _ bool) (*format.Package, error) {
	s.mu.Lock()
	stream, ok := s.packages[d]
	s.mu.Unlock()
	if !ok {
		return nil, content.ErrNotCached.New(nil, "%s", o.Ref)
	}
	return format.Read([]byte(stream), format.ReadOptions{})
}

func (s *shelf) Named(_ context.Context, name string) (oci.Digest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, ok := s.tags[name]
	if !ok {
		return oci.Digest{}, content.ErrNotCached.New(nil, "%s", name)
	}
	return d, nil
}

func provider(name string, crds ...string) string {
	return meta("Provider", name, "") + strings.Join(crds, "")
}

func meta(kind, name, spec string) string {
	return fmt.Sprintf("apiVersion: meta.pkg.crossplane.io/v1\nkind: %s\nmetadata:\n  name: %s\n  annotations:\n    meta.crossplane.io/source: example.org/%s\n%s", kind, name, name, spec)
}

func crd(group, kind, description string) string {
	plural := strings.ToLower(kind) + "s"
	return fmt.Sprintf(`---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %[2]s.%[1]s
spec:
  group: %[1]s
  scope: Cluster
  names: {kind: %[3]s, plural: %[2]s, singular: %[4]s, listKind: %[3]sList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        description: %[5]s
        properties:
          spec: {type: object, x-kubernetes-preserve-unknown-fields: true}
`, group, plural, kind, strings.ToLower(kind), description)
}

// limit is how long a condition may take on a machine that is busy.
const limit = 45 * time.Second

func untilHealthy(t *testing.T, c client.Client, p v1.Package) {
	t.Helper()
	untilCondition(t, c, p, v1.TypeHealthy, corev1.ConditionTrue, "")
}

func untilCondition(t *testing.T, c client.Client, p v1.Package, ct v1.ConditionType, status corev1.ConditionStatus, message string) {
	t.Helper()
	wait.Until(t, limit, fmt.Sprintf("%s %s has %s=%s %s", p.PackageKind(), p.GetName(), ct, status, message), func() (string, bool) {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err.Error(), false
		}
		got := p.GetCondition(ct)
		return fmt.Sprintf("%+v", p.PackageStatus()), got.Status == status && strings.Contains(got.Message, message) && got.ObservedGeneration == p.GetGeneration()
	})
}

func newProvider(name, ref string) *v1.Provider {
	return &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.ProviderSpec{PackageSpec: v1.PackageSpec{Package: ref}}}
}

func create(t *testing.T, c client.Client, o client.Object) {
	t.Helper()
	if err := c.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Delete(context.Background(), o); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
}

// owners lists the owners of a definition as "Kind/name", with a star for the
// controller.
func owners(t *testing.T, c client.Client, name string) []string {
	t.Helper()
	d := &apiextensionsv1.CustomResourceDefinition{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: name}, d); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, r := range d.OwnerReferences {
		s := r.Kind + "/" + r.Name
		if r.Controller != nil && *r.Controller {
			s += "*"
		}
		out = append(out, s)
	}
	return out
}

func TestInstallUpgradeUninstall(t *testing.T) {
	s := newShelf()
	const first, second = "registry.example.com/test/lifecycle:v1.0.0", "registry.example.com/test/lifecycle:v2.0.0"
	s.put(first, provider("lifecycle", crd("lifecycle.test", "Kept", "one"), crd("lifecycle.test", "Dropped", "one")))
	s.put(second, provider("lifecycle", crd("lifecycle.test", "Kept", "two"), crd("lifecycle.test", "Added", "two")))
	c := plane.Start(t, s)

	p := newProvider("lifecycle", first)
	create(t, c, p)
	untilHealthy(t, c, p)
	rev1 := p.Status.CurrentRevision
	if diff := cmp.Diff([]string{"ProviderRevision/" + rev1 + "*", "Provider/lifecycle"}, owners(t, c, "kepts.lifecycle.test")); diff != "" {
		t.Errorf("owners after the install (-want +got):\n%s", diff)
	}
	r := &v1.ProviderRevision{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: rev1}, r); err != nil {
		t.Fatal(err)
	}
	if r.Annotations["meta.crossplane.io/source"] != "example.org/lifecycle" {
		t.Errorf("the annotations of the metadata did not reach the revision: %v", r.Annotations)
	}
	if r.Spec.Revision != 1 || len(r.Status.ObjectRefs) != 2 || r.Status.ObjectRefs[0].UID == "" {
		t.Errorf("revision %d with objects %+v", r.Spec.Revision, r.Status.ObjectRefs)
	}

	p.Spec.Package = second
	if err := c.Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, limit, "the second revision is healthy", func() (string, bool) {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err.Error(), false
		}
		h := p.GetCondition(v1.TypeHealthy)
		return fmt.Sprintf("%+v", p.Status), p.Status.CurrentRevision != rev1 && h.Status == corev1.ConditionTrue && p.Status.CurrentIdentifier == second
	})
	rev2 := p.Status.CurrentRevision
	want := []string{"ProviderRevision/" + rev1, "Provider/lifecycle", "ProviderRevision/" + rev2 + "*"}
	if diff := cmp.Diff(want, owners(t, c, "kepts.lifecycle.test")); diff != "" {
		t.Errorf("owners after the upgrade (-want +got):\n%s", diff)
	}
	wait.Until(t, limit, "the old revision has released what the new one dropped", func() (string, bool) {
		got := owners(t, c, "droppeds.lifecycle.test")
		return fmt.Sprint(got), cmp.Equal(got, []string{"ProviderRevision/" + rev1, "Provider/lifecycle"})
	})

	if err := c.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"kepts.lifecycle.test", "droppeds.lifecycle.test", "addeds.lifecycle.test"} {
		wait.Until(t, limit, name+" is gone", func() (string, bool) {
			err := c.Get(t.Context(), client.ObjectKey{Name: name}, &apiextensionsv1.CustomResourceDefinition{})
			return fmt.Sprint(err), apierrors.IsNotFound(err)
		})
	}
	if n := s.lookups(first); n != 1 {
		t.Errorf("the tag was resolved %d times, want once", n)
	}
}

func TestTwoPackagesWithOneObject(t *testing.T) {
	s := newShelf()
	const a, b = "registry.example.com/test/holder:v1.0.0", "registry.example.com/test/comer:v1.0.0"
	s.put(a, provider("holder", crd("conflict.test", "Shared", "a")))
	s.put(b, provider("comer", crd("conflict.test", "Shared", "b"), crd("conflict.test", "Own", "b")))
	c := plane.Start(t, s)

	holder := newProvider("holder", a)
	create(t, c, holder)
	untilHealthy(t, c, holder)
	comer := newProvider("comer", b)
	create(t, c, comer)
	untilCondition(t, c, comer, v1.TypeHealthy, corev1.ConditionFalse, "ForeignOwner: objects of the package cannot be established: CustomResourceDefinition shareds.conflict.test belongs to Provider/holder")
	err := c.Get(t.Context(), client.ObjectKey{Name: "owns.conflict.test"}, &apiextensionsv1.CustomResourceDefinition{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("a part of the refused package was installed (%v)", err)
	}

	if err := c.Delete(t.Context(), holder); err != nil {
		t.Fatal(err)
	}
	untilHealthy(t, c, comer)
}

func TestManualActivation(t *testing.T) {
	s := newShelf()
	const first, second = "registry.example.com/test/manual:v1.0.0", "registry.example.com/test/manual:v2.0.0"
	s.put(first, provider("manual", crd("manual.test", "Thing", "one")))
	s.put(second, provider("manual", crd("manual.test", "Thing", "two")))
	c := plane.Start(t, s)

	p := newProvider("manual", first)
	p.Spec.RevisionActivationPolicy = v1.ManualActivation
	create(t, c, p)
	untilCondition(t, c, p, v1.TypeInstalled, corev1.ConditionFalse, "waits to be activated")
	rev1 := p.Status.CurrentRevision
	activate(t, c, rev1)
	untilCondition(t, c, p, v1.TypeInstalled, corev1.ConditionTrue, "")
	untilHealthy(t, c, p)

	p.Spec.Package = second
	if err := c.Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	untilCondition(t, c, p, v1.TypeInstalled, corev1.ConditionFalse, "waits to be activated")
	rev2 := p.Status.CurrentRevision
	r := &v1.ProviderRevision{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: rev1}, r); err != nil {
		t.Fatal(err)
	}
	if r.Spec.DesiredState != v1.RevisionActive {
		t.Error("the running revision was deactivated before a person activated the new one")
	}
	activate(t, c, rev2)
	wait.Until(t, limit, "the old revision is inactive and the new one has the higher number", func() (string, bool) {
		one, two := &v1.ProviderRevision{}, &v1.ProviderRevision{}
		if err := errors.Join(c.Get(t.Context(), client.ObjectKey{Name: rev1}, one), c.Get(t.Context(), client.ObjectKey{Name: rev2}, two)); err != nil {
			return err.Error(), false
		}
		return fmt.Sprintf("%+v %+v", one.Spec, two.Spec), one.Spec.DesiredState == v1.RevisionInactive && two.Spec.Revision == 2
	})
	untilHealthy(t, c, p)
}

func activate(t *testing.T, c client.Client, name string) {
	t.Helper()
	r := &v1.ProviderRevision{ObjectMeta: metav1.ObjectMeta{Name: name}}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"desiredState":"Active"}}`))
	if err := c.Patch(t.Context(), r, patch); err != nil {
		t.Fatal(err)
	}
}

func TestDependencies(t *testing.T) {
	s := newShelf()
	const conf, needed = "registry.example.com/test/conf:v1.0.0", "registry.example.com/test/needed:v1.2.0"
	s.put(conf, meta("Configuration", "conf", "spec:\n  dependsOn:\n  - provider: registry.example.com/test/needed\n    version: \">=v1.1.0\"\n"))
	s.put(needed, provider("needed", crd("needed.test", "Thing", "one")))
	c := plane.Start(t, s)

	configuration := &v1.Configuration{ObjectMeta: metav1.ObjectMeta{Name: "conf"}, Spec: v1.ConfigurationSpec{PackageSpec: v1.PackageSpec{Package: conf}}}
	create(t, c, configuration)
	untilCondition(t, c, configuration, v1.TypeHealthy, corev1.ConditionFalse, "DependencyMissing: 1 dependency of 1 not installed: registry.example.com/test/needed >=v1.1.0.")
	dependency := newProvider("needed", needed)
	create(t, c, dependency)
	untilHealthy(t, c, configuration)

	wait.Until(t, limit, "the lock names both and the dependency", func() (string, bool) {
		lock := &v1beta1.Lock{}
		if err := c.Get(t.Context(), client.ObjectKey{Name: v1beta1.LockName}, lock); err != nil {
			return err.Error(), false
		}
		edges := map[string]string{}
		for _, p := range lock.Packages {
			for _, d := range p.Dependencies {
				edges[p.Source+" "+p.Version] = d.Package + " " + d.Constraints
			}
		}
		return fmt.Sprintf("%+v", lock.Packages), edges["registry.example.com/test/conf v1.0.0"] == "registry.example.com/test/needed >=v1.1.0"
	})
}

func TestFailuresAreReported(t *testing.T) {
	s := newShelf()
	const function = "registry.example.com/test/function:v1.0.0"
	s.put(function, meta("Function", "function", ""))
	c := plane.Start(t, s)

	wrong := newProvider("wrong-kind", function)
	create(t, c, wrong)
	untilCondition(t, c, wrong, v1.TypeHealthy, corev1.ConditionFalse, "WrongKind: registry.example.com/test/function:v1.0.0 is a Function and not a Provider.")
	untilCondition(t, c, wrong, v1.TypeInstalled, corev1.ConditionFalse, "WrongKind")

	absent := newProvider("absent", "registry.example.com/test/absent:v1.0.0")
	create(t, c, absent)
	untilCondition(t, c, absent, v1.TypeHealthy, corev1.ConditionFalse, "the registry has no such tag")
	s.put("registry.example.com/test/absent:v1.0.0", provider("absent"))
	untilHealthy(t, c, absent)
}

func TestPause(t *testing.T) {
	s := newShelf()
	const ref = "registry.example.com/test/paused:v1.0.0"
	s.put(ref, provider("paused", crd("paused.test", "Thing", "one")))
	c := plane.Start(t, s)

	p := newProvider("paused", ref)
	p.Annotations = map[string]string{v1.AnnotationPaused: "true"}
	create(t, c, p)
	untilCondition(t, c, p, v1.TypeSynced, corev1.ConditionFalse, "paused")
	p.Annotations = nil
	if err := c.Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	untilHealthy(t, c, p)
	if p.GetCondition(v1.TypeSynced).Status == corev1.ConditionFalse {
		t.Error("the package still says that it is paused")
	}
}
