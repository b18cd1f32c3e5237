package core

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// The installation of core in the test of the takeover: a Provider with many CRDs, of which some have custom resources.
const (
	takenCRDs      = 101
	takenResources = 1000
)

// manyKinds returns the YAML of a Provider with CRDs.
func manyKinds(name, version string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: %s}\n", name)
	for i := range takenCRDs {
		fmt.Fprintf(&out, `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: thing%[1]ds.%[2]s.example.org}
spec:
  group: %[2]s.example.org
  names: {kind: Thing%[1]d, plural: thing%[1]ds, singular: thing%[1]d, listKind: Thing%[1]dList}
  scope: Cluster
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {description: %[3]s, type: object, x-kubernetes-preserve-unknown-fields: true}}}
`, i, name, version)
	}
	return out.String()
}

// newDefinition returns a managed resource definition.
func newDefinition(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.crossplane.io/v1alpha1", "kind": "ManagedResourceDefinition",
		"metadata": map[string]any{"name": name},
	}}
}

// installed is a Provider as core installs it.
type installed struct {
	provider   *v1.Provider
	revision   *v1.ProviderRevision
	deployment *appsv1.Deployment
}

// installAsCore creates all objects that core creates for a Provider: the revision, CRDs with a managed resource
// definition and the revision as owners, the objects of the runtime, and a finalizer on the revision.
func (s *suite) installAsCore(t *testing.T, name string) installed {
	t.Helper()
	return s.installContentAsCore(t, name, manyKinds(name, "first"))
}

// installContentAsCore is like installAsCore for a Provider with the given YAML.
func (s *suite) installContentAsCore(t *testing.T, name, content string) installed {
	t.Helper()
	ref := s.Registry + "/core/" + name + ":v1.0.0"
	digest, err := publish.Package(t.Context(), ref, []byte(content))
	if err != nil {
		t.Fatal(err)
	}
	p := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.ProviderSpec{PackageSpec: v1.PackageSpec{
		Package: ref,
	}}}
	s.Create(t, p)
	sum := sha256.Sum256(fmt.Appendf(nil, "%s|%d", digest.Hex(), p.Generation))
	controlled := true
	rev := &v1.ProviderRevision{ObjectMeta: metav1.ObjectMeta{
		Name: oci.FriendlyID(name, hex.EncodeToString(sum[:])), Labels: map[string]string{v1.LabelPackage: name},
		Finalizers: []string{v1.FinalizerRevision},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: v1.GroupVersion.String(), Kind: v1.ProviderKind, Name: name, UID: p.UID, Controller: &controlled,
			BlockOwnerDeletion: &controlled,
		}},
	}}
	rev.Spec.Image, rev.Spec.DesiredState, rev.Spec.Revision = ref, v1.RevisionActive, 2
	former := rev.DeepCopy()
	former.Name, former.Spec.Image, former.Spec.DesiredState, former.Spec.Revision = name+"-000000000000", s.Registry+
		"/core/"+name+":v0.9.0", v1.RevisionInactive, 1
	s.Create(t, rev, former)
	s.reportObjects(t, former, content)

	owner := plan.Owner{APIVersion: v1.GroupVersion.String(), Kind: v1.ProviderRevisionKind, Name: rev.Name, UID: rev.UID}
	for i, doc := range strings.Split(content, "---\n")[1:] {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal([]byte(doc), crd); err != nil {
			t.Fatal(err)
		}
		crd.OwnerReferences = []metav1.OwnerReference{owner.Reference(true)}
		if i%2 == 0 {
			mrd := newDefinition(crd.Name)
			mrd.SetOwnerReferences([]metav1.OwnerReference{owner.Reference(true)})
			s.Create(t, mrd)
			source := plan.Owner{APIVersion: mrd.GetAPIVersion(), Kind: mrd.GetKind(), Name: crd.Name, UID: mrd.GetUID()}
			crd.OwnerReferences = append(crd.OwnerReferences, source.Reference(false))
		}
		if err := s.Client.Create(t.Context(), crd, client.FieldOwner("apiextensions.crossplane.io/managed")); err != nil {
			t.Fatal(err)
		}
	}
	objects, err := manifests.Build(manifests.Input{
		Owner: plan.Requester{Revision: owner, Package: plan.Owner{
			APIVersion: v1.GroupVersion.String(), Kind: v1.ProviderKind, Name: name, UID: p.UID,
		}},
		Namespace: namespace, Image: ref + "@" + digest.String(),
		TLSServerSecret: v1.TLSServerSecretName(name), TLSClientSecret: v1.TLSClientSecretName(name),
	})
	if err != nil {
		t.Fatal(err)
	}
	// Core makes the revision the only owner.
	asCore(&objects.Deployment.Spec.Template.Spec.Containers[0], ref)
	for _, o := range []client.Object{objects.ServiceAccount, objects.Service, objects.Deployment} {
		o.SetOwnerReferences([]metav1.OwnerReference{owner.Reference(true)})
		s.Create(t, o)
	}
	return installed{p, rev, objects.Deployment}
}

// asCore changes the container of a runtime to the one of core, which names the image by its tag, lists the variables
// of certificates first, and, up to version 2.0 at least, names the certificate of the client twice.
func asCore(c *corev1.Container, image string) {
	c.Image = image
	if slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "TLS_CLIENT_CERTS_DIR" }) {
		c.Env = append(c.Env, corev1.EnvVar{Name: "ESS_TLS_CERTS_DIR", Value: "$(TLS_CLIENT_CERTS_DIR)"})
	}
	slices.SortStableFunc(c.Env, func(a, b corev1.EnvVar) int {
		first := func(e corev1.EnvVar) int {
			if strings.HasPrefix(e.Name, "TLS_") {
				return 0
			}
			return 1
		}
		return first(a) - first(b)
	})
}

// reportObjects writes the CRDs of a content into the status of a revision.
func (s *suite) reportObjects(t *testing.T, rev *v1.ProviderRevision, content string) {
	t.Helper()
	for _, doc := range strings.Split(content, "---\n")[1:] {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal([]byte(doc), crd); err != nil {
			t.Fatal(err)
		}
		rev.Status.ObjectRefs = append(rev.Status.ObjectRefs, v1.TypedReference{
			APIVersion: crd.APIVersion, Kind: crd.Kind, Name: crd.Name,
		})
	}
	if err := s.Client.Status().Update(t.Context(), rev); err != nil {
		t.Fatal(err)
	}
}

// deploymentOf reads the Deployment of a Provider that core installed.
func (s *suite) deploymentOf(t *testing.T, in installed) *appsv1.Deployment {
	t.Helper()
	d := &appsv1.Deployment{}
	if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(in.deployment), d); err != nil {
		t.Fatal(err)
	}
	return d
}

// definitionsOf returns the CRDs of a Provider by name.
func (s *suite) definitionsOf(t *testing.T, name string) map[string]apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	list := &apiextensionsv1.CustomResourceDefinitionList{}
	if err := s.Client.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	out := map[string]apiextensionsv1.CustomResourceDefinition{}
	for _, d := range list.Items {
		if d.Spec.Group == name+".example.org" {
			out[d.Name] = d
		}
	}
	return out
}

// podsOf returns the UIDs of the pods of a Provider.
func (s *suite) podsOf(t *testing.T, name string) []types.UID {
	t.Helper()
	list := &corev1.PodList{}
	if err := s.Client.List(t.Context(), list, client.InNamespace(namespace), client.MatchingLabels{
		v1.LabelProvider: name,
	}); err != nil {
		t.Fatal(err)
	}
	var out []types.UID
	for _, p := range list.Items {
		out = append(out, p.UID)
	}
	slices.Sort(out)
	return out
}

// createThing creates a custom resource of a kind as soon as the kind is served.
func (s *suite) createThing(t *testing.T, name string, kind int, object string) {
	t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": name + ".example.org/v1", "kind": fmt.Sprintf("Thing%d", kind),
		"metadata": map[string]any{"name": object},
	}}
	wait.Until(t, env.Limit, object+" exists", func() (string, bool) {
		err := s.Client.Create(t.Context(), o.DeepCopy())
		return errorText(err), err == nil
	})
}

// countThings returns the number of custom resources of a Provider.
func (s *suite) countThings(t *testing.T, name string) int {
	t.Helper()
	n := 0
	for i := range takenCRDs {
		list := &unstructured.UnstructuredList{Object: map[string]any{
			"apiVersion": name + ".example.org/v1", "kind": fmt.Sprintf("Thing%dList", i),
		}}
		if err := s.Client.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		n += len(list.Items)
	}
	return n
}
