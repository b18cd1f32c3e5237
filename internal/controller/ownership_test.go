package controller_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// configuration returns a Configuration with a composite resource and compositions of a group. The text is
// what differs between versions.
func configuration(name, group, text string, compositions ...string) string {
	out := meta("Configuration", name, "") + fmt.Sprintf(`---
apiVersion: apiextensions.crossplane.io/v1
kind: CompositeResourceDefinition
metadata:
  name: xthings.%[1]s
  labels: {from: package}
spec:
  group: %[1]s
  names: {kind: XThing, plural: xthings}
  versions:
  - name: v1
    served: true
    referenceable: true
    schema:
      openAPIV3Schema:
        type: object
        description: %[2]s
        properties:
          spec: {type: object}
`, group, text)
	for _, c := range compositions {
		out += fmt.Sprintf(`---
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata:
  name: %[2]s.%[1]s
spec:
  compositeTypeRef: {apiVersion: %[1]s/v1, kind: XThing}
  mode: Pipeline
  pipeline:
  - step: %[3]s
    functionRef: {name: function-any}
`, group, c, text)
	}
	return out
}

var installable = map[string]string{
	"CustomResourceDefinition":    "apiextensions.k8s.io/v1",
	"CompositeResourceDefinition": "apiextensions.crossplane.io/v1",
	"Composition":                 "apiextensions.crossplane.io/v1",
}

// object returns the metadata of an object of a package.
func object(kind, name string) *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{}
	o.APIVersion, o.Kind, o.Name = installable[kind], kind, name
	return o
}

// ownersOf lists owners as "Kind/name", with a star for the controller.
func ownersOf(o client.Object) []string {
	out := []string{}
	for _, r := range o.GetOwnerReferences() {
		s := r.Kind + "/" + r.Name
		if r.Controller != nil && *r.Controller {
			s += "*"
		}
		out = append(out, s)
	}
	slices.Sort(out)
	return out
}

func untilOwned(t *testing.T, s *testEnv, o *metav1.PartialObjectMetadata, want ...string) {
	t.Helper()
	slices.Sort(want)
	wait.Until(t, limit, fmt.Sprintf("the owners of %s are %v", o.Name, want), func() (string, bool) {
		if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return err.Error(), false
		}
		got := ownersOf(o)
		return fmt.Sprint(got), slices.Equal(want, got)
	})
}

// guard watches the objects of a group until the test ends, and fails it when one is
// deleted, is without its package among its owners, or has two controllers.
func guard(t *testing.T, s *testEnv, group, owner string) {
	t.Helper()
	for kind, api := range installable {
		list := &metav1.PartialObjectMetadataList{}
		list.APIVersion, list.Kind = api, kind+"List"
		w, err := s.Client.Watch(context.Background(), list)
		if err != nil {
			t.Fatal(err)
		}
		var done sync.WaitGroup
		done.Go(func() {
			for e := range w.ResultChan() {
				o, ok := e.Object.(client.Object)
				if !ok || !strings.HasSuffix(o.GetName(), "."+group) {
					continue
				}
				got := ownersOf(o)
				controllers := 0
				for _, g := range got {
					if strings.HasSuffix(g, "*") {
						controllers++
					}
				}
				if e.Type == apiwatch.Deleted || o.GetDeletionTimestamp() != nil ||
					!slices.Contains(got, owner) && !slices.Contains(got, owner+"*") || controllers > 1 {
					t.Errorf("%s was %s with the owners %v", o.GetName(), e.Type, got)
				}
			}
		})
		t.Cleanup(func() {
			w.Stop()
			done.Wait()
		})
	}
}

// The package controls its objects through an upgrade that keeps, drops and adds, so that only objects with other
// content are written. A dropped object is released, and another package may take it.
func TestOwnersThroughAnUpgrade(t *testing.T) {
	s := sharedEnv(t)
	r := newRegistry(t)
	const group = "owners.test"
	first, _ := r.push(t, "acme/owners:v1", configuration("owners", group, "one", "kept", "dropped"))
	second, _ := r.push(t, "acme/owners:v2", configuration("owners", group, "two", "kept", "added"))
	p := newConfiguration("own-upgrade", first)
	s.CreateTemporary(t, p)
	untilSettled(t, s, p)
	const pkg = "Configuration/own-upgrade"
	for _, o := range []*metav1.PartialObjectMetadata{
		object("CompositeResourceDefinition", "xthings."+group), object("Composition", "kept."+group),
		object("Composition", "dropped."+group),
	} {
		untilOwned(t, s, o, pkg+"*")
	}
	checkReferences(t, s, p, object("Composition", "kept."+group))

	guard(t, s, group, pkg)
	s.audit.Reset(group)
	env.Update(t, s.Env, p, func(p *v1.Configuration) { p.Spec.Package = second })
	untilSettled(t, s, p)
	for _, o := range []*metav1.PartialObjectMetadata{
		object("CompositeResourceDefinition", "xthings."+group), object("Composition", "kept."+group),
		object("Composition", "added."+group),
	} {
		untilOwned(t, s, o, pkg+"*")
	}
	untilOwned(t, s, object("Composition", "dropped."+group), pkg)
	want := []string{
		"PATCH compositions/dropped." + group, "POST compositions/added." + group,
		"PUT compositeresourcedefinitions/xthings." + group, "PUT compositions/kept." + group,
	}
	untilWritten(t, s, group, want...)
}

// checkReferences checks the owner references of an object and of the revision field by field: the package controls
// both, and its deletion in the foreground waits for them.
func checkReferences(t *testing.T, s *testEnv, p v1.Package, o *metav1.PartialObjectMetadata) {
	t.Helper()
	if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
	rev := s.Revisions(t, p)[0]
	want := []metav1.OwnerReference{
		{APIVersion: "pkg.crossplane.io/v1", Kind: p.PackageKind(), Name: p.GetName(), UID: p.GetUID(), Controller: new(
			true,
		), BlockOwnerDeletion: new(true)},
	}
	if diff := cmp.Diff(want, o.OwnerReferences); diff != "" {
		t.Errorf("owner references of %s (-want +got):\n%s", o.Name, diff)
	}
	if diff := cmp.Diff(want, rev.GetOwnerReferences()); diff != "" {
		t.Errorf("owner references of the revision (-want +got):\n%s", diff)
	}
}

// untilSettled waits until a package of any kind is ready with what its spec asks
// for, and so are its revisions.
func untilSettled(t *testing.T, s *testEnv, p v1.Package) {
	t.Helper()
	s.WaitPackage(t, p, "is ready with "+p.PackageSpec().Package, func() bool {
		ready := p.GetCondition(v1.TypeReady)
		return ready.Status == corev1.ConditionTrue && ready.ObservedGeneration == p.GetGeneration() &&
			p.PackageStatus().CurrentIdentifier == p.PackageSpec().Package
	})
	wait.Until(t, limit, p.GetName()+": its revisions are done", func() (string, bool) {
		seen := ""
		for _, rev := range s.Revisions(t, p) {
			ready := rev.GetCondition(v1.TypeReady)
			seen += fmt.Sprintf("%s %+v; ", rev.GetName(), rev.RevisionStatus().Conditions)
			if ready.Status != corev1.ConditionTrue || ready.ObservedGeneration != rev.GetGeneration() ||
				rev.GetDeletionTimestamp() != nil {
				return seen, false
			}
		}
		return seen, true
	})
}

// An object that a new version no longer contains stays until its package is
// deleted, even after the revision that created it was deleted.
func TestDroppedObjectsStayUntilUninstall(t *testing.T) {
	s := sharedEnv(t)
	r := newRegistry(t)
	const group = "dropped.test"
	first, _ := r.push(t, "acme/dropped:v1", configuration("dropped", group, "one", "kept", "dropped"))
	second, _ := r.push(t, "acme/dropped:v2", configuration("dropped", group, "two", "kept"))
	third, _ := r.push(t, "acme/dropped:v3", configuration("dropped", group, "three", "kept"))
	p := newConfiguration("own-dropped", first)
	s.CreateTemporary(t, p)
	untilSettled(t, s, p)
	for _, ref := range []string{second, third} {
		env.Update(t, s.Env, p, func(p *v1.Configuration) { p.Spec.Package = ref })
		untilSettled(t, s, p)
	}
	dropped := object("Composition", "dropped."+group)
	untilOwned(t, s, dropped, "Configuration/own-dropped")
	if err := s.Client.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, limit, "the dropped object is deleted with its package", func() (string, bool) {
		err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(dropped), dropped)
		return fmt.Sprint(err), apierrors.IsNotFound(err)
	})
}

// A dropped object is released even if its revision is collected before the next one was healthy, and another package
// takes control of it.
func TestDroppedObjectsAreReleasedBeforeTheirRevisionIsCollected(t *testing.T) {
	s := sharedEnv(t)
	r := newRegistry(t)
	const group = "handed.test"
	var refs []string
	for i, kept := range []string{"one", "two", "three", "four"} {
		compositions := []string{"kept"}
		if i == 0 {
			compositions = append(compositions, "dropped")
		}
		ref, _ := r.push(t, fmt.Sprintf("acme/handed:v%d", i+1), configuration("handed", group, kept, compositions...))
		refs = append(refs, ref)
	}
	p := newConfiguration("own-handed", refs[0])
	s.CreateTemporary(t, p)
	untilSettled(t, s, p)
	for _, ref := range refs[1:] {
		env.Update(t, s.Env, p, func(p *v1.Configuration) { p.Spec.Package = ref })
	}
	untilSettled(t, s, p)
	dropped := object("Composition", "dropped."+group)
	untilOwned(t, s, dropped, "Configuration/own-handed")

	next, _ := r.push(t, "acme/heir:v1", configuration("heir", "heir.test", "one")+
		strings.TrimPrefix(configuration("heir", group, "one", "dropped"), configuration("heir", group, "one")))
	heir := newConfiguration("own-heir", next)
	s.CreateTemporary(t, heir)
	untilSettled(t, s, heir)
	untilOwned(t, s, dropped, "Configuration/own-handed", "Configuration/own-heir*")
}

// Common labels and annotations are set on every object of a package, take
// precedence over the labels and annotations in the package, and are removed when
// the package no longer requests them.
func TestCommonLabelsAndAnnotations(t *testing.T) {
	s := sharedEnv(t)
	r := newRegistry(t)
	const group = "labels.test"
	ref, _ := r.push(t, "acme/labels:v1", configuration("labels", group, "one", "a", "b"))
	p := newConfiguration("own-labels", ref)
	p.Spec.CommonLabels = map[string]string{"team": "a", "from": "me"}
	p.Spec.CommonAnnotations = map[string]string{"cost": "1"}
	s.CreateTemporary(t, p)
	untilSettled(t, s, p)
	xrd := object("CompositeResourceDefinition", "xthings."+group)
	all := []*metav1.PartialObjectMetadata{xrd, object("Composition", "a."+group), object("Composition", "b."+group)}
	for _, o := range all {
		untilLabels(t, s, o, map[string]string{"team": "a", "from": "me"}, map[string]string{"cost": "1"})
	}

	// What others put there stays.
	for _, o := range all {
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"theirs":"x"}}}`))
		if err := s.Client.Patch(t.Context(), o, patch); err != nil {
			t.Fatal(err)
		}
	}
	env.Update(t, s.Env, p, func(p *v1.Configuration) {
		p.Spec.CommonLabels, p.Spec.CommonAnnotations = map[string]string{"team": "b"}, nil
	})
	untilSettled(t, s, p)
	for _, o := range all[1:] {
		untilLabels(t, s, o, map[string]string{"team": "b", "theirs": "x"}, map[string]string{})
	}
	untilLabels(t, s, xrd, map[string]string{"team": "b", "from": "package", "theirs": "x"}, map[string]string{})

	env.Update(t, s.Env, p, func(p *v1.Configuration) { p.Spec.CommonLabels = nil })
	untilSettled(t, s, p)
	for _, o := range all[1:] {
		untilLabels(t, s, o, map[string]string{"theirs": "x"}, map[string]string{})
	}
}

// untilLabels waits until an object has these labels, and these annotations beside
// the content digest.
func untilLabels(t *testing.T, s *testEnv, o *metav1.PartialObjectMetadata, labels, annotations map[string]string) {
	t.Helper()
	wait.Until(t, limit, fmt.Sprintf("the labels of %s are %v", o.Name, labels), func() (string, bool) {
		if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return err.Error(), false
		}
		got := map[string]string{}
		for k, v := range o.Annotations {
			if k != "xpkg.dev/content-digest" {
				got[k] = v
			}
		}
		return fmt.Sprint(o.Labels, got), cmp.Equal(labels, o.Labels) && cmp.Equal(annotations, got)
	})
}

// The labels and annotations in the metadata of a package are also set on its
// revision.
func TestMetadataReachesTheRevision(t *testing.T) {
	s := sharedEnv(t)
	r := newRegistry(t)
	stream := `apiVersion: meta.pkg.crossplane.io/v1
kind: Configuration
metadata:
  name: labeled
  labels: {pkg.crossplane.io/provider-family: family, pkg.crossplane.io/package: not-this-one}
  annotations: {meta.crossplane.io/license: Apache-2.0}
`
	ref, _ := r.push(t, "acme/labeled:v1", stream)
	p := newConfiguration("rev-labeled", ref)
	s.CreateTemporary(t, p)
	untilSettled(t, s, p)
	rev := s.Revisions(t, p)[0]
	want := map[string]string{v1.LabelPackage: "rev-labeled", "pkg.crossplane.io/provider-family": "family"}
	if diff := cmp.Diff(want, rev.GetLabels()); diff != "" {
		t.Errorf("labels of the revision (-want +got):\n%s", diff)
	}
	if got := rev.GetAnnotations()["meta.crossplane.io/license"]; got != "Apache-2.0" {
		t.Errorf("annotations of the revision: %v", rev.GetAnnotations())
	}
}
