package apply_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// harbor is a CRD with the versions v1beta1, which is stored, and v1, and boats of it.
type harbor struct {
	ref plan.Ref
	crd *apiextensionsv1.CustomResourceDefinition
}

func newHarbor(t testing.TB, group string, boatsInIt int, edit func(*apiextensionsv1.CustomResourceDefinition)) harbor {
	t.Helper()
	h := harbor{definition("boats." + group), boats(group)}
	if edit != nil {
		edit(h.crd)
	}
	c := newCluster(t, nil)
	if err := run(t, c, marshal(t, h.crd), plan.Change{Action: plan.Create, Ref: h.ref}); err != nil {
		t.Fatal(err)
	}
	settled(t, c, h.ref)
	if boatsInIt == 0 {
		return h
	}
	createBoat(t, group)
	var creating errgroup.Group
	creating.SetLimit(16)
	k := other(t)
	for i := 1; i < boatsInIt; i++ {
		creating.Go(func() error { return k.Create(t.Context(), h.boat("v1beta1", fmt.Sprint("boat-", i))) })
	}
	if err := creating.Wait(); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h harbor) boat(version, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": h.crd.Spec.Group + "/" + version, "kind": "Boat", "metadata": map[string]any{"name": name},
	}}
}

// dropped returns the CRD without the version v1beta1.
func (h harbor) dropped() *apiextensionsv1.CustomResourceDefinition {
	crd := h.crd.DeepCopy()
	crd.Spec.Versions = crd.Spec.Versions[1:]
	crd.Spec.Versions[0].Storage = true
	return crd
}

// update plans an update of the CRD, and carries it out if it is not refused.
func (h harbor) update(
	ctx context.Context, c *apply.Cluster, raw []byte, accepted ...string,
) (plan.Plan, error) {
	live, err := c.Metadata(ctx, []plan.Ref{h.ref})
	if err != nil {
		return plan.Plan{}, err
	}
	l := live[h.ref]
	p, err := c.Preflight(ctx, plan.Plan{Changes: []plan.Change{{
		Action: plan.Update, Ref: h.ref, UID: l.UID, ResourceVersion: l.ResourceVersion,
		Annotations: map[string]string{plan.ContentDigestAnnotation: "sha256:new"},
	}}}, always(raw), apply.Breaks{Accepted: accepted, Command: "xpkg update provider/boats"})
	if err != nil || len(p.Refusals) > 0 {
		return p, err
	}
	_, err = c.Run(ctx, p, always(raw))
	return p, err
}

// An update that drops the version in which custom resources are stored rewrites all of them, while 20 clients write
// and read them. None is unreadable at any moment, the former version is in no stored object and no managed field, and
// clients can apply objects afterwards.
func TestAnUpdateThatDropsAStoredVersionMigrates(t *testing.T) {
	t.Parallel()
	const group, resources, clients = "drops.storage.test", 520, 20
	h := newHarbor(t, group, resources, nil)
	k := other(t)
	names := func(i int) string { return fmt.Sprint("boat-", i%(resources-1)+1) }
	ctx, stop := context.WithCancel(t.Context())
	var busy sync.WaitGroup
	var writes atomic.Int64
	for i := range clients {
		busy.Go(func() {
			for n := i; ctx.Err() == nil; n += clients {
				boat := h.boat("v1", names(n))
				if err := k.Get(ctx, client.ObjectKeyFromObject(boat), boat); err != nil && ctx.Err() == nil {
					t.Errorf("%s cannot be read: %v", names(n), err)
					return
				}
				patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"n":"%d"}}}`, n))
				if err := k.Patch(ctx, boat, patch); err != nil && ctx.Err() == nil {
					t.Errorf("%s cannot be written: %v", names(n), err)
					return
				}
				writes.Add(1)
			}
		})
	}
	wait.Until(t, limit, "the clients write", func() (string, bool) { return "", writes.Load() > clients })
	reported := 0
	p, err := h.update(t.Context(), newCluster(t, nil).Reporting(func(crd string, n int) {
		if reported++; crd != h.ref.Name || n != reported {
			t.Errorf("%d of %s are rewritten, in the report %d", n, crd, reported)
		}
	}), marshal(t, h.dropped()))
	stop()
	busy.Wait()
	if reported != resources {
		t.Errorf("%d of %d custom resources are reported", reported, resources)
	}
	if err != nil || len(p.Refusals) > 0 {
		t.Fatalf("%+v, %v", p.Refusals, err)
	}
	want := []plan.StorageMigration{{
		CRD: h.ref.Name, Kind: "Boat", Dropped: []string{"v1beta1"}, Storage: "v1", Objects: resources,
	}}
	if diff := cmp.Diff(want, p.Changes[0].Migrations); diff != "" {
		t.Errorf("the plan (-want +got):\n%s", diff)
	}
	h.isMigrated(t, "v1", resources)
	err = k.Apply(
		t.Context(), client.ApplyConfigurationFromUnstructured(h.boat("v1", "boat-1")), client.FieldOwner("gitops"),
		client.ForceOwnership,
	)
	if err != nil {
		t.Errorf("a boat cannot be applied: %v", err)
	}
}

// isMigrated checks that only a version is stored, and that no managed field names another one.
func (h harbor) isMigrated(t *testing.T, version string, resources int) {
	t.Helper()
	if diff := cmp.Diff([]string{version}, storedVersions(t, h.ref)); diff != "" {
		t.Errorf("stored versions (-want +got):\n%s", diff)
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: h.crd.Spec.Group, Version: version, Kind: "BoatList"})
	wait.Until(t, limit, "the boats can be listed", func() (string, bool) {
		err := other(t).List(t.Context(), list)
		return fmt.Sprint(err), err == nil
	})
	if len(list.Items) != resources {
		t.Errorf("%d boats remain", len(list.Items))
	}
	for i := range list.Items {
		for _, f := range list.Items[i].GetManagedFields() {
			if f.APIVersion != h.crd.Spec.Group+"/"+version {
				t.Errorf("%s has managed fields in %s", list.Items[i].GetName(), f.APIVersion)
			}
		}
	}
}

// A migration continues after an interruption at any request, and every boat is readable meanwhile. The way back is a
// migration too.
func TestAnInterruptedMigrationContinues(t *testing.T) {
	t.Parallel()
	const group, resources = "interrupted.storage.test", 3
	h := newHarbor(t, group, resources, nil)
	old, dropped := marshal(t, h.crd), marshal(t, h.dropped())
	var writes, stopAt atomic.Int64
	errStopped := errors.New("stopped")
	c := newCluster(t, func(next http.RoundTripper) http.RoundTripper {
		return roundTripFunc(func(r *http.Request) (*http.Response, error) {
			if r.Method != http.MethodGet && r.URL.Query().Get("dryRun") == "" && writes.Add(1) > stopAt.Load() {
				return nil, errStopped
			}
			return next.RoundTrip(r)
		})
	})
	apply.SettleWithin(c, time.Second)
	k := other(t)
	for i := 0; ; i++ {
		writes.Store(0)
		stopAt.Store(int64(i))
		p, err := h.update(t.Context(), c, dropped)
		if len(p.Refusals) > 0 {
			t.Fatalf("refused after %d writes: %+v", i, p.Refusals)
		}
		for n := 1; n < resources; n++ {
			boat := h.boat("v1", fmt.Sprint("boat-", n))
			if err := k.Get(t.Context(), client.ObjectKeyFromObject(boat), boat); err != nil {
				t.Fatalf("after %d writes: %v", i, err)
			}
		}
		if err == nil {
			break
		}
		if i > 20 {
			t.Fatal(err)
		}
	}
	h.isMigrated(t, "v1", resources)
	// The former CRD stores v1beta1, and has v1 too: no stored version is dropped.
	stopAt.Store(1000)
	if p, err := h.update(t.Context(), c, old); err != nil || len(p.Refusals) > 0 || p.Changes[0].Migrations != nil {
		t.Fatalf("the way back: %+v, %v", p, err)
	}
	// A CRD that has only v1beta1 drops v1.
	first := h.crd.DeepCopy()
	first.Spec.Versions = first.Spec.Versions[:1]
	if p, err := h.update(t.Context(), c, marshal(t, first)); err != nil || len(p.Refusals) > 0 {
		t.Fatalf("the way back: %+v, %v", p, err)
	}
	h.isMigrated(t, "v1beta1", resources)
}

// A custom resource that loses fields when it is stored in another version stops the update before the first write,
// unless a user accepts it.
func TestAMigrationThatLosesFieldsIsRefused(t *testing.T) {
	t.Parallel()
	const group = "loses.storage.test"
	h := newHarbor(t, group, 0, func(crd *apiextensionsv1.CustomResourceDefinition) {
		for i, names := range [][]string{{"sail", "oar"}, {"sail"}} {
			fields := map[string]apiextensionsv1.JSONSchemaProps{}
			for _, name := range names {
				fields[name] = apiextensionsv1.JSONSchemaProps{Type: "string"}
			}
			crd.Spec.Versions[i].Schema.OpenAPIV3Schema.Properties = map[string]apiextensionsv1.JSONSchemaProps{
				"spec": {Type: "object", Properties: fields},
			}
		}
	})
	for name, spec := range map[string]map[string]any{"both": {"sail": "red", "oar": "long"}, "sail": {"sail": "red"}} {
		boat := h.boat("v1beta1", name)
		boat.Object["spec"] = spec
		wait.Until(t, limit, name+" can be created", func() (string, bool) {
			err := other(t).Create(t.Context(), boat.DeepCopy())
			return fmt.Sprint(err), err == nil
		})
	}
	c := newCluster(t, nil)
	before := one(t, c, h.ref)
	p, err := h.update(t.Context(), c, marshal(t, h.dropped()))
	if err != nil || len(p.Refusals) != 1 {
		t.Fatalf("%+v, %v", p.Refusals, err)
	}
	const reason = "breaks 1 of 2 Boats: both: .spec.oar is not in v1, in which it is stored"
	const item = "boats." + group + "/FieldRemoved"
	if r := p.Refusals[0]; r.Cause != plan.BreaksObjects || !strings.HasSuffix(r.Reason, reason) ||
		!strings.Contains(r.Fix, "--accept "+item) {
		t.Errorf("%+v", r)
	}
	if diff := cmp.Diff(before, one(t, c, h.ref)); diff != "" {
		t.Errorf("the CRD was written (-want +got):\n%s", diff)
	}
	if p, err := h.update(t.Context(), c, marshal(t, h.dropped()), item); err != nil || len(p.Refusals) > 0 {
		t.Fatalf("accepted: %+v, %v", p.Refusals, err)
	}
	h.isMigrated(t, "v1", 2)
}

// Custom resources that admission does not allow to update are rewritten through their status.
func TestAMigrationWritesThroughTheStatus(t *testing.T) {
	t.Parallel()
	const group = "denied.storage.test"
	h := newHarbor(t, group, 2, func(crd *apiextensionsv1.CustomResourceDefinition) {
		for i := range crd.Spec.Versions {
			crd.Spec.Versions[i].Subresources = &apiextensionsv1.CustomResourceSubresources{
				Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
			}
		}
	})
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: group},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Update},
					Rule: admissionv1.Rule{
						APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: []string{"boats"},
					},
				},
			}}},
			Validations: []admissionv1.Validation{{Expression: "false", Message: "nobody updates boats"}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: group},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: group, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
	k := other(t)
	for _, o := range []client.Object{policy, binding} {
		if err := k.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = k.Delete(context.WithoutCancel(t.Context()), o) })
	}
	wait.Until(t, limit, "the policy denies updates", func() (string, bool) {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`))
		err := k.Patch(t.Context(), h.boat("v1", "boat-1"), patch)
		return fmt.Sprint(err), err != nil && strings.Contains(err.Error(), "nobody updates boats")
	})
	if p, err := h.update(t.Context(), newCluster(t, nil), marshal(t, h.dropped())); err != nil || len(p.Refusals) > 0 {
		t.Fatalf("%+v, %v", p.Refusals, err)
	}
	h.isMigrated(t, "v1", 2)
}

// A client that may not rewrite custom resources refuses the update before the first write.
func TestAMigrationNeedsThePermissionToRewrite(t *testing.T) {
	t.Parallel()
	const group = "forbidden.storage.test"
	h := newHarbor(t, group, 1, nil)
	c := newCluster(t, func(next http.RoundTripper) http.RoundTripper {
		return roundTripFunc(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/boats/") {
				return statusReply(http.StatusForbidden, metav1.StatusReasonForbidden)(r)
			}
			return next.RoundTrip(r)
		})
	})
	p, err := h.update(t.Context(), c, marshal(t, h.dropped()))
	if err != nil || len(p.Refusals) != 1 || p.Refusals[0].Cause != plan.StoredVersionInUse ||
		!strings.Contains(p.Refusals[0].Reason, "they cannot be rewritten: ") ||
		!strings.Contains(p.Refusals[0].Fix, "--package-group "+group) {
		t.Errorf("%+v, %v", p.Refusals, err)
	}
	if stored := storedVersions(t, h.ref); !slices.Contains(stored, "v1beta1") {
		t.Errorf("the stored versions are %v", stored)
	}
}

// An update does not change a CRD while the API server rewrites its custom resources.
func TestAnUpdateWaitsForTheMigrationOfTheServer(t *testing.T) {
	t.Parallel()
	const group = "waits.storage.test"
	h := newHarbor(t, group, 1, nil)
	const patch = `[{"op":"add","path":"/status/conditions/-","value":` +
		`{"type":"StorageMigrating","status":"True","reason":"Running"}}]`
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(h.ref.GroupVersionKind())
	crd.SetName(h.ref.Name)
	if err := other(t).Status().Patch(t.Context(), crd, client.RawPatch(types.JSONPatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
	c := newCluster(t, nil)
	before := one(t, c, h.ref)
	if _, err := h.update(t.Context(), c, marshal(t, h.dropped())); !errors.Is(err, apply.ErrMoved) {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff(before, one(t, c, h.ref)); diff != "" {
		t.Errorf("the CRD was written (-want +got):\n%s", diff)
	}
}

// The control plane carries out StorageVersionMigrations, also of a kind without custom resources.
func TestTheControlPlaneMigrates(t *testing.T) {
	t.Parallel()
	for name, resources := range map[string]int{"full": 3, "empty": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			group := name + ".svm.storage.test"
			h := newHarbor(t, group, resources, nil)
			moved := h.crd.DeepCopy()
			moved.Spec.Versions[0].Storage, moved.Spec.Versions[1].Storage = false, true
			if p, err := h.update(t.Context(), newCluster(t, nil), marshal(t, moved)); err != nil || len(p.Refusals) > 0 {
				t.Fatalf("%+v, %v", p.Refusals, err)
			}
			m := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "storagemigration.k8s.io/v1", "kind": "StorageVersionMigration",
				"metadata": map[string]any{"name": group},
				"spec":     map[string]any{"resource": map[string]any{"group": group, "resource": "boats"}},
			}}
			k := other(t)
			if err := k.Create(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = k.Delete(context.WithoutCancel(t.Context()), m) })
			wait.Until(t, limit, "the migration ends", func() (string, bool) {
				err := k.Get(t.Context(), client.ObjectKeyFromObject(m), m)
				text := fmt.Sprint(m.Object["status"], err, storedVersions(t, h.ref))
				return text, strings.Contains(text, "StorageVersionMigrationSucceeded") &&
					slices.Equal(storedVersions(t, h.ref), []string{"v1"})
			})
		})
	}
}
