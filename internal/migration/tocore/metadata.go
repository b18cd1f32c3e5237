package tocore

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"

	"github.com/xpkg-dev/xpkg/pkg/plan"
)

const (
	// domain is the prefix of the annotations, labels and finalizers of the manager.
	domain = "xpkg.dev/"
	// runtimeFieldManager is the field manager with which core applies the objects of a runtime, and
	// definitionFieldManager that of CRDs of managed resource definitions.
	runtimeFieldManager    = "pkg.crossplane.io/runtime"
	definitionFieldManager = "apiextensions.crossplane.io/managed"
)

// metadata is the metadata that an object has after the manager has given it back. The zero value keeps the owners.
type metadata struct {
	// owners are the owners of the object; nil keeps the current ones.
	owners []metav1.OwnerReference
	// applier is the field manager with which core applies the object, or "".
	applier string
}

// patch returns a merge patch without the traces of the manager, or nil if the metadata matches. It fails with a
// conflict if another client changes the object first.
func (m metadata) patch(o *metav1.PartialObjectMetadata) ([]byte, error) {
	change := map[string]any{}
	if keys := traces(o.Annotations); len(keys) > 0 {
		change["annotations"] = nulls(keys)
	}
	if keys := traces(o.Labels); len(keys) > 0 {
		change["labels"] = nulls(keys)
	}
	if kept := slices.DeleteFunc(slices.Clone(o.Finalizers), isTrace); len(kept) != len(o.Finalizers) {
		change["finalizers"] = kept
	}
	if m.owners != nil && !sameOwners(m.owners, o.OwnerReferences) {
		change["ownerReferences"] = m.owners
	}
	if len(change) == 0 {
		return nil, nil
	}
	return mergePatch(o, change)
}

func mergePatch(o *metav1.PartialObjectMetadata, change map[string]any) ([]byte, error) {
	change["uid"], change["resourceVersion"] = o.UID, o.ResourceVersion
	return json.Marshal(map[string]any{"metadata": change})
}

// traces returns the keys of the manager.
func traces(m map[string]string) []string {
	var out []string
	for key := range m {
		if isTrace(key) {
			out = append(out, key)
		}
	}
	slices.Sort(out)
	return out
}

func isTrace(key string) bool { return strings.HasPrefix(key, domain) }

func nulls(keys []string) map[string]any {
	out := map[string]any{}
	for _, key := range keys {
		out[key] = nil
	}
	return out
}

// isFieldManager reports whether the manager has written fields of an object, other than its status.
func isFieldManager(o *metav1.PartialObjectMetadata) bool {
	return slices.ContainsFunc(o.ManagedFields, func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == plan.FieldManager && e.Subresource == ""
	})
}

// sameOwners compares owners in any order.
func sameOwners(a, b []metav1.OwnerReference) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(x metav1.OwnerReference) bool {
		return !slices.ContainsFunc(b, func(y metav1.OwnerReference) bool {
			return x.APIVersion == y.APIVersion && x.Kind == y.Kind && x.Name == y.Name && x.UID == y.UID &&
				flag(x.Controller) == flag(y.Controller) && flag(x.BlockOwnerDeletion) == flag(y.BlockOwnerDeletion)
		})
	})
}

func flag(b *bool) bool { return b != nil && *b }

// fieldsPatch returns a merge patch that hands the fields of the manager over to the field manager with which core
// applies the object, or nil. Without it, the owner reference of a former revision would stay, because the manager
// would still own it, and the next revision could not control the object. Of a Secret only the owner references are
// handed over: core applies a Secret without its data.
func (m metadata) fieldsPatch(o *metav1.PartialObjectMetadata) ([]byte, error) {
	if m.applier == "" || !isFieldManager(o) {
		return nil, nil
	}
	next := o.DeepCopy()
	if o.Kind == "Secret" {
		if err := keepData(next); err != nil {
			return nil, err
		}
	}
	if err := csaupgrade.UpgradeManagedFields(next, sets.New(plan.FieldManager), m.applier); err != nil {
		return nil, fmt.Errorf("hand over the fields of %s %s: %w", o.Kind, o.Name, err)
	}
	return mergePatch(o, map[string]any{"managedFields": next.ManagedFields})
}

// keepData moves the fields of the manager, other than the owner references, to the field manager with which core
// writes certificates.
func keepData(o *metav1.PartialObjectMetadata) error {
	for i, e := range o.ManagedFields {
		if e.Manager != plan.FieldManager || e.Subresource != "" || e.FieldsV1 == nil {
			continue
		}
		var fields map[string]any
		if err := json.Unmarshal(e.FieldsV1.GetRawBytes(), &fields); err != nil {
			return fmt.Errorf("fields of %s %s: %w", o.Kind, o.Name, err)
		}
		rest := e
		owned := map[string]any{}
		if m, ok := fields["f:metadata"].(map[string]any); ok {
			if refs, ok := m["f:ownerReferences"]; ok {
				owned["f:metadata"] = map[string]any{"f:ownerReferences": refs}
				delete(m, "f:ownerReferences")
			}
		}
		for _, part := range []struct {
			entry  *metav1.ManagedFieldsEntry
			fields map[string]any
		}{{&o.ManagedFields[i], owned}, {&rest, fields}} {
			raw, err := json.Marshal(part.fields)
			if err != nil {
				return err
			}
			part.entry.FieldsV1 = metav1.NewFieldsV1(string(raw))
		}
		rest.Manager = plan.CrossplaneFieldManager
		o.ManagedFields = slices.DeleteFunc(o.ManagedFields, func(other metav1.ManagedFieldsEntry) bool {
			return other.Manager == rest.Manager && other.Operation == rest.Operation && other.Subresource == ""
		})
		o.ManagedFields = append(o.ManagedFields, rest)
		return nil
	}
	return nil
}

// isAppliedBy reports whether a field manager has applied an object.
func isAppliedBy(o *metav1.PartialObjectMetadata, manager string) bool {
	return slices.ContainsFunc(o.ManagedFields, func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == manager && e.Operation == metav1.ManagedFieldsOperationApply
	})
}
