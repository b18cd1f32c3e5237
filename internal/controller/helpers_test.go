package controller_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// limit is the time limit of a condition on a busy machine.
const limit = env.Limit

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

// waitReconciled makes the manager reconcile a package once more, with a change of the history
// limit, which has no other effect, and waits until it has.
func waitReconciled(t *testing.T, e *env.Env, packages ...v1.Package) {
	t.Helper()
	for _, p := range packages {
		env.Update(t, e, p, func(p v1.Package) {
			n := int64(1)
			if l := p.PackageSpec().RevisionHistoryLimit; l != nil {
				n = *l
			}
			p.PackageSpec().RevisionHistoryLimit = new(n + 1)
		})
	}
	for _, p := range packages {
		wait.Until(t, limit, p.GetName()+" was reconciled", func() (string, bool) {
			if err := e.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
				return err.Error(), false
			}
			return fmt.Sprintf("%+v", p.PackageStatus()), p.PackageStatus().ObservedGeneration == p.GetGeneration()
		})
	}
}

// eventually waits until something holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	wait.Until(t, limit, what, func() (string, bool) { return "", holds() })
}

// untilEvent waits until an object has an event with a reason and a part of its note.
func untilEvent(t testing.TB, s *testEnv, of client.Object, reason, note string) {
	t.Helper()
	wait.Until(t, limit, fmt.Sprintf("an event %s of %s", reason, of.GetName()), func() (string, bool) {
		list := &eventsv1.EventList{}
		if err := s.Client.List(t.Context(), list); err != nil {
			return err.Error(), false
		}
		return fmt.Sprint(len(list.Items)), slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool {
			return e.Regarding.Name == of.GetName() && e.Reason == reason && strings.Contains(e.Note, note)
		})
	})
}

func newCRD() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{}
}

// schemaDescription returns the description of the schema of a CRD, which identifies
// its version in tests.
func schemaDescription(t *testing.T, s *testEnv, name string) string {
	t.Helper()
	d := newCRD()
	if err := s.Client.Get(t.Context(), client.ObjectKey{Name: name}, d); err != nil {
		t.Fatal(err)
	}
	return d.Spec.Versions[0].Schema.OpenAPIV3Schema.Description
}

func untilOwners(t *testing.T, s *testEnv, name string, want ...string) {
	t.Helper()
	wait.Until(t, limit, fmt.Sprintf("the owners of %s are %v", name, want), func() (string, bool) {
		got := owners(t, s.Client, name)
		return fmt.Sprint(got), slices.Equal(want, got)
	})
}

// remove deletes a package and waits until nothing of it is left.
func remove(t *testing.T, s *testEnv, p v1.Package) {
	t.Helper()
	var names []string
	for _, rev := range s.Revisions(t, p) {
		for _, o := range rev.RevisionStatus().ObjectRefs {
			names = append(names, o.Name)
		}
	}
	annotate(t, s, p, `{"metadata":{"annotations":{"`+v1.AnnotationOnDelete+`":"cascade=1000"}}}`)
	if err := s.Client.Delete(t.Context(), p); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	wait.Until(t, limit, p.GetName()+" and its revisions are deleted", func() (string, bool) {
		n := len(s.Revisions(t, p))
		return fmt.Sprint(n), n == 0
	})
	for _, name := range names {
		untilGone(t, s, name)
	}
}

func untilGone(t *testing.T, s *testEnv, name string) {
	t.Helper()
	wait.Until(t, limit, name+" is deleted", func() (string, bool) {
		err := s.Client.Get(t.Context(), client.ObjectKey{Name: name}, newCRD())
		return fmt.Sprint(err), apierrors.IsNotFound(err)
	})
}

// untilWritten waits until the manager has made these writes of objects whose name has
// a part, and checks that it has made no others.
func untilWritten(t *testing.T, s *testEnv, part string, want ...string) {
	t.Helper()
	slices.Sort(want)
	wait.Until(t, limit, fmt.Sprintf("the writes of %s are %v", part, want), func() (string, bool) {
		got := s.audit.Writes(part)
		return fmt.Sprint(got), len(got) >= len(want)
	})
	got := s.audit.Writes(part)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		t.Errorf("the writes of %s are %v, want %v", part, got, want)
	}
}
