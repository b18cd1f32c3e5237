package xpkg

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	"github.com/xpkg-dev/xpkg/internal/spelling"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/version"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/yamldoc"
)

// Codes of findings about the metadata.
var (
	ErrUnsupportedMeta = errcode.Code{
		Name: "UnsupportedMeta", Class: errcode.Unsupported,
		Cause: "The metadata object has an unknown version or kind.",
		Fix:   "Use meta.pkg.crossplane.io/v1 with the kind Provider, Configuration or Function, a Project of dev.crossplane.io/v1alpha1, meta.dev.upbound.io/v1alpha1 or meta.dev.upbound.io/v2alpha1, or a newer xpkg.",
	}
	ErrMalformedMeta = errcode.Code{
		Name: "MalformedMeta", Class: errcode.Invalid,
		Cause: "A field of the metadata object is missing or has the wrong type, or fields contradict each other.",
		Fix:   "Correct the named field.",
	}
	ErrUnknownMetaField = errcode.Code{
		Name: "UnknownMetaField", Class: errcode.Invalid,
		Cause: "The metadata object has an unknown field, which has no effect.",
		Fix:   "Check the spelling, or remove the field.",
	}
	ErrMissingRepository = errcode.Code{
		Name: "MissingRepository", Class: errcode.Invalid,
		Cause: "The Project names no repository. It can be built, but other tools refuse it, and its functions have no names.",
		Fix:   "Set spec.repository to the repository of the package, such as ghcr.io/acme/fleets.",
	}
	ErrInvalidConstraint = errcode.Code{
		Name: "InvalidConstraint", Class: errcode.Invalid,
		Cause: "A version constraint does not follow the syntax of semantic version constraints.",
		Fix:   "Write a constraint such as \">=v1.2.0, <v2.0.0\", a version, or for a dependency a digest \"sha256:…\".",
	}
	ErrTooManyPermissions = errcode.Code{
		Name: "TooManyPermissions", Class: errcode.Limit,
		Cause: "The provider requests more permission rules than the limit.",
		Fix:   "Join rules, or raise the named limit.",
	}
	ErrInvalidPermissionRequest = errcode.Code{
		Name: "InvalidPermissionRequest", Class: errcode.Invalid,
		Cause: "A rule of permissionRequests is incomplete and requests nothing.",
		Fix:   "Set verbs, apiGroups and resources, or verbs and nonResourceURLs, in the rule. The core group is written \"\".",
	}
)

// Annotations that the metadata of a package should have (xpkg specification,
// Object Annotations).
const (
	AnnotationMaintainer  = "meta.crossplane.io/maintainer"
	AnnotationSource      = "meta.crossplane.io/source"
	AnnotationLicense     = "meta.crossplane.io/license"
	AnnotationDescription = "meta.crossplane.io/description"
	AnnotationReadme      = "meta.crossplane.io/readme"
)

// API groups of metadata objects: the current one, and the one of Package Format v2.
var metaGroups = []string{"meta.pkg.crossplane.io", "meta.pkg.ibm.crossplane.io"}

var metaVersions = []string{"v1", "v1beta1", "v1alpha1"}

func isMetaGroup(group string) bool { return slices.Contains(metaGroups, group) }

// wireMeta is a metadata object of any version. The versions have different fields, but a
// field has the same meaning in all of them.
type wireMeta struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metav1.ObjectMeta `json:"metadata"`
	Spec            wireSpec          `json:"spec"`
	// Status is written by tools that treat the object as a custom resource.
	Status json.RawMessage `json:"status"`
}

type wireSpec struct {
	// Crossplane is an object with a version, or in the oldest form a string with the
	// version.
	Crossplane         json.RawMessage     `json:"crossplane"`
	Capabilities       []string            `json:"capabilities"`
	DependsOn          []wireDependency    `json:"dependsOn"`
	Controller         wireController      `json:"controller"`
	PermissionRequests []rbacv1.PolicyRule `json:"permissionRequests"`
}

type wireController struct {
	Image              string              `json:"image"`
	PermissionRequests []rbacv1.PolicyRule `json:"permissionRequests"`
}

type wireDependency struct {
	APIVersion    string `json:"apiVersion"`
	Kind          string `json:"kind"`
	Package       string `json:"package"`
	Provider      string `json:"provider"`
	Configuration string `json:"configuration"`
	Function      string `json:"function"`
	Version       string `json:"version"`
	// CRD is a kind in place of a package (Package Format v1 and v2).
	CRD string `json:"crd"`
}

// metaReader converts a metadata object to a Meta, and continues after a fault.
type metaReader struct {
	doc    Document
	lines  yamldoc.Locator
	limits *Limits
	meta   Meta
	faults []*yamldoc.Fault
}

// readMeta reads a metadata object. The Meta is as complete as possible.
func readMeta(doc Document, h header, limits *Limits) (Meta, []*yamldoc.Fault) {
	r := &metaReader{doc: doc, lines: yamldoc.Locator{Raw: doc.Raw}, limits: limits}
	r.meta = Meta{APIVersion: h.apiVersion, Name: h.name, Raw: doc}
	gvk := h.gvk()
	kind := Kind(gvk.Kind)
	if _, known := allowed[kind]; !known || !slices.Contains(metaVersions, gvk.Version) {
		hint := ""
		if near := spelling.Field(gvk.Kind, []string{
			string(Provider), string(Configuration), string(Function),
		}); near != "" && !known {
			hint = fmt.Sprintf(", did you mean %q", near)
		}
		r.fault(ErrUnsupportedMeta, "", "metadata object %s of %s is not known%s", safe(gvk.Kind), safe(h.apiVersion), hint)
		return r.meta, r.faults
	}
	r.meta.Kind = kind
	var wire wireMeta
	if r.decode(&wire) {
		r.convert(&wire)
	}
	return r.meta, r.faults
}

// decode decodes the JSON. It reports unknown fields, and returns false for fields of the
// wrong type.
func (r *metaReader) decode(wire *wireMeta) bool {
	text, _ := r.doc.canonical() // it was read before
	unknown, err := kjson.UnmarshalStrict(text, wire)
	if err != nil {
		r.typeFault(err, "")
		return false
	}
	for _, u := range unknown {
		r.unknown(u, "")
	}
	return true
}

func (r *metaReader) convert(wire *wireMeta) {
	m, spec := &r.meta, &wire.Spec
	m.Labels, m.Annotations = wire.Metadata.Labels, wire.Metadata.Annotations
	m.ControllerImage = spec.Controller.Image
	m.Crossplane = r.crossplane(spec.Crossplane)
	m.Kinds = r.kinds("spec.dependsOn", spec.DependsOn)
	m.DependsOn = r.dependencies("spec.dependsOn", spec.DependsOn)
	m.Optional = r.optional(m.Annotations[AnnotationOptional])
	m.Capabilities = spec.Capabilities
	if m.Kind == Function && spec.Capabilities == nil {
		m.Capabilities = []string{CapabilityComposition}
	}
	r.requests("spec.permissionRequests", spec.PermissionRequests)
	r.requests("spec.controller.permissionRequests", spec.Controller.PermissionRequests)
	m.PermissionRequests = append(spec.PermissionRequests, spec.Controller.PermissionRequests...)
	if n := len(m.PermissionRequests); n > r.limits.PermissionRules {
		f := &yamldoc.Fault{Code: ErrTooManyPermissions, What: r.limits.Exceeded(&r.limits.PermissionRules)}
		r.faults = append(r.faults, f)
	}
}

// requests reports rules that are incomplete and therefore grant nothing.
func (r *metaReader) requests(path string, rules []rbacv1.PolicyRule) {
	for i, rule := range rules {
		var lacks []string
		for name, empty := range map[string]bool{
			"verbs": len(rule.Verbs) == 0,
			// URLs are not in any group.
			"apiGroups": len(rule.NonResourceURLs) == 0 && len(rule.APIGroups) == 0,
			"resources": len(rule.NonResourceURLs) == 0 && len(rule.Resources) == 0,
		} {
			if empty {
				lacks = append(lacks, name)
			}
		}
		if len(lacks) > 0 {
			slices.Sort(lacks)
			at := fmt.Sprintf("%s[%d]", path, i)
			r.fault(ErrInvalidPermissionRequest, at, "%s has no %s, so it requests nothing", at, strings.Join(lacks, " and no "))
		}
	}
}

// crossplane reads the constraint for Crossplane's version, in either form.
func (r *metaReader) crossplane(raw json.RawMessage) string {
	const path = "spec.crossplane"
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	var constraint string
	if raw[0] == '"' {
		_ = json.Unmarshal(raw, &constraint) // a JSON string decodes into a string
		return r.constraint(path, constraint, false)
	}
	var object struct {
		Version string `json:"version"`
	}
	unknown, err := kjson.UnmarshalStrict(raw, &object)
	if err != nil {
		r.typeFault(err, path)
		return ""
	}
	for _, u := range unknown {
		r.unknown(u, path)
	}
	if object.Version == "" {
		return ""
	}
	return r.constraint(path+".version", object.Version, false)
}

// dependencies returns the valid entries of a list at a path.
func (r *metaReader) dependencies(path string, list []wireDependency) []dependency.Dependency {
	var out []dependency.Dependency
	for i, d := range list {
		if d.CRD != "" {
			continue // See kinds.
		}
		if dep, ok := r.dependency(fmt.Sprintf("%s[%d]", path, i), d); ok {
			out = append(out, dep)
		}
	}
	return out
}

// kinds returns the valid kinds of a list at a path, each once.
func (r *metaReader) kinds(path string, list []wireDependency) []dependency.KindRef {
	var out []dependency.KindRef
	for i, d := range list {
		if d.CRD == "" {
			continue
		}
		at := fmt.Sprintf("%s[%d]", path, i)
		k, err := dependency.ParseKindRef(d.CRD)
		switch {
		case d != wireDependency{CRD: d.CRD}:
			r.fault(ErrMalformedMeta, at, "%s has other fields besides crd; the API version follows the kind after a slash", at)
		case err != nil:
			r.fault(ErrMalformedMeta, at+".crd", "%s.crd: %s", at, err)
		case !slices.Contains(out, k):
			out = append(out, k)
		}
	}
	return out
}

// dependency reads one dependency, in either form.
func (r *metaReader) dependency(path string, d wireDependency) (dependency.Dependency, bool) {
	dep := dependency.Dependency{APIVersion: d.APIVersion, Kind: d.Kind, Package: d.Package}
	named := 0
	if d.Package != "" {
		named++
	}
	for _, short := range []dependency.Dependency{
		{Kind: string(Provider), Package: d.Provider},
		{Kind: string(Configuration), Package: d.Configuration},
		{Kind: string(Function), Package: d.Function},
	} {
		if short.Package != "" {
			named++
			dep = short
			dep.APIVersion = "pkg.crossplane.io/v1"
		}
	}
	if named != 1 {
		r.fault(ErrMalformedMeta, path, "%s names %s; exactly one is required", path, wording.Count(named, "package"))
		return dep, false
	}
	if shown := errcode.HideCredentials(dep.Package); shown != dep.Package {
		r.fault(
			ErrMalformedMeta, path, "%s names %.200q with credentials, which every user of the package could read", path, shown,
		)
		return dep, false
	}
	dep.Constraint = r.constraint(path+".version", d.Version, true)
	return dep, dep.Constraint != ""
}

// constraint checks a constraint and returns "" if it is not valid.
func (r *metaReader) constraint(path, s string, digest bool) string {
	err := version.CheckConstraint(s, digest)
	if err == nil {
		return s
	}
	r.fault(ErrInvalidConstraint, path, "%s: %s", path, err)
	var wrong *version.ConstraintError
	if errors.As(err, &wrong) {
		r.faults[len(r.faults)-1].Excerpt = wrong.Caret()
	}
	return ""
}

// fault records a problem with the field at a path.
func (r *metaReader) fault(code errcode.Code, path, format string, args ...any) {
	r.faults = append(r.faults, &yamldoc.Fault{Code: code, Line: r.lines.Line(path), What: fmt.Sprintf(format, args...)})
}

// typeFault reports a field of the wrong type below a path.
func (r *metaReader) typeFault(err error, below string) {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		r.fault(ErrMalformedMeta, "", "the metadata object cannot be read: %s", yamldoc.Printable(err.Error()))
		return
	}
	path := join(below, wrong.Field)
	r.fault(ErrMalformedMeta, path, "%s is %s, want %s", path, jsonType(wrong.Value), goType(wrong.Type))
}

// unknown reports an unknown field.
func (r *metaReader) unknown(err error, below string) {
	path := err.Error()
	var field kjson.FieldError
	if errors.As(err, &field) {
		path = field.FieldPath()
	}
	path = join(below, path)
	text := fmt.Sprintf("unknown field %.200q", path)
	if hint := nearField(path); hint != "" {
		text += fmt.Sprintf(", did you mean %q", hint)
	}
	r.fault(ErrUnknownMetaField, path, "%s", text)
}
