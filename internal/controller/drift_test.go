package controller_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// installForDrift returns a package with one definition, which carries a label of its
// own.
func installForDrift(t *testing.T, s *testEnv, name string) *v1.Provider {
	t.Helper()
	r := newRegistry(t)
	stream := provider(name, crd(name+".test", "Thing", "as published"))
	ref, _ := r.push(t, "acme/"+name+":v1", labeled(stream, "things."+name+".test", "from", "package"))
	p := env.NewProvider(name, ref)
	p.Spec.CommonLabels = map[string]string{"team": "a"}
	s.CreateTemporary(t, p)
	untilSettled(t, s, p)
	return p
}

// A change of an object by another client is reverted at once, with one write.
//
// hardening: I-6
func TestDriftIsRevertedWithOneWrite(t *testing.T) {
	s := sharedEnv(t)
	p := installForDrift(t, s, "drift")
	const name = "things.drift.test"
	was := newCRD()
	if err := s.Client.Get(t.Context(), client.ObjectKey{Name: name}, was); err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		patch string
		kind  types.PatchType
		write string
	}{
		"Spec": {
			`[{"op":"replace","path":"/spec/versions/0/schema/openAPIV3Schema/description","value":"mine"}]`,
			types.JSONPatchType, "PUT",
		},
		"Labels":        {`{"metadata":{"labels":{"from":null}}}`, types.MergePatchType, "PATCH"},
		"LabelsChanged": {`{"metadata":{"labels":{"from":"me"}}}`, types.MergePatchType, "PATCH"},
		"CommonLabels":  {`{"metadata":{"labels":{"team":"b"}}}`, types.MergePatchType, "PATCH"},
		"Owners":        {`{"metadata":{"ownerReferences":null}}`, types.MergePatchType, "PATCH"},
		"ContentOfOthers": {
			`{"metadata":{"annotations":{"xpkg.dev/content-digest":"sha256:other"}}}`, types.MergePatchType, "PUT",
		},
	} {
		t.Run(what, func(t *testing.T) {
			s.audit.Reset(name)
			if err := s.Client.Patch(
				t.Context(), object("CustomResourceDefinition", name), client.RawPatch(c.kind, []byte(c.patch)),
			); err != nil {
				t.Fatal(err)
			}
			untilSame(t, s, was)
			untilRestored(t, s, name, c.write)
		})
	}
	t.Run("Deleted", func(t *testing.T) {
		s.audit.Reset(name)
		if err := s.Client.Delete(t.Context(), was); err != nil {
			t.Fatal(err)
		}
		untilRestored(t, s, name, "POST")
		untilSame(t, s, was)
		untilEvent(
			t, s, s.Revisions(t, p)[0], "ObjectsRestored",
			"deleted by another client, and created again: CustomResourceDefinition "+name,
		)
	})
	untilSettled(t, s, p)
}

// While an object is being deleted its package is not ready and waits. It creates the
// object again as soon as that is deleted, and no other package can take it meanwhile.
//
// hardening: I-5
func TestObjectInDeletionIsCreatedAgain(t *testing.T) {
	s := sharedEnv(t)
	p := installForDrift(t, s, "leaving")
	const name = "things.leaving.test"
	was := newCRD()
	if err := s.Client.Get(t.Context(), client.ObjectKey{Name: name}, was); err != nil {
		t.Fatal(err)
	}
	ref, _ := newRegistry(t).push(t, "acme/rival:v1", provider("rival", crd("leaving.test", "Thing", "of the rival")))
	rival := env.NewProvider("leaving-rival", ref)
	s.CreateTemporary(t, rival)
	s.WaitCondition(t, rival, v1.TypeReady, corev1.ConditionFalse, "ForeignOwner")

	finalizers := func(patch string) {
		t.Helper()
		o := object("CustomResourceDefinition", name)
		if err := s.Client.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			t.Fatal(err)
		}
	}
	finalizers(`{"metadata":{"finalizers":["theirs.test/any"]}}`)
	if err := s.Client.Delete(t.Context(), was); err != nil {
		t.Fatal(err)
	}
	for _, ct := range []v1.ConditionType{v1.TypeReady, v1.TypeHealthy} {
		s.WaitCondition(
			t, p, ct, corev1.ConditionFalse,
			"ObjectDeleting: objects of the package cannot be established: CustomResourceDefinition "+name+" is being deleted",
		)
	}
	s.WaitCondition(t, p, v1.TypeReconciling, corev1.ConditionTrue, "ObjectDeleting")
	if stalled := p.GetCondition(v1.TypeStalled); stalled.Status == corev1.ConditionTrue {
		t.Errorf("it continues by itself, and is stalled: %+v", stalled)
	}
	finalizers(`{"metadata":{"finalizers":null}}`)
	untilSame(t, s, was)
	untilSettled(t, s, p)
	s.WaitCondition(t, rival, v1.TypeReady, corev1.ConditionFalse, "ForeignOwner")
}

// untilRestored waits until a definition was written by a verb, and recorded. A manager that reads
// its own record late writes the whole object, and possibly once more without effect.
func untilRestored(t *testing.T, s *testEnv, name, verb string) {
	t.Helper()
	const resource = " customresourcedefinitions/"
	wait.Until(t, limit, verb+resource+name, func() (string, bool) {
		got := s.audit.Writes(name)
		return fmt.Sprint(got), slices.ContainsFunc(got, func(w string) bool {
			return w == verb+resource+name || verb == "PATCH" && w == "PUT"+resource+name
		})
	})
	wait.Until(t, limit, name+" is recorded as it was written", func() (string, bool) {
		d, p, rev := newCRD(), &v1.Provider{}, &v1.ProviderRevision{}
		if err := s.Client.Get(t.Context(), client.ObjectKey{Name: name}, d); err != nil {
			return err.Error(), false
		}
		if err := s.Client.Get(t.Context(), client.ObjectKey{Name: metav1.GetControllerOf(d).Name}, p); err != nil {
			return err.Error(), false
		}
		if err := s.Client.Get(t.Context(), client.ObjectKey{Name: p.Status.CurrentRevision}, rev); err != nil {
			return err.Error(), false
		}
		o := rev.Status.ObjectRefs[0]
		return fmt.Sprintf("%+v", o), o.UID == d.UID && o.Generation == d.Generation
	})
}

// untilSame waits until a CRD has its former content, in the same object or in a
// new one.
func untilSame(t *testing.T, s *testEnv, want *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	wait.Until(t, limit, want.Name+" is as it was", func() (string, bool) {
		got := newCRD()
		if err := s.Client.Get(t.Context(), client.ObjectKey{Name: want.Name}, got); err != nil {
			return err.Error(), false
		}
		diff := cmp.Diff(want.Spec, got.Spec) + cmp.Diff(want.Labels, got.Labels) +
			cmp.Diff(want.Annotations, got.Annotations) + cmp.Diff(ownersOf(want), ownersOf(got))
		return diff, diff == ""
	})
}

// A change outside of the package's fields causes no call, or no write if only a
// read can show that.
//
// hardening: J12
func TestForeignFieldsAreNotDrift(t *testing.T) {
	s := sharedEnv(t)
	installForDrift(t, s, "nodrift")
	const name = "things.nodrift.test"
	s.audit.Reset(name)
	o := object("CustomResourceDefinition", name)
	merge := func(patch string) {
		t.Helper()
		if err := s.Client.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			t.Fatal(err)
		}
	}
	merge(`{"metadata":{"labels":{"theirs":"1"},"annotations":{"theirs":"1"}}}`)
	merge(`{"metadata":{"finalizers":["theirs.test/any"]}}`)
	merge(`{"metadata":{"finalizers":null}}`)
	status := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	condition := []byte(
		`[{"op":"add","path":"/status/conditions/-","value":{"type":"KubernetesAPIApprovalPolicyConformant","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z","reason":"Any","message":"any"}}]`,
	)
	if err := s.Client.Status().Patch(t.Context(), status, client.RawPatch(types.JSONPatchType, condition)); err != nil {
		t.Fatal(err)
	}
	installForDrift(t, s, "nodriftmarker")
	marker := object("CustomResourceDefinition", "things.nodriftmarker.test")
	// Once the manager has undone a change that was made later, it has seen all before.
	seen := func() {
		t.Helper()
		if err := s.Client.Patch(
			t.Context(), marker, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"ownerReferences":null}}`)),
		); err != nil {
			t.Fatal(err)
		}
		untilOwned(t, s, marker, "Provider/nodriftmarker*")
	}
	seen()
	if calls := s.audit.Calls(name); len(calls) > 0 {
		t.Errorf("changes that are no drift cost %v", calls)
	}
	merge(`{"metadata":{"labels":{"theirs":"2"},"annotations":{"theirs":"2"}}}`)
	merge(`{"metadata":{"labels":{"theirs":null},"annotations":{"theirs":null}}}`)
	seen()
	if writes := s.audit.Writes(name); len(writes) > 0 {
		t.Errorf("changes that are no drift cost %v", writes)
	}
}
