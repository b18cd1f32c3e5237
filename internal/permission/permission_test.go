package permission

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

const family = "provider-family-x"

// member returns an active revision of a package of the family, with one CRD.
func member(pkg, image string) *v1.ProviderRevision {
	rev := &v1.ProviderRevision{}
	rev.SetName(pkg + "-1")
	rev.SetLabels(map[string]string{v1.LabelPackage: pkg, v1.LabelProviderFamily: family})
	rev.Spec.Image, rev.Spec.DesiredState = image, v1.RevisionActive
	rev.Status.ObjectRefs = []v1.TypedReference{
		{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: pkg + "s.example.org"},
		{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfiguration", Name: pkg},
	}
	return rev
}

// Only active revisions of other packages of the same publisher belong to a family.
func TestFamily(t *testing.T) {
	me := member("me", "registry.example.org/acme/me:v1")
	for name, tc := range map[string]struct {
		change func(*v1.ProviderRevision)
		family bool
	}{
		"member":             {func(*v1.ProviderRevision) {}, true},
		"another registry":   {func(r *v1.ProviderRevision) { r.Spec.Image = "other.example.org/acme/other:v1" }, false},
		"another publisher":  {func(r *v1.ProviderRevision) { r.Spec.Image = "registry.example.org/acme2/other:v1" }, false},
		"no reference":       {func(r *v1.ProviderRevision) { r.Spec.Image = "???" }, false},
		"another family":     {func(r *v1.ProviderRevision) { r.Labels[v1.LabelProviderFamily] = "y" }, false},
		"inactive":           {func(r *v1.ProviderRevision) { r.Spec.DesiredState = v1.RevisionInactive }, false},
		"of the own package": {func(r *v1.ProviderRevision) { r.Labels[v1.LabelPackage] = "me" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			other := member("other", "registry.example.org/acme/other:v1")
			tc.change(other)
			var want []schema.GroupResource
			if tc.family {
				want = []schema.GroupResource{{Group: "example.org", Resource: "others"}}
			}
			if diff := cmp.Diff(want, Family(me, family, []v1.PackageRevision{me, other})); diff != "" {
				t.Errorf("family (-want +got):\n%s", diff)
			}
		})
	}
	if got := Family(me, "", []v1.PackageRevision{member("other", "registry.example.org/acme/other:v1")}); got != nil {
		t.Errorf("without a family: %v", got)
	}
}

const stream = `apiVersion: meta.pkg.crossplane.io/v1
kind: Provider
metadata: {name: me, annotations: {meta.xpkg.dev/permissions: minimal}}
spec:
  capabilities: [SafeStart]
  controller: {permissionRequests: [{apiGroups: [""], resources: [pods], verbs: [get]}]}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: bits.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {kind: Bit, plural: bits}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
---
apiVersion: apiextensions.crossplane.io/v1alpha1
kind: ManagedResourceDefinition
metadata: {name: wholes.example.org}
spec: {group: example.org, scope: Cluster, names: {kind: Whole, plural: wholes}}
`

func TestInput(t *testing.T) {
	pkg, err := xpkg.Read([]byte(stream), xpkg.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	objects, err := desired.Of(pkg, desired.Options{})
	if err != nil {
		t.Fatal(err)
	}
	pods := schema.GroupResource{Resource: "pods"}
	in, err := Input(member("me", "registry.example.org/acme/me:v1"), pkg, objects, nil, Mode{
		Namespace: "here", Namespaced: true, ClusterScoped: map[schema.GroupResource]bool{pods: false},
	})
	if err != nil {
		t.Fatal(err)
	}
	bits, wholes := schema.GroupResource{Group: "example.org", Resource: "bits"},
		schema.GroupResource{Group: "example.org", Resource: "wholes"}
	want := rbac.Input{
		Kind: v1.ProviderKind, Package: "me", Revision: "me-1", Defined: []schema.GroupResource{bits, wholes},
		Requests:  []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}},
		SafeStart: true,
		Needs: rbac.Needs{
			Secrets: rbac.Nothing, ConfigMaps: rbac.Nothing, Events: rbac.Recording, Leases: rbac.OwnNamespace,
		},
		Namespace: "here", Namespaced: true,
		ClusterScoped: map[schema.GroupResource]bool{pods: false, bits: false, wholes: true},
	}
	if diff := cmp.Diff(want, in); diff != "" {
		t.Errorf("input (-want +got):\n%s", diff)
	}
	pkg.Meta.Annotations[rbac.AnnotationPermissions] = "little"
	if _, err := Input(member("me", "x"), pkg, objects, nil, Mode{}); !errors.Is(err, rbac.ErrInvalidPermissions) {
		t.Errorf("an annotation that means nothing: %v", err)
	}
}

// An approval is valid for exactly these permissions, however they are written.
func TestApprovalIsForExactlyThesePermissions(t *testing.T) {
	get := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}
	list := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}}
	nodes := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get"}}
	rev := member("me", "registry.example.org/acme/me:v1")
	check := func(requests ...rbacv1.PolicyRule) error {
		waiting, err := CheckApproval(rev, rbac.Input{Kind: rbac.Function, Requests: requests}, nil, nil, nil, true)
		if (err == nil) != (waiting == nil) {
			t.Errorf("%v waits with the error %v", waiting, err)
		}
		return err
	}
	if err := check(get, list); !errors.Is(err, rbac.ErrPermissionIncrease) {
		t.Fatalf("more permissions: %v", err)
	}
	rev.SetAnnotations(map[string]string{AnnotationApproved: rbac.Fingerprint([]rbacv1.PolicyRule{list, get})})
	if err := check(get, list); err != nil {
		t.Errorf("approved permissions: %v", err)
	}
	for _, other := range [][]rbacv1.PolicyRule{{get}, {get, list, nodes}} {
		if err := check(other...); err == nil || !strings.Contains(err.Error(), "pods") {
			t.Errorf("other permissions than the approved ones: %v", err)
		}
	}
	if err := check(); err != nil {
		t.Errorf("no more permissions: %v", err)
	}
}

// Permissions that amount to control of the cluster wait for approval under every policy
// for increases, and only until they are approved.
//
// hardening: H3
func TestEscalationNeedsApprovalUnderEveryPolicy(t *testing.T) {
	get := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}
	exec := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/exec"}, Verbs: []string{"create"}}
	in := rbac.Input{Kind: rbac.Function, Requests: []rbacv1.PolicyRule{get, exec}}
	rev := member("me", "registry.example.org/acme/me:v1")
	waiting, err := CheckApproval(rev, in, nil, nil, nil, false)
	if !errors.Is(err, rbac.ErrPermissionEscalation) || !rbac.ErrPermissionEscalation.Approval {
		t.Fatalf("got %v", err)
	}
	if diff := cmp.Diff([]rbacv1.PolicyRule{exec}, waiting); diff != "" {
		t.Errorf("permissions that wait (-want +got):\n%s", diff)
	}
	rev.SetAnnotations(map[string]string{AnnotationApproved: rbac.Fingerprint(waiting)})
	if waiting, err := CheckApproval(rev, in, nil, nil, nil, false); err != nil || waiting != nil {
		t.Errorf("approved: %v, %v", waiting, err)
	}
	rev.SetAnnotations(nil)
	ca := rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{v1.RootCASecretName},
		Verbs: []string{"get"},
	}
	if _, err := CheckApproval(
		rev, rbac.Input{Kind: rbac.Function, Requests: []rbacv1.PolicyRule{ca}}, nil, nil, nil, false,
	); !errors.Is(err, rbac.ErrPermissionEscalation) {
		t.Errorf("the Secret with the CA: %v", err)
	}
	if _, err := CheckApproval(
		rev, in, nil, nil, []rbac.Rule{{APIGroups: []string{""}, Resources: []string{"pods/exec"}}}, false,
	); err != nil {
		t.Errorf("allowed by name: %v", err)
	}
	if _, err := CheckApproval(rev, in, in.Requests, nil, nil, true); err != nil {
		t.Errorf("held before: %v", err)
	}
}
