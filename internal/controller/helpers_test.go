package controller_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// limit is how long a condition may take on a machine that is busy.
const limit = 45 * time.Second

func untilHealthy(t testing.TB, c client.Client, p v1.Package) {
	t.Helper()
	untilCondition(t, c, p, v1.TypeHealthy, corev1.ConditionTrue, "")
}

func untilCondition(t testing.TB, c client.Client, p v1.Package, ct v1.ConditionType, status corev1.ConditionStatus, message string) {
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

func create(t testing.TB, c client.Client, o client.Object) {
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

func activate(t *testing.T, c client.Client, name string) {
	t.Helper()
	r := &v1.ProviderRevision{ObjectMeta: metav1.ObjectMeta{Name: name}}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"desiredState":"Active"}}`))
	if err := c.Patch(t.Context(), r, patch); err != nil {
		t.Fatal(err)
	}
}

// change changes a package, and repeats that on conflicts with other clients.
func change[P client.Object](t *testing.T, c client.Client, p P, how func(P)) {
	t.Helper()
	wait.Until(t, limit, p.GetName()+" is changed", func() (string, bool) {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err.Error(), false
		}
		how(p)
		err := c.Update(t.Context(), p)
		return fmt.Sprint(err), err == nil
	})
}

// waitReconciled makes the manager look at a package once more, and waits until it has: a
// change of the history limit is a reason to look, and changes nothing else.
func waitReconciled(t *testing.T, c client.Client, packages ...v1.Package) {
	t.Helper()
	for _, p := range packages {
		change(t, c, p, func(p v1.Package) {
			n := int64(1)
			if l := p.PackageSpec().RevisionHistoryLimit; l != nil {
				n = *l
			}
			p.PackageSpec().RevisionHistoryLimit = new(n + 1)
		})
	}
	for _, p := range packages {
		wait.Until(t, limit, p.GetName()+" was reconciled", func() (string, bool) {
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
				return err.Error(), false
			}
			return fmt.Sprintf("%+v", p.PackageStatus()), p.PackageStatus().ObservedGeneration == p.GetGeneration()
		})
	}
}

// until waits until something holds of a package as it is in the cluster.
func until[P v1.Package](t testing.TB, c client.Client, p P, what string, holds func(P) bool) {
	t.Helper()
	wait.Until(t, limit, p.GetName()+": "+what, func() (string, bool) {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err.Error(), false
		}
		return fmt.Sprintf("%+v", p.PackageStatus()), holds(p)
	})
}

// revisionsOf returns the revisions of a package, by ascending number.
func revisionsOf(t testing.TB, c client.Client, p v1.Package) []v1.PackageRevision {
	t.Helper()
	list := p.NewRevisionList()
	if err := c.List(t.Context(), list, client.MatchingLabels{v1.LabelPackage: p.GetName()}); err != nil {
		t.Fatal(err)
	}
	all := list.Revisions()
	slices.SortFunc(all, func(a, b v1.PackageRevision) int {
		return cmp.Or(cmp.Compare(a.RevisionSpec().Revision, b.RevisionSpec().Revision), cmp.Compare(a.GetName(), b.GetName()))
	})
	return all
}

// eventually waits until something holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	wait.Until(t, limit, what, func() (string, bool) { return "", holds() })
}

func newCRD() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{}
}

// schemaDescription returns the description of the schema of a CRD, which identifies
// its version in tests.
func schemaDescription(t *testing.T, s *testEnv, name string) string {
	t.Helper()
	d := newCRD()
	if err := s.client.Get(t.Context(), client.ObjectKey{Name: name}, d); err != nil {
		t.Fatal(err)
	}
	return d.Spec.Versions[0].Schema.OpenAPIV3Schema.Description
}

func untilOwners(t *testing.T, s *testEnv, name string, want ...string) {
	t.Helper()
	wait.Until(t, limit, fmt.Sprintf("the owners of %s are %v", name, want), func() (string, bool) {
		got := owners(t, s.client, name)
		return fmt.Sprint(got), slices.Equal(want, got)
	})
}

// remove deletes a package and waits until nothing of it is left.
func remove(t *testing.T, s *testEnv, p v1.Package) {
	t.Helper()
	var names []string
	for _, rev := range revisionsOf(t, s.client, p) {
		for _, o := range rev.RevisionStatus().ObjectRefs {
			names = append(names, o.Name)
		}
	}
	if err := s.client.Delete(t.Context(), p); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	wait.Until(t, limit, p.GetName()+" and its revisions are deleted", func() (string, bool) {
		n := len(revisionsOf(t, s.client, p))
		return fmt.Sprint(n), n == 0
	})
	for _, name := range names {
		untilGone(t, s, name)
	}
}

func untilGone(t *testing.T, s *testEnv, name string) {
	t.Helper()
	wait.Until(t, limit, name+" is deleted", func() (string, bool) {
		err := s.client.Get(t.Context(), client.ObjectKey{Name: name}, newCRD())
		return fmt.Sprint(err), apierrors.IsNotFound(err)
	})
}

// untilWritten waits until the manager has made these writes of objects whose name has
// a part, and checks that it has made no others.
func untilWritten(t *testing.T, s *testEnv, part string, want ...string) {
	t.Helper()
	slices.Sort(want)
	wait.Until(t, limit, fmt.Sprintf("the writes of %s are %v", part, want), func() (string, bool) {
		got := s.audit.writes(part)
		return fmt.Sprint(got), len(got) >= len(want)
	})
	got := s.audit.writes(part)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		t.Errorf("the writes of %s are %v, want %v", part, got, want)
	}
}
