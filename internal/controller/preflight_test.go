package controller_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// A new version that changes the scope of one of three CRDs is refused, and none of the three is written.
//
// hardening: E9, I-3
func TestAnUpdateThatTheAPIServerRejectsWritesNothing(t *testing.T) {
	s := newEnv(t)
	s.options.ActivationDeadline = time.Hour
	r := newRegistry(t)
	const group = "scope.preflight.test"
	kinds := []string{"One", "Two", "Three"}
	stream := func(description, scope string) string {
		out := provider("scope")
		for _, kind := range kinds {
			out += crd(group, kind, description)
		}
		return strings.Replace(out, "scope: Cluster", "scope: "+scope, 1)
	}
	first, _ := r.push(t, "acme/scope:v1", stream("one", "Cluster"))
	second, _ := r.push(t, "acme/scope:v2", stream("two", "Namespaced"))
	s.start(t)
	p := env.NewProvider("scope", first)
	s.CreateTemporary(t, p)
	untilSettled(t, s, p)
	env.Update(t, s.Env, p, func(p *v1.Provider) { p.Spec.Package = second })
	untilUpdateRefused(t, s, p, "ImmutableField")
	if m := p.GetCondition(v1.TypeReady).
		Message; !strings.Contains(m, "ones."+group+": spec.scope is Cluster and cannot change to Namespaced") {
		t.Errorf("the message is %s", m)
	}
	for _, kind := range kinds {
		name := strings.ToLower(kind) + "s." + group
		if got := schemaDescription(t, s, name); got != "one" {
			t.Errorf("%s was written: it is of version %s", name, got)
		}
		untilOwners(t, s, name, "Provider/scope*")
	}
	remove(t, s, p)
}

// A new version that changes the type of a Composition, which never changes, is refused, and no object is written.
func TestAnUpdateThatChangesTheTypeOfACompositionWritesNothing(t *testing.T) {
	s := newEnv(t)
	s.options.ActivationDeadline = time.Hour
	r := newRegistry(t)
	const group = "fixed.preflight.test"
	first, _ := r.push(t, "acme/fixed:v1", configuration("fixed", group, "one", "main"))
	second, _ := r.push(t, "acme/fixed:v2", strings.Replace(
		configuration("fixed", group, "two", "main"), "compositeTypeRef: {apiVersion: "+group+"/v1, kind: XThing}",
		"compositeTypeRef: {apiVersion: "+group+"/v2, kind: XThing}", 1,
	))
	s.start(t)
	p := &v1.Configuration{ObjectMeta: metav1.ObjectMeta{Name: "fixed"}}
	p.Spec.Package = first
	s.CreateTemporary(t, p)
	untilSettled(t, s, p)
	xrd := object("CompositeResourceDefinition", "xthings."+group)
	if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(xrd), xrd); err != nil {
		t.Fatal(err)
	}
	generation := xrd.Generation
	env.Update(t, s.Env, p, func(p *v1.Configuration) { p.Spec.Package = second })
	untilUpdateRefused(t, s, p, "ImmutableField")
	want := "Composition main." + group + ": spec.compositeTypeRef is {\"apiVersion\":\"" + group +
		"/v1\",\"kind\":\"XThing\"} and cannot change to "
	if m := p.GetCondition(v1.TypeReady).Message; !strings.Contains(m, want) {
		t.Errorf("the message is %s", m)
	}
	if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(xrd), xrd); err != nil || xrd.Generation != generation {
		t.Errorf("the XRD was written: generation %d, not %d, %v", xrd.Generation, generation, err)
	}
	remove(t, s, p)
}

// An update that drops the version in which custom resources are stored rewrites them before.
//
// hardening: I-1
func TestAnUpdateMigratesStoredVersions(t *testing.T) {
	s := newEnv(t)
	s.options.ActivationDeadline = time.Hour
	r := newRegistry(t)
	const group = "stored.preflight.test"
	stream := func(version string) string {
		return strings.ReplaceAll(provider("stored")+crd(group, "Empty", version)+
			crd(group, "Used", version), "name: v1\n", "name: "+version+"\n")
	}
	one, _ := r.push(t, "acme/stored:v1", stream("v1"))
	two, _ := r.push(t, "acme/stored:v2", stream("v2"))
	s.start(t)
	p := env.NewProvider("stored", one)
	s.CreateTemporary(t, p)
	untilSettled(t, s, p)
	used := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/v1", "kind": "Used", "metadata": map[string]any{"name": "u"},
		"spec": map[string]any{"sail": "red"},
	}}
	s.Create(t, used)
	env.Update(t, s.Env, p, func(p *v1.Provider) { p.Spec.Package = two })
	wait.Until(t, env.Limit, "the second version is installed", func() (string, bool) {
		got := schemaDescription(t, s, "useds."+group)
		return got, got == "v2"
	})
	untilSettled(t, s, p)
	isReported := slices.ContainsFunc(s.audit.Calls(p.Name), func(c env.Call) bool {
		return strings.Contains(string(c.Body), "Migrating: 0 of 1 custom resources are stored in a version that stays.")
	})
	if !isReported {
		t.Error("the status does not tell about the migration")
	}
	for _, name := range []string{"emptys." + group, "useds." + group} {
		var d apiextensionsv1.CustomResourceDefinition
		if err := s.Client.Get(t.Context(), client.ObjectKey{Name: name}, &d); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(d.Status.StoredVersions, []string{"v2"}) || len(d.Spec.Versions) != 1 {
			t.Errorf("%s: stored versions %v, %d versions", name, d.Status.StoredVersions, len(d.Spec.Versions))
		}
	}
	used.SetAPIVersion(group + "/v2")
	if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(used), used); err != nil ||
		fmt.Sprint(used.Object["spec"]) != "map[sail:red]" {
		t.Errorf("the custom resource is %v, %v", used.Object, err)
	}
	remove(t, s, p)
}

// denied is the description of the CRDs that the policy of denyCRDs denies.
const denied = "denied"

// denyCRDs creates an admission policy of the cluster that denies some CRDs, and waits
// until it works. It returns a function that deletes the policy.
func denyCRDs(t *testing.T, s *testEnv) (admit func()) {
	t.Helper()
	return denyCRDsUnless(t, s, "false")
}

// denials counts the policies of denyUnless.
var denials atomic.Int64

// denyUnless creates a policy that denies writes of a resource that do not satisfy a rule, and returns a function that
// deletes it.
func denyUnless(t *testing.T, s *testEnv, group, resource, rule string) (admit func()) {
	t.Helper()
	// The API server applies a policy for a moment after its deletion, so no two tests use one name.
	name := fmt.Sprintf("deny-%d.preflight.test", denials.Add(1))
	policy := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
		"metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"matchConstraints": map[string]any{"resourceRules": []any{map[string]any{
				"apiGroups": []any{group}, "apiVersions": []any{"*"}, "operations": []any{"CREATE", "UPDATE"},
				"resources": []any{resource},
			}}},
			"validations": []any{map[string]any{"expression": rule, "message": "the policy of the cluster"}},
		},
	}}
	binding := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
		"metadata": map[string]any{"name": name},
		"spec":     map[string]any{"policyName": name, "validationActions": []any{"Deny"}},
	}}
	admit = func() {
		for _, o := range []*unstructured.Unstructured{binding, policy} {
			if err := s.Client.Delete(context.Background(), o); client.IgnoreNotFound(err) != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(admit)
	for _, o := range []*unstructured.Unstructured{policy, binding} {
		if err := s.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	return admit
}

// denyNewRoles makes the API server deny the roles of a new revision of a Provider.
func denyNewRoles(t *testing.T, s *testEnv, provider string) (admit func()) {
	t.Helper()
	prefix := "crossplane:provider:" + provider + "-"
	admit = denyUnless(
		t, s, rbacv1.GroupName, "clusterroles",
		"request.operation != 'CREATE' || !object.metadata.name.startsWith('"+prefix+"')",
	)
	eventually(t, "the policy denies", func() bool {
		return s.Client.Create(
			t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: prefix + "probe"}}, client.DryRunAll,
		) != nil
	})
	return admit
}

// denyCRDsUnless is like denyCRDs, for requests that do not satisfy a condition.
func denyCRDsUnless(t *testing.T, s *testEnv, condition string) (admit func()) {
	t.Helper()
	rule := condition +
		" || !object.spec.versions.exists(v, has(v.schema.openAPIV3Schema.description) && v.schema.openAPIV3Schema.description == '" +
		denied + "')"
	admit = denyUnless(t, s, "apiextensions.k8s.io", "customresourcedefinitions", rule)
	var probe apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal([]byte(crd("probe.preflight.test", "Probe", denied)), &probe); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the policy denies", func() bool {
		o := probe.DeepCopy()
		err := s.Client.Create(t.Context(), o)
		if err == nil {
			err = s.Client.Delete(t.Context(), o)
		}
		return strings.Contains(fmt.Sprint(err), "the policy of the cluster")
	})
	return admit
}

// An XRD that drops a stored version has its composite resources and claims migrated before Crossplane changes their
// CRDs, if their storage version stays. Otherwise it is refused.
func TestAnXRDThatDropsAStoredVersionMigrates(t *testing.T) {
	s := newEnv(t)
	s.options.ActivationDeadline = time.Hour
	r := newRegistry(t)
	const name, group = "stored-composites", "stored-composites.test"
	xrd := func(text string, versions ...string) string {
		whole := strings.Replace(configuration(name, group, text), "names: {kind: XThing, plural: xthings}",
			"names: {kind: XThing, plural: xthings}\n  claimNames: {kind: Thing, plural: things}", 1)
		head, one, _ := strings.Cut(whole, "  - name: v1\n")
		for i, v := range versions {
			item := "  - name: " + v + "\n" + one
			if i < len(versions)-1 {
				item = strings.Replace(item, "referenceable: true", "referenceable: false", 1)
			}
			head += item
		}
		return head
	}
	both, _ := r.push(t, "acme/"+name+":v1", xrd("one", "v1", "v2"))
	second, _ := r.push(t, "acme/"+name+":v2", xrd("two", "v2"))
	third, _ := r.push(t, "acme/"+name+":v3", xrd("three", "v3"))
	s.start(t)
	p := &v1.Configuration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.Package = both
	s.CreateTemporary(t, p)
	untilSettled(t, s, p)
	crds := []*unstructured.Unstructured{
		storedTwice(t, s, group, "XThing", "xthings"), storedTwice(t, s, group, "Thing", "things"),
	}

	env.Update(t, s.Env, p, func(p *v1.Configuration) { p.Spec.Package = third })
	untilUpdateRefused(t, s, p, "StoredVersionInUse")
	env.Update(t, s.Env, p, func(p *v1.Configuration) { p.Spec.Package = second })
	for _, crd := range crds {
		wait.Until(t, env.Limit, crd.GetName()+" is migrated", func() (string, bool) {
			err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(crd), crd)
			stored, _, _ := unstructured.NestedStringSlice(crd.Object, "status", "storedVersions")
			return fmt.Sprint(stored, err), slices.Equal(stored, []string{"v2"})
		})
	}
	untilSettled(t, s, p)
	for _, crd := range crds {
		s.Delete(t, crd)
	}
	remove(t, s, p)
}

// storedTwice creates a CRD as Crossplane does, with a custom resource that is stored as v1 while v2 is the storage
// version.
func storedTwice(t *testing.T, s *testEnv, group, kind, plural string) *unstructured.Unstructured {
	t.Helper()
	version := func(name string, storage bool) any {
		return map[string]any{
			"name": name, "served": true, "storage": storage,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{
				"type": "object", "x-kubernetes-preserve-unknown-fields": true,
			}},
		}
	}
	crd := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": plural + "." + group},
		"spec": map[string]any{
			"group": group, "scope": "Cluster", "names": map[string]any{"kind": kind, "plural": plural},
			"versions": []any{version("v1", true), version("v2", false)},
		},
	}}
	s.Create(t, crd)
	one := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/v1", "kind": kind, "metadata": map[string]any{"name": "one"},
	}}
	eventually(t, kind+" can be created", func() bool { return s.Client.Create(t.Context(), one) == nil })
	eventually(t, kind+" is stored in another version", func() bool {
		if s.Client.Get(t.Context(), client.ObjectKeyFromObject(crd), crd) != nil {
			return false
		}
		return unstructured.SetNestedSlice(crd.Object, []any{version("v1", false), version("v2", true)}, "spec", "versions") == nil &&
			s.Client.Update(t.Context(), crd) == nil
	})
	return crd
}
