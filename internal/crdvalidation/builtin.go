package crdvalidation

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
)

// clusterScoped are the kinds of Kubernetes whose resources are in no namespace.
var clusterScoped = []string{
	"APIService", "CertificateSigningRequest", "ClusterRole", "ClusterRoleBinding", "ClusterTrustBundle", "CSIDriver",
	"CSINode", "ComponentStatus", "DeviceClass", "DeviceTaintRule", "FlowSchema", "IngressClass", "IPAddress",
	"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration", "Namespace", "Node",
	"PersistentVolume", "PriorityClass", "PriorityLevelConfiguration", "ResourceSlice", "RuntimeClass", "SelfSubjectReview",
	"SelfSubjectAccessReview", "SelfSubjectRulesReview", "ServiceCIDR", "StorageClass", "StorageVersion",
	"StorageVersionMigration", "SubjectAccessReview", "TokenReview", "ValidatingAdmissionPolicy",
	"ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration", "VolumeAttachment", "VolumeAttributesClass",
}

// builtinSource is the source of the kinds of Kubernetes.
const builtinSource = "Kubernetes"

// AddBuiltin adds the kinds of Kubernetes itself. Their schemas are those of its Go types: they describe the fields and
// their types, and neither required fields nor rules.
func (s *Schemas) AddBuiltin() {
	if s.kinds == nil {
		s.kinds = map[schema.GroupVersionKind]*versionSchema{}
	}
	for kind, t := range scheme.Scheme.AllKnownTypes() {
		meta, ok := t.FieldByName("ObjectMeta")
		if ok && meta.Type == reflect.TypeFor[metav1.ObjectMeta]() && kind.Version != "__internal" {
			s.kinds[kind] = &versionSchema{
				source: builtinSource, builtin: t, namespaced: !slices.Contains(clusterScoped, kind.Kind),
			}
		}
	}
}

// BuiltinGroup reports whether a kind of the group belongs to Kubernetes itself and has a schema.
func (s *Schemas) BuiltinGroup(group string) bool {
	return len(s.where(func(k schema.GroupVersionKind) bool { return k.Group == group && s.kinds[k].builtin != nil })) > 0
}

// metadata validates the metadata of every resource.
var metadata = sync.OnceValues(func() (*Version, error) {
	props := propsOf(reflect.TypeFor[metav1.ObjectMeta](), nil)
	return newVersion(&props)
})

// propsOf returns the schema of the JSON of a Go type of Kubernetes, which is within the types above it. It accepts any
// value for a type with an encoding of its own.
func propsOf(t reflect.Type, above []reflect.Type) apiextensions.JSONSchemaProps {
	open := apiextensions.JSONSchemaProps{XPreserveUnknownFields: new(true)}
	switch t {
	case reflect.TypeFor[intstr.IntOrString]():
		return apiextensions.JSONSchemaProps{XIntOrString: true}
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime](), reflect.TypeFor[metav1.Duration]():
		return apiextensions.JSONSchemaProps{Type: "string"}
	case reflect.TypeFor[[]byte]():
		return apiextensions.JSONSchemaProps{Type: "string", Format: "byte"}
	case reflect.TypeFor[resource.Quantity]():
		return open
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) || slices.Contains(above, t) {
		return open
	}
	switch t.Kind() {
	case reflect.Pointer:
		return propsOf(t.Elem(), above)
	case reflect.Bool:
		return apiextensions.JSONSchemaProps{Type: "boolean"}
	case reflect.String:
		return apiextensions.JSONSchemaProps{Type: "string"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint8, reflect.Uint32:
		return apiextensions.JSONSchemaProps{Type: "integer"}
	case reflect.Float32, reflect.Float64:
		return apiextensions.JSONSchemaProps{Type: "number"}
	case reflect.Slice:
		items := propsOf(t.Elem(), above)
		return apiextensions.JSONSchemaProps{Type: "array", Items: &apiextensions.JSONSchemaPropsOrArray{Schema: &items}}
	case reflect.Map:
		values := propsOf(t.Elem(), above)
		return apiextensions.JSONSchemaProps{
			Type: "object", AdditionalProperties: &apiextensions.JSONSchemaPropsOrBool{Allows: true, Schema: &values},
		}
	case reflect.Struct:
		out := apiextensions.JSONSchemaProps{Type: "object", Properties: map[string]apiextensions.JSONSchemaProps{}}
		addFields(&out, t, append(slices.Clone(above), t))
		return out
	}
	return open
}

// addFields adds the fields of a struct.
func addFields(s *apiextensions.JSONSchemaProps, t reflect.Type, above []reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		switch name, _, _ := strings.Cut(f.Tag.Get("json"), ","); {
		case name == "-" || !f.IsExported():
		case name != "":
			s.Properties[name] = propsOf(f.Type, above)
		case f.Anonymous:
			embedded := f.Type
			if embedded.Kind() == reflect.Pointer {
				embedded = embedded.Elem()
			}
			addFields(s, embedded, above)
		}
	}
}
