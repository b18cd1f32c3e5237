package apply_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// storeInFormerVersion creates a CRD and some of its custom resources, and moves the storage version after that from
// v1beta1 to v1.
func storeInFormerVersion(t *testing.T, c *apply.Cluster, group string, resources int) plan.Ref {
	t.Helper()
	ref, crd := definition("boats."+group), boats(group)
	if err := run(t, c, marshal(t, crd), plan.Change{Action: plan.Create, Ref: ref}); err != nil {
		t.Fatal(err)
	}
	settled(t, c, ref)
	createBoat(t, group)
	var creating errgroup.Group
	creating.SetLimit(16)
	k := other(t)
	for i := 1; i < resources; i++ {
		creating.Go(func() error {
			boat := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": group + "/v1", "kind": "Boat", "metadata": map[string]any{"name": fmt.Sprint("boat-", i)},
			}}
			return k.Create(t.Context(), boat)
		})
	}
	if err := creating.Wait(); err != nil {
		t.Fatal(err)
	}
	crd.Spec.Versions[0].Storage, crd.Spec.Versions[1].Storage = false, true
	live := one(t, c, ref)
	if err := run(t, c, marshal(t, crd), plan.Change{
		Action: plan.Update, Ref: ref, UID: live.UID, ResourceVersion: live.ResourceVersion,
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"v1beta1", "v1"}, storedVersions(t, ref)); diff != "" {
		t.Fatalf("stored versions (-want +got):\n%s", diff)
	}
	return ref
}

// resourceVersions returns the resourceVersions of all boats of a group. An object whose resourceVersion changed was
// written to the database.
func resourceVersions(t *testing.T, group string) map[string]string {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: "BoatList"})
	if err := other(t).List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, o := range list.Items {
		out[o.GetName()] = o.GetResourceVersion()
	}
	return out
}

// A migration rewrites every custom resource, over several pages of a list, and then removes the former version. It can
// be interrupted and repeated: what is rewritten is not written again.
func TestMigrationRewritesAllCustomResources(t *testing.T) {
	const group, resources = "all.migrate.test", 510
	c := newCluster(t, nil)
	ref := storeInFormerVersion(t, c, group, resources)
	before := resourceVersions(t, group)

	m, err := c.MigrateStorage(t.Context(), ref.Name, false)
	want := apply.Migration{Storage: "v1", Former: []string{"v1beta1"}, Resources: resources, Rewritten: resources}
	if diff := cmp.Diff(want, m); err != nil || diff != "" {
		t.Fatalf("%v (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff([]string{"v1"}, storedVersions(t, ref)); diff != "" {
		t.Errorf("stored versions (-want +got):\n%s", diff)
	}
	after := resourceVersions(t, group)
	for name, version := range after {
		if version == before[name] {
			t.Errorf("%s was not rewritten", name)
		}
	}

	// As if the first run had been interrupted before its last write.
	d := &unstructured.Unstructured{}
	d.SetGroupVersionKind(ref.GroupVersionKind())
	d.SetName(ref.Name)
	if err := other(t).Status().Patch(
		t.Context(), d, client.RawPatch(types.MergePatchType, []byte(`{"status":{"storedVersions":["v1beta1","v1"]}}`)),
	); err != nil {
		t.Fatal(err)
	}
	if m, err := c.MigrateStorage(t.Context(), ref.Name, false); err != nil {
		t.Fatalf("%+v, %v", m, err)
	}
	if diff := cmp.Diff(after, resourceVersions(t, group)); diff != "" {
		t.Errorf("the second run wrote objects again (-want +got):\n%s", diff)
	}
	if m, err := c.MigrateStorage(t.Context(), ref.Name, false); err != nil ||
		m.Resources != 0 {
		t.Errorf("a CRD without former versions: %+v, %v", m, err)
	}
}

// Custom resources that other clients change or delete while they are migrated need no rewrite.
func TestMigrationSkipsResourcesThatChange(t *testing.T) {
	const group = "meanwhile.migrate.test"
	ref := storeInFormerVersion(t, newCluster(t, nil), group, 4)
	k := other(t)
	boat := func(name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": group + "/v1", "kind": "Boat", "metadata": map[string]any{"name": name},
		}}
	}
	var done atomic.Bool
	// The first rewrite starts after the objects were listed.
	c := newCluster(t, before(func(r *http.Request) {
		if r.Method != http.MethodPatch || done.Swap(true) {
			return
		}
		changed := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"changed":"true"}}}`))
		recreated := boat("boat-3")
		if err := errors.Join(
			k.Patch(t.Context(), boat("boat-1"), changed), k.Delete(t.Context(), boat("boat-2")),
			k.Delete(t.Context(), recreated), k.Create(t.Context(), boat("boat-3")),
		); err != nil {
			t.Error(err)
		}
	}))
	m, err := c.MigrateStorage(t.Context(), ref.Name, false)
	if err != nil || m.Resources != 4 || m.Rewritten < 1 {
		t.Errorf("%+v, %v", m, err)
	}
}

// A CRD whose storage version changes and returns during a migration can have objects that were stored in the former
// version meanwhile. They are migrated when the migration is repeated.
func TestMigrationNoticesAStorageVersionThatReturns(t *testing.T) {
	const group = "returns.migrate.test"
	ref := storeInFormerVersion(t, newCluster(t, nil), group, 2)
	k := other(t)
	store := func(version string) {
		live := &unstructured.Unstructured{}
		live.SetAPIVersion(ref.APIVersion)
		live.SetKind(ref.Kind)
		if err := k.Get(t.Context(), client.ObjectKey{Name: ref.Name}, live); err != nil {
			t.Error(err)
		}
		for _, v := range live.Object["spec"].(map[string]any)["versions"].([]any) {
			v.(map[string]any)["storage"] = v.(map[string]any)["name"] == version
		}
		if err := k.Update(t.Context(), live); err != nil {
			t.Error(err)
		}
	}
	var done atomic.Bool
	c := newCluster(t, before(func(r *http.Request) {
		if r.Method == http.MethodPatch && !done.Swap(true) {
			store("v1beta1")
			store("v1")
		}
	}))
	m, err := c.MigrateStorage(t.Context(), ref.Name, false)
	if !errors.Is(err, apply.ErrMoved) || !slices.Contains(storedVersions(t, ref), "v1beta1") {
		t.Errorf("%+v, %v, %v", m, err, storedVersions(t, ref))
	}
	if m, err := c.MigrateStorage(t.Context(), ref.Name, false); err != nil {
		t.Errorf("the next one: %+v, %v", m, err)
	}
}

// A migration does not begin while the API server makes its own, which a change of the CRD would make begin again.
func TestMigrationWaitsForThatOfTheServer(t *testing.T) {
	const group = "busy.migrate.test"
	c := newCluster(t, nil)
	ref := storeInFormerVersion(t, c, group, 2)
	live := &unstructured.Unstructured{}
	live.SetAPIVersion(ref.APIVersion)
	live.SetKind(ref.Kind)
	live.SetName(ref.Name)
	patchStatus := func(patch string) {
		t.Helper()
		if err := other(t).Status().
			Patch(t.Context(), live, client.RawPatch(types.JSONPatchType, []byte(patch))); err != nil {
			t.Fatal(err)
		}
	}
	patchStatus(
		`[{"op":"add","path":"/status/conditions/-","value":{"type":"StorageMigrating","status":"True","reason":"Running"}}]`,
	)
	if m, err := c.MigrateStorage(t.Context(), ref.Name, false); !errors.Is(err, apply.ErrMoved) ||
		m.Resources > 0 {
		t.Errorf("%+v, %v", m, err)
	}
	patchStatus(`[{"op":"remove","path":"/status/conditions/2"}]`)
	if m, err := c.MigrateStorage(t.Context(), ref.Name, false); err != nil {
		t.Errorf("%+v, %v", m, err)
	}
}

// Clients that apply custom resources can do so after the former version is gone, and keep the fields that they own.
func TestMigratedResourcesCanBeAppliedWithoutTheFormerVersion(t *testing.T) {
	const group = "applied.migrate.test"
	c := newCluster(t, nil)
	ref := storeInFormerVersion(t, c, group, 2)
	k := other(t)
	applied := func(version string, labels map[string]any) error {
		boat := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": group + "/" + version, "kind": "Boat", "metadata": map[string]any{"name": "boat-1", "labels": labels},
		}}
		return k.Apply(
			t.Context(), client.ApplyConfigurationFromUnstructured(boat), client.FieldOwner("gitops"), client.ForceOwnership,
		)
	}
	if err := applied("v1beta1", map[string]any{"kept": "yes", "dropped": "yes"}); err != nil {
		t.Fatal(err)
	}
	if m, err := c.MigrateStorage(t.Context(), ref.Name, false); err != nil {
		t.Fatalf("%+v, %v", m, err)
	}
	crd := boats(group)
	crd.Spec.Versions = slices.DeleteFunc(
		crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == "v1beta1" },
	)
	crd.Spec.Versions[0].Storage = true
	live := one(t, c, ref)
	if err := run(t, c, marshal(t, crd), plan.Change{
		Action: plan.Update, Ref: ref, UID: live.UID, ResourceVersion: live.ResourceVersion,
	}); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, limit, "the boat can be applied", func() (string, bool) {
		err := applied("v1", map[string]any{"kept": "yes"})
		return fmt.Sprint(err), err == nil
	})
	boat := &unstructured.Unstructured{Object: map[string]any{"apiVersion": group + "/v1", "kind": "Boat"}}
	if err := k.Get(t.Context(), client.ObjectKey{Name: "boat-1"}, boat); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"kept": "yes"}, boat.GetLabels()); diff != "" {
		t.Errorf("the labels of the boat (-want +got):\n%s", diff)
	}
}

// before calls a function before each request.
func before(do func(*http.Request)) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripFunc(func(r *http.Request) (*http.Response, error) {
			do(r)
			return next.RoundTrip(r)
		})
	}
}

type roundTripFunc func(*http.Request) (*http.Response, error)

func (f roundTripFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A custom resource that cannot be rewritten keeps the former version, and the other ones are rewritten.
func TestMigrationKeepsTheFormerVersionAfterAFailure(t *testing.T) {
	const group = "fails.migrate.test"
	ref := storeInFormerVersion(t, newCluster(t, nil), group, 5)
	c := newCluster(t, func(next http.RoundTripper) http.RoundTripper {
		return roundTripFunc(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/boat-2") {
				// The API server supports no such patch.
				r = r.Clone(r.Context())
				r.Header.Set("Content-Type", "application/unknown")
			}
			return next.RoundTrip(r)
		})
	})
	m, err := c.MigrateStorage(t.Context(), ref.Name, false)
	if err == nil || !strings.Contains(err.Error(), "rewrite 1 of 5 custom resources of boats."+group) ||
		!strings.Contains(err.Error(), "boat-2") || m.Rewritten != 4 {
		t.Errorf("%+v, %v", m, err)
	}
	if stored := storedVersions(t, ref); !slices.Contains(stored, "v1beta1") {
		t.Errorf("the former version was removed: %v", stored)
	}
}

// A migration ends when the API server does not respond: it does not try every custom resource.
func TestMigrationStopsWithoutResponses(t *testing.T) {
	const group, resources = "silent.migrate.test", 200
	ref := storeInFormerVersion(t, newCluster(t, nil), group, resources)
	var tries atomic.Int64
	c := newCluster(t, func(next http.RoundTripper) http.RoundTripper {
		return roundTripFunc(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPatch {
				tries.Add(1)
				return nil, syscall.ECONNREFUSED
			}
			return next.RoundTrip(r)
		})
	})
	m, err := c.MigrateStorage(t.Context(), ref.Name, false)
	if !apply.IsUnreachable(err) || !strings.Contains(err.Error(), "rewrite 200 of 200 custom resources") ||
		m.Rewritten != 0 {
		t.Errorf("%+v, %v", m, err)
	}
	if n := tries.Load(); n >= resources/2 {
		t.Errorf("%d requests were tried", n)
	}
}

// A custom resource with fields that the storage version does not describe is not rewritten without consent, and all
// others are. If a former version is not served, its fields cannot be read, so that no custom resource is rewritten.
func TestMigrationDropsFieldsOnlyWithConsent(t *testing.T) {
	for group, served := range map[string]bool{"served.drop.migrate.test": true, "unserved.drop.migrate.test": false} {
		t.Run(group, func(t *testing.T) {
			c, ref, crd := newCluster(t, nil), definition("boats."+group), boats(group)
			text := apiextensionsv1.JSONSchemaProps{Type: "string"}
			for i, fields := range []map[string]apiextensionsv1.JSONSchemaProps{{"sail": text, "oar": text}, {"sail": text}} {
				crd.Spec.Versions[i].Schema.OpenAPIV3Schema.Properties = map[string]apiextensionsv1.JSONSchemaProps{"spec": {
					Type: "object", Properties: fields,
				}}
			}
			if err := run(t, c, marshal(t, crd), plan.Change{Action: plan.Create, Ref: ref}); err != nil {
				t.Fatal(err)
			}
			settled(t, c, ref)
			k := other(t)
			boat := func(version, name string, spec map[string]any) *unstructured.Unstructured {
				return &unstructured.Unstructured{Object: map[string]any{
					"apiVersion": group + "/" + version, "kind": "Boat", "metadata": map[string]any{"name": name}, "spec": spec,
				}}
			}
			for name, spec := range map[string]map[string]any{"both": {"sail": "red", "oar": "long"}, "sail": {"sail": "red"}} {
				if err := k.Create(t.Context(), boat("v1beta1", name, spec)); err != nil {
					t.Fatal(err)
				}
			}
			crd.Spec.Versions[0].Storage, crd.Spec.Versions[1].Storage = false, true
			crd.Spec.Versions[0].Served = served
			live := one(t, c, ref)
			if err := run(t, c, marshal(t, crd), plan.Change{
				Action: plan.Update, Ref: ref, UID: live.UID, ResourceVersion: live.ResourceVersion,
			}); err != nil {
				t.Fatal(err)
			}
			want, rewritten := "1 of 2 custom resources of boats."+group+": both has .spec.oar", 1
			if !served {
				want, rewritten = "2 of 2 custom resources of boats."+group, 0
			}
			m, err := c.MigrateStorage(t.Context(), ref.Name, false)
			if !errors.Is(err, apply.ErrMoved) || !strings.Contains(err.Error(), want) || m.Rewritten != rewritten {
				t.Errorf("%+v, %v", m, err)
			}
			if versions := storedVersions(t, ref); len(versions) != 2 {
				t.Errorf("the stored versions are %v", versions)
			}
			if served {
				kept := boat("v1beta1", "both", nil)
				if err := k.Get(t.Context(), client.ObjectKeyFromObject(kept), kept); err != nil ||
					fmt.Sprint(kept.Object["spec"]) != "map[oar:long sail:red]" {
					t.Errorf("the custom resource is %v, %v", kept.Object, err)
				}
			}
			if m, err := c.MigrateStorage(t.Context(), ref.Name, true); err != nil {
				t.Errorf("with consent: %+v, %v", m, err)
			}
		})
	}
}
