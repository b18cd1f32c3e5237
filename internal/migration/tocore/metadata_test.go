package tocore

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

func object(kind string) *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "uid", ResourceVersion: "7"}}
	o.Kind = kind
	return o
}

func fields(manager string, op metav1.ManagedFieldsOperationType, raw string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: op, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(raw),
	}
}

// A patch removes what the manager has added, keeps everything else, and is conditional.
func TestPatchRemovesTraces(t *testing.T) {
	o := object("CustomResourceDefinition")
	o.Annotations = map[string]string{"xpkg.dev/content-digest": "sha256:a", "example.org/kept": "yes"}
	o.Labels = map[string]string{"xpkg.dev/auto-installed": "true", "team": "a"}
	o.Finalizers = []string{"example.org/kept", v1.FinalizerRuntimeProtection}
	o.OwnerReferences = []metav1.OwnerReference{{Kind: "Provider", Name: "p", Controller: new(true)}}
	owner := metav1.OwnerReference{
		APIVersion: v1.GroupVersion.String(), Kind: "ProviderRevision", Name: "p-1", UID: "rev", Controller: new(true),
	}
	raw, err := metadata{owners: []metav1.OwnerReference{owner}}.patch(o)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"metadata": map[string]any{
		"uid": "uid", "resourceVersion": "7",
		"annotations": map[string]any{"xpkg.dev/content-digest": nil},
		"labels":      map[string]any{"xpkg.dev/auto-installed": nil},
		"finalizers":  []any{"example.org/kept"},
		"ownerReferences": []any{map[string]any{
			"apiVersion": "pkg.crossplane.io/v1", "kind": "ProviderRevision", "name": "p-1", "uid": "rev", "controller": true,
		}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("patch (-want +got):\n%s", diff)
	}
	clean := object("Service")
	clean.Annotations, clean.OwnerReferences = map[string]string{"example.org/kept": "yes"}, []metav1.OwnerReference{owner}
	if raw, err := (metadata{owners: []metav1.OwnerReference{owner}}).patch(clean); raw != nil || err != nil {
		t.Errorf("an object without traces is written: %s, %v", raw, err)
	}
	if raw, err := (metadata{}).patch(o); err != nil || json.Unmarshal(raw, &got) != nil ||
		got["metadata"].(map[string]any)["ownerReferences"] != nil {
		t.Errorf("owners change without a request: %s, %v", raw, err)
	}
}

// The fields of the manager get the field manager of core. Of a Secret, the data stays out of its apply.
func TestFieldsOfTheManagerAreHandedOver(t *testing.T) {
	const all = `{"f:data":{"f:tls.crt":{}},"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"rev\"}":{}}}}`
	const owners = `{"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"rev\"}":{}}}}`
	cases := map[string]struct {
		kind    string
		fields  []metav1.ManagedFieldsEntry
		applier string
		// want are the fields of each field manager and operation; nil means no patch.
		want map[string]string
	}{
		"Service": {
			kind: "Service", applier: runtimeFieldManager,
			fields: []metav1.ManagedFieldsEntry{fields(plan.FieldManager, "Update", owners)},
			want:   map[string]string{runtimeFieldManager + " Apply": owners},
		},
		"Secret": {
			kind: "Secret", applier: runtimeFieldManager,
			fields: []metav1.ManagedFieldsEntry{fields(plan.FieldManager, "Update", all)},
			want: map[string]string{
				runtimeFieldManager + " Apply":          owners,
				plan.CrossplaneFieldManager + " Update": `{"f:data":{"f:tls.crt":{}},"f:metadata":{}}`,
			},
		},
		"OtherManagersAreKept": {
			kind: "Deployment", applier: runtimeFieldManager,
			fields: []metav1.ManagedFieldsEntry{
				fields("kubectl", "Update", all), fields(runtimeFieldManager, "Apply", `{"f:spec":{"f:replicas":{}}}`),
				fields(plan.FieldManager, "Update", owners),
			},
			want: map[string]string{
				"kubectl Update": all,
				runtimeFieldManager +
					" Apply": `{"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"rev\"}":{}}},"f:spec":{"f:replicas":{}}}`,
			},
		},
		"NotOfTheManager": {kind: "Service", applier: runtimeFieldManager, fields: []metav1.ManagedFieldsEntry{
			fields("kubectl", "Update", all),
		}},
		"NotApplied": {kind: "CustomResourceDefinition", fields: []metav1.ManagedFieldsEntry{
			fields(plan.FieldManager, "Update", all),
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := object(tc.kind)
			o.ManagedFields = tc.fields
			raw, err := metadata{applier: tc.applier}.fieldsPatch(o)
			if err != nil {
				t.Fatal(err)
			}
			if tc.want == nil {
				if raw != nil {
					t.Errorf("patch %s, want none", raw)
				}
				return
			}
			var patch metav1.PartialObjectMetadata
			if err := json.Unmarshal(raw, &patch); err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, e := range patch.ManagedFields {
				got[e.Manager+" "+string(e.Operation)] = e.FieldsV1.GetRawString()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
			if patch.ResourceVersion != "7" {
				t.Errorf("the patch is not conditional: %s", raw)
			}
		})
	}
}
