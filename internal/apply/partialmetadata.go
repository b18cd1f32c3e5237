package apply

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// partial is the part of an object's metadata that a plan needs. Managed fields are most of a response, so only the
// relevant keys are decoded, and kept no longer than the page that contains them.
type partial struct {
	Metadata struct {
		Name              string                  `json:"name"`
		Namespace         string                  `json:"namespace"`
		UID               types.UID               `json:"uid"`
		ResourceVersion   string                  `json:"resourceVersion"`
		Generation        int64                   `json:"generation"`
		DeletionTimestamp string                  `json:"deletionTimestamp"`
		Finalizers        []string                `json:"finalizers"`
		Labels            map[string]string       `json:"labels"`
		Annotations       map[string]string       `json:"annotations"`
		OwnerReferences   []metav1.OwnerReference `json:"ownerReferences"`
		ManagedFields     []managed               `json:"managedFields"`
	} `json:"metadata"`
}

// managed are the fields of an object that one manager has written.
type managed struct {
	Manager     string    `json:"manager"`
	Subresource string    `json:"subresource"`
	Time        time.Time `json:"time"`
	Fields      fields    `json:"fieldsV1"`
}

func (m *partial) live(ref plan.Ref) plan.Live {
	l := plan.Live{
		Ref: ref, UID: m.Metadata.UID, ResourceVersion: m.Metadata.ResourceVersion, Generation: m.Metadata.Generation,
		Deleting: m.Metadata.DeletionTimestamp != "", Labels: m.Metadata.Labels, Annotations: m.Metadata.Annotations,
		Owners: m.Metadata.OwnerReferences,
	}
	for _, f := range m.Metadata.ManagedFields {
		switch {
		case f.Subresource != "":
		case f.Manager == plan.FieldManager:
			l.ManagedLabels = append(l.ManagedLabels, f.Fields.labels...)
			l.ManagedAnnotations = append(l.ManagedAnnotations, f.Fields.annotations...)
		case f.Fields.content:
			l.OthersWrote = true
			l.CrossplaneWrote = l.CrossplaneWrote || f.Manager == plan.CrossplaneFieldManager
		}
	}
	return l
}

// Known returns the part of an object's metadata that a plan needs, from metadata that is already known, for example
// from a watch. The metadata must include managed fields; otherwise no writer is recognized.
func Known(ref plan.Ref, o metav1.Object) plan.Live {
	var m partial
	m.Metadata.UID, m.Metadata.ResourceVersion, m.Metadata.Generation = o.GetUID(), o.GetResourceVersion(),
		o.GetGeneration()
	if at := o.GetDeletionTimestamp(); at != nil {
		m.Metadata.DeletionTimestamp = at.String()
	}
	m.Metadata.Labels, m.Metadata.Annotations, m.Metadata.OwnerReferences = o.GetLabels(), o.GetAnnotations(),
		o.GetOwnerReferences()
	for _, f := range o.GetManagedFields() {
		one := managed{Manager: f.Manager, Subresource: f.Subresource}
		if f.FieldsV1 != nil && one.Fields.UnmarshalJSON(f.FieldsV1.GetRawBytes()) != nil {
			continue
		}
		m.Metadata.ManagedFields = append(m.Metadata.ManagedFields, one)
	}
	return m.live(ref)
}

// fields is the relevant part of a field set: the keys of labels and annotations, and whether it contains any field
// besides metadata and status.
type fields struct {
	labels, annotations []string
	content             bool
}

// UnmarshalJSON decodes the format FieldsV1, in which a key k is written as "f:k". It ignores unknown elements, so no
// plan fails because of them.
func (f *fields) UnmarshalJSON(raw []byte) error {
	var top map[string]json.RawMessage
	if json.Unmarshal(raw, &top) != nil {
		return nil
	}
	for key := range top {
		if strings.HasPrefix(key, "f:") && key != "f:metadata" && key != "f:status" {
			f.content = true
		}
	}
	var metadata struct {
		Labels      map[string]json.RawMessage `json:"f:labels"`
		Annotations map[string]json.RawMessage `json:"f:annotations"`
	}
	if m, ok := top["f:metadata"]; ok && json.Unmarshal(m, &metadata) == nil {
		f.labels, f.annotations = keys(metadata.Labels), keys(metadata.Annotations)
	}
	return nil
}

// keys returns the names of the fields of a map, in order.
func keys(m map[string]json.RawMessage) []string {
	var out []string
	for k := range m {
		if name, ok := strings.CutPrefix(k, "f:"); ok {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// pathIn returns the path of an object in the folder of its API version.
func (m partial) pathIn(folder, plural string) []string {
	if m.Metadata.Namespace != "" {
		return []string{folder, "namespaces", m.Metadata.Namespace, plural, m.Metadata.Name}
	}
	return []string{folder, plural, m.Metadata.Name}
}

// name returns the name of an object for messages, as NAMESPACE/NAME if it is in a namespace.
func (m *partial) name() string {
	if m.Metadata.Namespace != "" {
		return m.Metadata.Namespace + "/" + m.Metadata.Name
	}
	return m.Metadata.Name
}
