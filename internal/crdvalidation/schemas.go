package crdvalidation

import (
	"context"
	"errors"
	"fmt"
	"reflect"
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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	kjson "sigs.k8s.io/json"

	"github.com/xpkg-dev/xpkg/internal/spelling"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/check"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/crd"
)

// Schemas are the schemas of resources, by kind. The zero value has none.
type Schemas struct {
	kinds map[schema.GroupVersionKind]*versionSchema
	// later are the definitions that were not read yet, by group, and failed are the errors of their reading.
	later  map[string][]later
	failed []error
	// documents are the schemas of OpenAPI documents.
	documents map[schema.GroupVersionKind]openAPISchema
}

// versionSchema is the schema of a version of a kind. Its validators are created on first use: a large provider has a
// thousand kinds.
type versionSchema struct {
	source     string
	namespaced bool
	props      *apiextensions.JSONSchemaProps
	// builtin is the Go type of a kind of Kubernetes, which has no props before its first use.
	builtin reflect.Type

	*Version
}

// later is a definition of a kind that is read on the first use of its group.
type later struct {
	plural string
	add    func() error
}

// AddLater adds the definition of a kind, which is read on the first use of a kind of its group: a large provider has a
// thousand. Name is the name of the CRD or XRD. A function that adds it is called at most once.
func (s *Schemas) AddLater(name string, add func() error) {
	plural, group, _ := strings.Cut(name, ".")
	if s.later == nil {
		s.later = map[string][]later{}
	}
	s.later[group] = append(s.later[group], later{plural, add})
}

// Err returns the errors of definitions that were added later.
func (s *Schemas) Err() error { return errors.Join(s.failed...) }

// load reads the definitions of a group that match.
func (s *Schemas) load(group string, match func(plural string) bool) {
	s.later[group] = slices.DeleteFunc(s.later[group], func(l later) bool {
		if !match(l.plural) {
			return false
		}
		if err := l.add(); err != nil {
			s.failed = append(s.failed, err)
		}
		return true
	})
}

// of returns the schema of a kind, or nil.
func (s *Schemas) of(kind schema.GroupVersionKind) *versionSchema {
	if len(s.later[kind.Group]) > 0 {
		s.load(kind.Group, func(string) bool { return true })
	}
	return s.kinds[kind]
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
func (s *Schemas) Has(kind schema.GroupVersionKind) bool { return s.of(kind) != nil }

// Group reports whether a kind of the group has a schema.
func (s *Schemas) Group(group string) bool {
	return len(s.later[group]) > 0 ||
		len(s.where(func(k schema.GroupVersionKind) bool { return k.Group == group })) > 0
}

// Similar returns the kinds that a user might mean by a kind without a schema: its other versions, and kinds whose
// names differ in the case of letters or by an s. If there are none, it returns the kinds of the group whose spelling
// is similar.
func (s *Schemas) Similar(kind schema.GroupVersionKind) []schema.GroupVersionKind {
	plain := func(k string) string { return strings.TrimSuffix(strings.ToLower(k), "s") }
	stem := strings.TrimSuffix(plain(kind.Kind), "y")
	for group := range s.later {
		s.load(group, func(plural string) bool { return group == kind.Group || strings.HasPrefix(plural, stem) })
	}
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
func (s *Schemas) Source(kind schema.GroupVersionKind) string { return s.of(kind).source }

// ClusterScoped reports whether the kind has a schema and its resources are in no namespace.
func (s *Schemas) ClusterScoped(kind schema.GroupVersionKind) bool {
	v := s.of(kind)
	return v != nil && !v.namespaced
}

// SetDefaults sets the defaults of a resource as an API server does when the resource is created. The kind must have a
// schema.
func (s *Schemas) SetDefaults(resource map[string]any) (err error) {
	defer catch(&err)
	v := s.of((&unstructured.Unstructured{Object: resource}).GroupVersionKind())
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
// added before the resource is created, so it may lack a name, and a missing required field is an error only if missing
// returns true for its path. ValidateTemplate changes the resource: it drops unknown fields.
func (s *Schemas) ValidateTemplate(resource map[string]any, missing func(path string) bool) []check.Problem {
	return s.check(resource, func(v *versionSchema, u *unstructured.Unstructured) field.ErrorList {
		all := validation.ValidateCustomResource(nil, u.Object, v.validator)
		if v.rules != nil {
			rules, _ := v.rules.Validate(
				context.Background(), nil, v.structural, u.Object, nil, celconfig.RuntimeCELCostBudget,
			)
			for _, e := range rules {
				if path, ok := strings.CutSuffix(e.Detail, requiredParameter); ok && missing(strings.TrimSpace(path)) {
					all = append(all, field.Required(field.NewPath(path), ""))
				}
			}
		}
		return slices.DeleteFunc(all, func(e *field.Error) bool {
			return e.Type == field.ErrorTypeRequired && !missing(e.Field)
		})
	})
}

// requiredParameter ends the messages of the rules with which generated providers require a field, unless the resource
// is only observed.
const requiredParameter = " is a required parameter"

func (s *Schemas) check(
	resource map[string]any, validate func(*versionSchema, *unstructured.Unstructured) field.ErrorList,
) (problems []check.Problem) {
	defer func() {
		if p := recover(); p != nil {
			problems = []check.Problem{{Message: fmt.Sprintf("the validation failed: %v", p)}}
		}
	}()
	u := &unstructured.Unstructured{Object: resource}
	v := s.of(u.GroupVersionKind())
	if err := v.prepare(); err != nil {
		return []check.Problem{{Message: "the schema of " + v.source + " is not valid: " + err.Error()}}
	}
	problems = checkMetadata(resource["metadata"])
	for _, path := range unknownFields(resource, v.structural, true) {
		problems = append(problems, v.unknownField(path))
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

// unknownFields drops the unknown fields of a value, and returns their paths.
func unknownFields(value map[string]any, of *structuralschema.Structural, isResource bool) []string {
	return pruning.PruneWithOptions(value, of, isResource, structuralschema.UnknownFieldPathOptions{
		TrackUnknownFieldPaths: true,
	})
}

// checkMetadata returns the unknown fields of the metadata of a resource, and those of the wrong type.
func checkMetadata(value any) []check.Problem {
	v, err := metadata()
	object, ok := value.(map[string]any)
	if err != nil || !ok {
		return nil
	}
	object = runtime.DeepCopyJSON(object)
	var problems []check.Problem
	for _, path := range unknownFields(object, v.structural, false) {
		problems = append(problems, unknownField(v.structural, "metadata.", path))
	}
	v.setDefaults(object)
	for _, e := range validation.ValidateCustomResource(field.NewPath("metadata"), object, v.validator) {
		if e.Field != noField {
			problems = append(problems, check.Problem{Path: e.Field, Message: message(e)})
		}
	}
	return problems
}

// noField is the field of the second error of the API server for a number of the wrong type.
const noField = "<nil>"

// prepare creates the validators.
func (v *versionSchema) prepare() (err error) {
	if v.Version == nil {
		if v.builtin != nil {
			props := propsOf(v.builtin, nil)
			props.Properties["metadata"] = apiextensions.JSONSchemaProps{Type: "object"} // checked for every resource
			v.props = &props
		}
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
	valid := apivalidation.NameIsDNSSubdomain
	if v.builtin != nil {
		valid = func(string, bool) []string { return nil } // Each kind of Kubernetes has a rule of its own.
	}
	all := apivalidation.ValidateObjectMetaAccessor(meta, v.namespaced, valid, field.NewPath("metadata"))
	return append(all, v.ValidateCreate(ctx, u.Object, all...)...)
}

// catch turns a panic of the API server's code on a malicious schema into an error.
func catch(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the schema cannot be read: %v", p)
	}
}
