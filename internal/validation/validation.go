// Package validation checks resources and Compositions as a cluster with some packages would see them, without a
// cluster.
package validation

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/xpkg-dev/xpkg/apis/crds"
	"github.com/xpkg-dev/xpkg/internal/crdvalidation"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/check"
)

// Codes returns the error codes that this package defines, in alphabetical order.
func Codes() []errcode.Code {
	return []errcode.Code{
		ErrFunctionName, ErrFunctionUnknown, ErrIneffectivePath, ErrInvalidPatch, ErrInvalidResource, ErrInvalidTemplate,
		ErrKindWithoutSchema,
	}
}

// Codes of findings.
var (
	ErrInvalidResource = errcode.Code{
		Name: "InvalidResource", Class: errcode.Invalid,
		Cause: "An API server would reject the resource, or drop a field of it: it does not match the schema of its kind.",
		Fix:   "Correct the named field.",
	}
	ErrKindWithoutSchema = errcode.Code{
		Name: "KindWithoutSchema", Class: errcode.Invalid,
		Cause: "No package defines the kind of the resource.",
		Fix:   "Correct apiVersion and kind, add the package that defines the kind to the dependencies or name it with --package, or accept such resources with --allow-unknown-kinds.",
	}
	ErrFunctionUnknown = errcode.Code{
		Name: "FunctionUnknown", Class: errcode.NotFound,
		Cause: "A composition refers to a function that is not known.",
		Fix:   "Correct functionRef.name in the composition, or add the function to the dependencies of the package.",
	}
	ErrFunctionName = errcode.Code{
		Name: "FunctionNamedOtherwise", Class: errcode.Invalid,
		Cause: "A composition refers to a function of a dependency by another name than the one that a cluster gives to the dependency. The reference works only where users have installed the function by that name.",
		Fix:   "Set functionRef.name to the name of the dependency.",
	}
	ErrInvalidPatch = errcode.Code{
		Name: "InvalidPatch", Class: errcode.Invalid,
		Cause: "A patch of a composition requires or sets a field that does not exist, or sets a value of another type than the field has.",
		Fix:   "Correct the path, add the field to the schema of the XRD, or convert the value with a transform.",
	}
	ErrIneffectivePath = errcode.Code{
		Name: "IneffectivePath", Class: errcode.Invalid,
		Cause: "A composition reads a field that does not exist, so that a patch never does anything.",
		Fix:   "Correct the path, or add the field to the schema of the XRD.",
	}
	ErrInvalidTemplate = errcode.Code{
		Name: "InvalidTemplate", Class: errcode.Invalid,
		Cause: "A template of function-go-templating has a mistake in its syntax.",
		Fix:   "Correct the template in the named line.",
	}
)

// Knowledge determines what an unknown kind means.
type Knowledge int

// Kinds of knowledge.
const (
	// Closed means that there are no other kinds.
	Closed Knowledge = iota
	// Open means that users can install packages on which the known ones do not depend. A kind of a group that none of the
	// known packages has is a warning.
	Open
	// Partial means that other packages, which are not known, can define kinds. Only kinds that no package can define are
	// reported.
	Partial
)

// Validation has the kinds and the functions that are known, and the findings about resources.
type Validation struct {
	// Schemas are those of the known kinds.
	Schemas crdvalidation.Schemas
	Kinds   Knowledge
	// AllowUnknown reports unknown kinds and functions as warnings.
	AllowUnknown bool
	// AnyFunction means that other packages, which are not known, can provide functions.
	AnyFunction bool
	Findings    []xpkg.Finding

	functions []function
	// invalid, unchecked and unknown are numbers of resources.
	invalid, unchecked, unknown int
}

// New returns a validation that knows the kinds of Kubernetes and of the package API.
func New() (*Validation, error) {
	v := &Validation{}
	v.Schemas.AddBuiltin()
	own, err := crds.Packages()
	if err != nil {
		return nil, err
	}
	for _, d := range own {
		v.Schemas.AddLater(d.Name, func() error {
			text, err := json.Marshal(d)
			if err != nil {
				return err
			}
			return v.Schemas.AddCRD(text, "xpkg")
		})
	}
	return v, nil
}

// Resource is a document, or an item of a List.
type Resource struct {
	doc xpkg.Document
	// path is the path of an item of a List, or "".
	path   string
	Kind   schema.GroupVersionKind
	Name   string
	Object map[string]any
}

// AddPackage adds the kinds that a package defines. Source is its reference.
func (v *Validation) AddPackage(p *xpkg.Package, source string) {
	for _, o := range p.Objects {
		if !isDefinition(o.GVK) {
			continue
		}
		v.Schemas.AddLater(o.Name, func() error {
			text, err := o.JSON()
			if err == nil {
				err = v.addDefinition(o.GVK, text, source)
			}
			if err != nil {
				return ErrInvalidResource.New(err, "cannot read %s %s of %s", o.GVK.Kind, o.Name, source)
			}
			return nil
		})
	}
}

var crdKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

func isDefinition(kind schema.GroupVersionKind) bool {
	return slices.Contains([]schema.GroupKind{
		crdKind, DefinitionKind, {Group: DefinitionKind.Group, Kind: "ManagedResourceDefinition"},
	}, kind.GroupKind())
}

// addDefinition adds the schemas of a CRD, an XRD or an MRD.
func (v *Validation) addDefinition(kind schema.GroupVersionKind, text []byte, source string) error {
	if kind.GroupKind() == crdKind {
		return v.Schemas.AddCRD(text, source)
	}
	return v.Schemas.AddXRD(text, source)
}

// Read returns the resources of documents, and adds the schemas of CRDs and XRDs among them.
func (v *Validation) Read(docs []xpkg.Document) []Resource {
	var out []Resource
	for _, doc := range docs {
		var object map[string]any
		if err := doc.Decode(&object); err != nil {
			found := xpkg.Findings(err)
			if found == nil {
				found = []xpkg.Finding{doc.Finding(ErrInvalidResource, 0, err.Error())}
			}
			v.Findings = append(v.Findings, found...)
			continue
		}
		out = append(out, v.resources(doc, "", object)...)
	}
	return out
}

// resources returns the resource in an object, or those in a List.
func (v *Validation) resources(doc xpkg.Document, path string, object map[string]any) []Resource {
	gvk := KindOf(object)
	items, isList := object["items"].([]any)
	if isList && strings.HasSuffix(gvk.Kind, "List") {
		var out []Resource
		for i, item := range items {
			if o, ok := item.(map[string]any); ok {
				out = append(out, v.resources(doc, fmt.Sprintf("%sitems[%d].", path, i), o)...)
			}
		}
		return out
	}
	r := Resource{doc: doc, path: path, Kind: gvk, Object: object}
	r.Name, _ = Object(object["metadata"])["name"].(string)
	if text, err := doc.JSON(); err == nil && path == "" && isDefinition(r.Kind) {
		if err := v.addDefinition(r.Kind, text, doc.File); err != nil {
			v.report(r, ErrInvalidResource, "", err.Error())
		}
	}
	return []Resource{r}
}

// maxProblems limits the reported problems of one resource.
const maxProblems = 20

// Validate validates a resource.
func (v *Validation) Validate(ctx context.Context, r Resource) {
	before := len(v.Findings)
	switch {
	case r.Kind.Kind == "" || r.Kind.Version == "":
		v.report(r, ErrInvalidResource, "", "apiVersion and kind are required")
	case r.Kind.GroupKind() == CompositionKind:
		v.validateComposition(r)
	case r.Kind.GroupKind() == crdKind && r.path == "":
		text, _ := r.doc.JSON() // was read before
		v.reportAll(r, crdvalidation.ValidateCRD(text))
	case v.Schemas.Has(r.Kind):
		v.reportAll(r, v.Schemas.Validate(ctx, r.Object))
	case !v.requireKind(r, "apiVersion", r.Kind):
		v.unknown++
		return
	default:
		v.unchecked++
		return
	}
	if slices.ContainsFunc(v.Findings[before:], func(f xpkg.Finding) bool { return f.Severity == xpkg.Error }) {
		v.invalid++
	}
}

func (v *Validation) reportAll(r Resource, problems []check.Problem) {
	for i, p := range problems {
		if i == maxProblems {
			v.report(r, ErrInvalidResource, "", fmt.Sprintf("%d more problems", len(problems)-maxProblems))
			return
		}
		v.report(r, ErrInvalidResource, p.Path, p.Message)
	}
}

// report adds a finding about a field of a resource.
func (v *Validation) report(r Resource, code errcode.Code, path, message string) {
	path = r.path + path
	if path != "" && code.Class == errcode.Invalid && code.Name != ErrKindWithoutSchema.Name {
		message = strings.TrimSuffix(path, ".") + ": " + message
	}
	f := r.doc.Finding(code, r.doc.FieldLine(path), message)
	f.Kind, f.Name = r.Kind.Kind, r.Name
	switch code.Name {
	case ErrFunctionName.Name, ErrIneffectivePath.Name:
		f.Severity = xpkg.Warning
	case ErrFunctionUnknown.Name:
		if v.AllowUnknown || v.Kinds == Partial {
			f.Severity = xpkg.Warning
		}
	case ErrKindWithoutSchema.Name:
		if v.AllowUnknown {
			f.Severity = xpkg.Warning
		}
	}
	v.Findings = append(v.Findings, f)
}

// requireKind reports a kind that does not exist. It returns false if it did.
func (v *Validation) requireKind(r Resource, path string, kind schema.GroupVersionKind) bool {
	builtin := v.Schemas.BuiltinGroup(kind.Group)
	if v.Schemas.Has(kind) || !builtin && (v.Kinds == Partial || isServed(kind.Group)) {
		return true
	}
	v.report(r, ErrKindWithoutSchema, path, v.unknownKind(kind, builtin))
	if v.Kinds == Open && !v.Schemas.Group(kind.Group) {
		v.warn()
	}
	return false
}

// warn makes the last finding a warning.
func (v *Validation) warn() { v.Findings[len(v.Findings)-1].Severity = xpkg.Warning }

// unknownKind describes a kind without a schema, and the kinds that it might stand for.
func (v *Validation) unknownKind(kind schema.GroupVersionKind, builtin bool) string {
	text := fmt.Sprintf("no package defines %s of %s", kind.Kind, kind.GroupVersion())
	if builtin {
		text = fmt.Sprintf("Kubernetes has no kind %s of %s", kind.Kind, kind.GroupVersion())
	}
	similar := v.Schemas.Similar(kind)
	if len(similar) == 0 {
		return text
	}
	var names []string
	for _, k := range similar[:min(3, len(similar))] {
		names = append(names, fmt.Sprintf("%s of %s (%s)", k.Kind, k.GroupVersion(), v.Schemas.Source(k)))
	}
	return text + "; similar: " + strings.Join(names, ", ")
}

// isServed reports whether a group belongs to Kubernetes or to Crossplane itself, and has kinds without schemas.
func isServed(group string) bool {
	return strings.HasSuffix(group, ".k8s.io") || slices.Contains(
		[]string{"apiextensions.crossplane.io", "meta.pkg.crossplane.io", "ops.crossplane.io", "protection.crossplane.io"},
		group,
	)
}

// Summary counts the resources: "5 resources: 3 valid, 1 not valid, 1 of Crossplane itself not checked".
func (v *Validation) Summary(all int) string {
	parts := []string{fmt.Sprintf("%d valid", max(0, all-v.invalid-v.unchecked-v.unknown))}
	for _, part := range []struct {
		number int
		text   string
	}{
		{v.invalid, "not valid"}, {v.unknown, "of unknown kinds"},
		{v.unchecked, "of Crossplane itself or of an add-on of Kubernetes not checked"},
	} {
		if part.number > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.number, part.text))
		}
	}
	return wording.Count(all, "resource") + ": " + strings.Join(parts, ", ")
}

// KindOf returns the kind of an object with apiVersion and kind.
func KindOf(o map[string]any) schema.GroupVersionKind {
	apiVersion, _ := o["apiVersion"].(string)
	kind, _ := o["kind"].(string)
	return schema.FromAPIVersionAndKind(apiVersion, kind)
}

// Object returns a JSON object, or nil for any other value.
func Object(value any) map[string]any {
	o, _ := value.(map[string]any)
	return o
}

// Copy returns a resource that a validation can change.
func (r Resource) Copy() Resource {
	r.Object = runtime.DeepCopyJSON(r.Object)
	return r
}

// Finding returns a finding about the whole resource, which is an error.
func (r Resource) Finding(code errcode.Code, message string) xpkg.Finding {
	f := r.doc.Finding(code, r.doc.FieldLine(r.path), message)
	f.Kind, f.Name = r.Kind.Kind, r.Name
	return f
}

// ValidateComposed validates a resource that an example composes. A missing required field is a warning, because a
// composition can set it once other resources exist.
func (v *Validation) ValidateComposed(ctx context.Context, example Resource, object map[string]any) {
	kind := KindOf(object)
	if !v.Schemas.Has(kind) {
		return // reported in the composition, or another package defines the kind
	}
	name, _ := Object(object["metadata"])["name"].(string)
	for _, p := range v.Schemas.Validate(ctx, runtime.DeepCopyJSON(object)) {
		f := example.Finding(ErrInvalidResource, strings.TrimSuffix(
			fmt.Sprintf("composes %s %s: %s: %s", kind.Kind, name, p.Path, p.Message), ": ",
		))
		if strings.Contains(p.Message, "Required value") || strings.Contains(p.Message, "is a required parameter") {
			f.Severity = xpkg.Warning
		}
		v.Findings = append(v.Findings, f)
	}
}
