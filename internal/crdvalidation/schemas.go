package crdvalidation

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/xpkg-dev/xpkg/internal/spelling"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/check"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/crd"
)

// Schemas are the schemas of custom resources, by kind. The zero value has none.
type Schemas struct {
	kinds map[schema.GroupVersionKind]*versionSchema
	// documents are the schemas of OpenAPI documents.
	documents map[schema.GroupVersionKind]openAPISchema
}

// versionSchema is the schema of a version of a kind. Its validators are created on first use: a large provider has a
// thousand kinds.
type versionSchema struct {
	source     string
	namespaced bool
	props      *apiextensions.JSONSchemaProps

	*Version
}

// AddCRD adds the served versions of a CRD, which is JSON of apiextensions.k8s.io/v1 or v1beta1. Source names the
// package or file of the CRD. A schema that is added again replaces the former one.
func (s *Schemas) AddCRD(json []byte, source string) (err error) {
	defer catch(&err)
	var version metav1.TypeMeta
	if err := kjson.UnmarshalCaseSensitivePreserveInts(json, &version); err != nil {
		return err
	}
	if strings.HasSuffix(version.APIVersion, "/v1beta1") {
		if json, err = crd.FromV1Beta1(json); err != nil {
			return err
		}
	}
	d, err := internalCRD(json)
	if err != nil {
		return err
	}
	for _, v := range d.Spec.Versions {
		if v.Served {
			s.add(d, v.Name, source)
		}
	}
	return nil
}

// AddXRD adds the composite resource of an XRD, and its claim. The composition engine adds fields to their schemas,
// which are accepted without validation.
func (s *Schemas) AddXRD(json []byte, source string) (err error) {
	defer catch(&err)
	composites, err := CompositeCRDs(json)
	if err != nil {
		return err
	}
	for _, c := range composites {
		if err := s.AddCRD(c, source); err != nil {
			return err
		}
	}
	return nil
}

// AddComposite is like AddCRD for the CRD of a composite resource or a claim with the schemas of its XRD: the fields
// that the composition engine adds are accepted without validation.
func (s *Schemas) AddComposite(text []byte, source string) (err error) {
	defer catch(&err)
	var d apiextensionsv1.CustomResourceDefinition
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &d); err != nil {
		return err
	}
	out, err := withFields(d, slices.Concat(crd.CompositeFields, crd.LegacyCompositeFields, crd.ClaimFields))
	if err != nil {
		return err
	}
	return s.AddCRD(out, source)
}

func (s *Schemas) add(d *apiextensions.CustomResourceDefinition, version, source string) {
	v, err := apiextensions.GetSchemaForVersion(d, version)
	if err != nil || v == nil || v.OpenAPIV3Schema == nil {
		return
	}
	if s.kinds == nil {
		s.kinds = map[schema.GroupVersionKind]*versionSchema{}
	}
	kind := schema.GroupVersionKind{Group: d.Spec.Group, Version: version, Kind: d.Spec.Names.Kind}
	s.kinds[kind] = &versionSchema{
		source: source, namespaced: d.Spec.Scope == apiextensions.NamespaceScoped, props: v.OpenAPIV3Schema,
	}
}

// Len returns the number of versions of kinds.
func (s *Schemas) Len() int { return len(s.kinds) }

// Has reports whether the kind has a schema.
func (s *Schemas) Has(kind schema.GroupVersionKind) bool { return s.kinds[kind] != nil }

// Group reports whether a kind of the group has a schema.
func (s *Schemas) Group(group string) bool {
	for kind := range s.kinds {
		if kind.Group == group {
			return true
		}
	}
	return false
}

// Similar returns the kinds that a user might mean by a kind without a schema: its other versions, and kinds whose
// names differ in the case of letters or by an s. If there are none, it returns the kinds of the group whose spelling
// is similar.
func (s *Schemas) Similar(kind schema.GroupVersionKind) []schema.GroupVersionKind {
	plain := func(k string) string { return strings.TrimSuffix(strings.ToLower(k), "s") }
	out := s.where(func(k schema.GroupVersionKind) bool { return plain(k.Kind) == plain(kind.Kind) })
	if len(out) == 0 {
		var names []string
		for _, k := range s.where(func(k schema.GroupVersionKind) bool { return k.Group == kind.Group }) {
			names = append(names, k.Kind)
		}
		alike := spelling.Alike(kind.Kind, names)
		out = s.where(func(k schema.GroupVersionKind) bool { return k.Group == kind.Group && slices.Contains(alike, k.Kind) })
	}
	return out
}

// where returns the kinds for which a condition holds, in order.
func (s *Schemas) where(is func(schema.GroupVersionKind) bool) []schema.GroupVersionKind {
	var out []schema.GroupVersionKind
	for k := range s.kinds {
		if is(k) {
			out = append(out, k)
		}
	}
	slices.SortFunc(out, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	return out
}

// Source returns the package or file of the schema of a kind.
func (s *Schemas) Source(kind schema.GroupVersionKind) string { return s.kinds[kind].source }

// ClusterScoped reports whether the kind has a schema and its resources are in no namespace.
func (s *Schemas) ClusterScoped(kind schema.GroupVersionKind) bool {
	v := s.kinds[kind]
	return v != nil && !v.namespaced
}

// SetDefaults sets the defaults of a resource as an API server does when the resource is created. The kind must have a
// schema.
func (s *Schemas) SetDefaults(resource map[string]any) (err error) {
	defer catch(&err)
	v := s.kinds[(&unstructured.Unstructured{Object: resource}).GroupVersionKind()]
	if err := v.prepare(); err != nil {
		return err
	}
	v.setDefaults(resource)
	return nil
}

// Validate returns the errors that an API server would return if the resource were created, and unknown fields, which
// an API server drops or rejects. The kind must have a schema. Validate changes the resource: it sets defaults.
func (s *Schemas) Validate(ctx context.Context, resource map[string]any) []check.Problem {
	return s.check(
		resource, func(v *versionSchema, u *unstructured.Unstructured) field.ErrorList { return v.validate(ctx, u) },
	)
}

// ValidateTemplate returns the unknown fields of a resource, and the errors of the fields that it has. Other fields are
// added before the resource is created, so it may lack required fields and a name, and rules are not evaluated.
// ValidateTemplate changes the resource: it drops unknown fields.
func (s *Schemas) ValidateTemplate(resource map[string]any) []check.Problem {
	return s.check(resource, func(v *versionSchema, u *unstructured.Unstructured) field.ErrorList {
		all := validation.ValidateCustomResource(nil, u.Object, v.validator)
		return slices.DeleteFunc(all, func(e *field.Error) bool { return e.Type == field.ErrorTypeRequired })
	})
}

func (s *Schemas) check(
	resource map[string]any, validate func(*versionSchema, *unstructured.Unstructured) field.ErrorList,
) (problems []check.Problem) {
	defer func() {
		if p := recover(); p != nil {
			problems = []check.Problem{{Message: fmt.Sprintf("the validation failed: %v", p)}}
		}
	}()
	u := &unstructured.Unstructured{Object: resource}
	v := s.kinds[u.GroupVersionKind()]
	if err := v.prepare(); err != nil {
		return []check.Problem{{Message: "the schema of " + v.source + " is not valid: " + err.Error()}}
	}
	unknown := pruning.PruneWithOptions(resource, v.structural, true, structuralschema.UnknownFieldPathOptions{
		TrackUnknownFieldPaths: true,
	})
	for _, path := range unknown {
		problems = append(problems, check.Problem{Path: path, Message: "unknown field"})
	}
	v.setDefaults(resource)
	failures := validate(v, u)
	for _, e := range failures {
		if e.Field != noField {
			problems = append(problems, check.Problem{Path: e.Field, Message: message(e)})
		}
	}
	if len(problems) == 0 && len(failures) > 0 {
		problems = append(problems, check.Problem{Message: message(failures[0])})
	}
	return problems
}

// noField is the field of the second error of the API server for a number of the wrong type.
const noField = "<nil>"

// prepare creates the validators.
func (v *versionSchema) prepare() (err error) {
	if v.Version == nil {
		v.Version, err = newVersion(v.props)
	}
	return err
}

func (v *versionSchema) validate(ctx context.Context, u *unstructured.Unstructured) field.ErrorList {
	meta := u.DeepCopy()
	if v.namespaced && meta.GetNamespace() == "" {
		meta.SetNamespace(metav1.NamespaceDefault) // as kubectl does
	}
	if prefix := meta.GetGenerateName(); meta.GetName() == "" && prefix != "" {
		meta.SetName(prefix + "00000") // as the API server does
	}
	all := apivalidation.ValidateObjectMetaAccessor(
		meta, v.namespaced, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"),
	)
	return append(all, v.ValidateCreate(ctx, u.Object, all...)...)
}

// catch turns a panic of the API server's code on a malicious schema into an error.
func catch(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the schema cannot be read: %v", p)
	}
}
