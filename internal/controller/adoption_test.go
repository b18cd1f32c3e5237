package controller_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// A CRD that a user created is adopted only with the consent of the user. It gets no owner that would delete
// it, and is released when the package is uninstalled.
func TestCRDsOfUsersAreAdoptedOnlyWithConsentAndNeverDeleted(t *testing.T) {
	s := newEnv(t)
	r := newRegistry(t)
	kept, added := crd("adoption.test", "Kept", "user"), crd("adoption.test", "Added", "one")
	users := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal([]byte(kept[len("---\n"):]), users); err != nil {
		t.Fatal(err)
	}
	ref, _ := r.push(t, "acme/adoption:v1", provider("adoption", crd("adoption.test", "Kept", "one"), added))
	s.start(t)
	s.CreateTemporary(t, users)
	name := "CustomResourceDefinition/" + users.Name

	p := env.NewProvider("adoption", ref)
	s.CreateTemporary(t, p)
	s.WaitCondition(t, p, v1.TypeReady, corev1.ConditionFalse, "NeedsAdoption: ")
	if c := p.GetCondition(v1.TypeStalled); c.Status == corev1.ConditionTrue {
		t.Errorf("a package that waits for consent is stalled: %+v", c)
	}
	rev := s.Revisions(t, p)[0]
	if got := rev.RevisionStatus().ObjectsToAdopt; !slices.Equal(got, []string{name}) {
		t.Errorf("objects to adopt: %v, want %s", got, name)
	}
	if got := schemaDescription(t, s, users.Name); got != "user" {
		t.Errorf("the CRD of the user was overwritten: %s", got)
	}
	untilGone(t, s, "addeds.adoption.test")

	env.Update(t, s.Env, p, func(p *v1.Provider) { revision.AllowAdoption(p, []string{name}) })
	s.WaitHealthy(t, p)
	if got := owners(t, s.Client, users.Name); len(got) != 0 {
		t.Errorf("the adopted CRD has the owners %v", got)
	}
	if got := schemaDescription(t, s, users.Name); got != "one" {
		t.Errorf("the adopted CRD is of version %s", got)
	}
	// A change by another client is reverted as for any other object.
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"names":{"shortNames":["kpt"]}}}`))
	if err := s.Client.Patch(t.Context(), users, patch); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, limit, "the change of the adopted CRD is reverted", func() (string, bool) {
		d, rev := newCRD(), s.Revisions(t, p)[0]
		err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(users), d)
		return fmt.Sprintf("%v %v %+v", d.ObjectMeta, err, rev.RevisionStatus()),
			err == nil && len(d.Spec.Names.ShortNames) == 0
	})

	if err := s.Client.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, limit, "the package is deleted", func() (string, bool) {
		err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(p), &v1.Provider{})
		return "", apierrors.IsNotFound(err)
	})
	untilGone(t, s, "addeds.adoption.test")
	d := newCRD()
	if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(users), d); err != nil || d.DeletionTimestamp != nil {
		t.Fatalf("the adopted CRD was deleted (%v)", err)
	}
	for _, key := range []string{plan.AdoptedByAnnotation, plan.ContentDigestAnnotation} {
		if _, ok := d.Annotations[key]; ok {
			t.Errorf("the released CRD has the annotation %s", key)
		}
	}
}

// An object of a user with copies of the labels and annotations of a package is not an object of the package:
// neither an update nor the uninstall of the package changes or deletes it.
//
// hardening: I-13
func TestObjectsWithCopiedLabelsAreNotDeleted(t *testing.T) {
	s := sharedEnv(t)
	r := newRegistry(t)
	ref, _ := r.push(
		t, "acme/copied:v1", provider("copied", crd("copied.test", "Thing", "one"), crd("copied.test", "Dropped", "one")),
	)
	next, _ := r.push(t, "acme/copied:v2", provider("copied", crd("copied.test", "Thing", "two")))
	p := env.NewProvider("copied", ref)
	p.Spec.CommonLabels = map[string]string{"team": "a"}
	s.CreateTemporary(t, p)
	untilSettled(t, s, p)
	original, users := newCRD(), newCRD()
	if err := s.Client.Get(t.Context(), client.ObjectKey{Name: "things.copied.test"}, original); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(crd("users.copied.test", "Thing", "user")[len("---\n"):]), users); err != nil {
		t.Fatal(err)
	}
	users.Labels, users.Annotations = original.Labels, original.Annotations
	if users.Annotations[plan.ContentDigestAnnotation] == "" || users.Labels["team"] != "a" {
		t.Fatalf("nothing to copy: %v %v", users.Labels, users.Annotations)
	}
	s.CreateTemporary(t, users)
	uid, version := users.UID, users.ResourceVersion
	unchanged := func(when string) {
		t.Helper()
		d := newCRD()
		if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(users), d); err != nil || d.UID != uid ||
			d.DeletionTimestamp != nil {
			t.Errorf("%s: the CRD of the user was deleted (%v)", when, err)
		}
		for _, f := range d.ManagedFields {
			if f.Manager == plan.FieldManager {
				t.Errorf("%s: the CRD of the user was written: resource version %s, now %s", when, version, d.ResourceVersion)
			}
		}
	}
	upgradeTo(t, s, p, next)
	unchanged("after the update")
	remove(t, s, p)
	unchanged("after the uninstall")
}
