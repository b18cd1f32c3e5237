package project

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	kjson "sigs.k8s.io/json"

	"github.com/xpkg-dev/xpkg/internal/spelling"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/version"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/typed"
)

const (
	kind = "Project"

	crossplaneV1Alpha1 = "dev.crossplane.io/v1alpha1"
	upboundV1Alpha1    = "meta.dev.upbound.io/v1alpha1"
	upboundV2Alpha1    = "meta.dev.upbound.io/v2alpha1"

	// defaultCrossplane is the constraint of Projects for Crossplane 2.
	defaultCrossplane = ">=v2.0.0-rc.0"
)

// additionalPrefix is the prefix of the keys of spec.additionalMetadata.
const additionalPrefix = "meta.upbound.io/"

// otherName is what the fields of one group are in the other.
var otherName = map[string]string{
	"dependsOn": "dependencies", "apiDependencies": "dependencies", "imageConfig": "imageConfigs",
	"dependencies": "dependsOn", "imageConfigs": "imageConfig",
}

// Read reads the text of a file with a Project. The Project is as complete as possible, and nil if the file has no
// Project of a known version. The findings have the severity Error; a policy decides which are errors.
func Read(text []byte, file string, limits xpkg.Limits) (*Project, []xpkg.Finding) {
	docs, err := xpkg.Split(text, file, limits)
	if err != nil {
		return nil, xpkg.Findings(err)
	}
	if len(docs) != 1 {
		message := fmt.Sprintf("the file has %d documents; a Project is one", len(docs))
		return nil, []xpkg.Finding{
			{Code: xpkg.ErrMalformedMeta, Severity: xpkg.Error, Message: message, Fix: xpkg.ErrMalformedMeta.Fix, File: file},
		}
	}
	json, err := docs[0].JSON()
	if err != nil {
		return nil, xpkg.Findings(err)
	}
	r := &reader{p: &Project{doc: docs[0]}, json: json}
	known := r.read()
	xpkg.SortFindings(r.findings)
	if !known {
		return nil, r.findings
	}
	return r.p, r.findings
}

// reader reads one Project, and continues after a fault.
type reader struct {
	p        *Project
	json     []byte
	findings []xpkg.Finding
}

// header is what all versions have in common.
type header struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Name string `json:"name"`
	} `json:"metadata"`
}

// read reads the Project. It returns false for an unknown version.
func (r *reader) read() bool {
	var h header
	_ = kjson.UnmarshalCaseSensitivePreserveInts(r.json, &h) // The reader of the version reports wrong types.
	r.p.Name = h.Metadata.Name
	r.p.Paths = Paths{APIs: "apis", Functions: "functions", Examples: "examples", Tests: "tests"}
	c := &r.p.meta
	c.APIVersion, c.Kind, c.renamed = "meta.pkg.crossplane.io/v1", string(xpkg.Configuration), map[string]string{}
	known := h.Kind == kind
	switch version := h.APIVersion; {
	case known && version == crossplaneV1Alpha1:
		r.p.Paths.Operations, r.p.Paths.Schemas = "operations", "schemas"
		r.crossplane(c)
	case known && version == upboundV1Alpha1:
		r.upboundV1(c)
	case known && version == upboundV2Alpha1:
		r.p.Paths.Operations = "operations"
		r.upboundV2(c)
	default:
		r.fault(
			xpkg.ErrUnsupportedMeta, "apiVersion", "%.100q of %.100q is no known Project; the versions are %s, %s and %s",
			h.Kind, h.APIVersion, crossplaneV1Alpha1, upboundV1Alpha1, upboundV2Alpha1,
		)
		return false
	}
	if c.Spec.Crossplane == nil && h.APIVersion != upboundV1Alpha1 {
		c.Spec.Crossplane = &crossplane{Version: defaultCrossplane}
	}
	r.p.Meta = c.document(r.p.doc)
	return true
}

// decode decodes the JSON, and reports unknown fields and fields of the wrong type, which stay empty.
func decode[Spec any](r *reader, shape *typed.Shape) (metav1.ObjectMeta, *Spec) {
	found := typed.Check(r.json, shape)
	for _, f := range found {
		if f.Message != "" {
			r.fault(xpkg.ErrMalformedMeta, f.Path, "%.300s: %s", f.Path, f.Message)
			continue
		}
		hint, name := "", f.Path[strings.LastIndexByte(f.Path, '.')+1:]
		near := otherName[name]
		if !slices.Contains(f.Known, near) {
			near = spelling.Field(name, f.Known)
		}
		if near != "" {
			hint = fmt.Sprintf(", did you mean %q", near)
		}
		r.fault(xpkg.ErrUnknownMetaField, f.Path, "unknown field %.200q%s", f.Path, hint)
	}
	var w wire[Spec]
	if err := kjson.UnmarshalCaseSensitivePreserveInts(typed.Correct(r.json, found), &w); err != nil {
		r.fault(xpkg.ErrMalformedMeta, "", "the Project cannot be read: %.300s", err)
	}
	return w.Metadata, &w.Spec
}

func (r *reader) upboundV1(c *metadata) {
	meta, spec := decode[upboundSpec[upboundPathsV1]](r, upboundShapeV1)
	r.upbound(c, meta, &spec.common, spec.AdditionalMetadata, spec.APIDependencies)
	c.Spec.DependsOn = spec.DependsOn
	r.paths(wirePaths{
		APIs: spec.Paths.APIs, Functions: spec.Paths.Functions, Examples: spec.Paths.Examples, Tests: spec.Paths.Tests,
	})
}

func (r *reader) upboundV2(c *metadata) {
	meta, spec := decode[upboundSpec[upboundPathsV2]](r, upboundShapeV2)
	r.upbound(c, meta, &spec.common, spec.AdditionalMetadata, spec.APIDependencies)
	c.Spec.DependsOn = spec.DependsOn
	r.paths(wirePaths{
		APIs: spec.Paths.APIs, Functions: spec.Paths.Functions, Examples: spec.Paths.Examples, Tests: spec.Paths.Tests,
		Operations: spec.Paths.Operations,
	})
}

// upbound reads what the versions of meta.dev.upbound.io have in common.
func (r *reader) upbound(
	c *metadata, meta metav1.ObjectMeta, spec *common, additional map[string]string, schemas []wireSchemaDependency,
) {
	r.common(c, meta, spec)
	for _, key := range slices.Sorted(maps.Keys(additional)) {
		at := "spec.additionalMetadata[" + key + "]"
		if !strings.HasPrefix(key, additionalPrefix) {
			r.fault(xpkg.ErrMalformedMeta, at, "%.200s: the key does not start with %s", at, additionalPrefix)
			continue
		}
		r.annotate(c, key, additional[key], at)
	}
	for i, d := range schemas {
		at := fmt.Sprintf("spec.apiDependencies[%d]", i)
		if d.count() != 1 {
			r.fault(xpkg.ErrMalformedMeta, at, "%s needs exactly one of git, http and k8s", at)
		}
	}
}

func (r *reader) crossplane(c *metadata) {
	meta, spec := decode[crossplaneSpec](r, crossplaneShape)
	r.common(c, meta, &spec.common)
	r.paths(spec.Paths)
	for i, d := range spec.Dependencies {
		r.dependency(c, fmt.Sprintf("spec.dependencies[%d]", i), d)
	}
	r.functions(spec.Functions)
}

// dependency adds a dependency of dev.crossplane.io to the metadata, unless it only has schemas.
func (r *reader) dependency(c *metadata, at string, d wireDependency) {
	sources := d.count()
	if d.Xpkg != nil {
		sources++
	}
	switch {
	case sources != 1:
		r.fault(xpkg.ErrMalformedMeta, at, "%s needs exactly one of xpkg, git, http and k8s", at)
		return
	case !slices.Contains([]string{"xpkg", "crd", "k8s"}, d.Type):
		r.fault(xpkg.ErrMalformedMeta, at+".type", "%s.type is %.100q; the types are xpkg, crd and k8s", at, d.Type)
		return
	case (d.Type == "xpkg") != (d.Xpkg != nil):
		r.fault(xpkg.ErrMalformedMeta, at, "%s has the type %s; xpkg is for the type xpkg only, which needs it", at, d.Type)
		return
	case d.Xpkg == nil:
		return
	}
	x := d.Xpkg
	for _, f := range []struct{ name, value string }{
		{"apiVersion", x.APIVersion}, {"kind", x.Kind}, {"package", x.Package}, {"version", x.Version},
	} {
		if f.value == "" {
			r.fault(xpkg.ErrMalformedMeta, at+".xpkg", "%s.xpkg has no %s", at, f.name)
			return
		}
	}
	if shown := errcode.HideCredentials(x.Package); shown != x.Package {
		r.fault(
			xpkg.ErrMalformedMeta, at+".xpkg.package",
			"%s.xpkg.package is %.200q with credentials, which every user of the package could read", at, shown,
		)
		return
	}
	if x.APIOnly || !r.constraint(at+".xpkg.version", x.Version, true) {
		return
	}
	c.renamed[fmt.Sprintf("spec.dependsOn[%d]", len(c.Spec.DependsOn))] = at + ".xpkg"
	c.Spec.DependsOn = append(c.Spec.DependsOn, packageDependency{
		APIVersion: x.APIVersion, Kind: x.Kind, Package: x.Package, Version: x.Version,
	})
}

// constraint reports whether a constraint is valid.
func (r *reader) constraint(at, text string, digest bool) bool {
	err := version.CheckConstraint(text, digest)
	if err == nil {
		return true
	}
	r.fault(xpkg.ErrInvalidConstraint, at, "%s: %s", at, err)
	var wrong *version.ConstraintError
	if errors.As(err, &wrong) {
		r.findings[len(r.findings)-1].Excerpt = wrong.Caret()
	}
	return false
}

// common reads the fields of all versions.
func (r *reader) common(c *metadata, meta metav1.ObjectMeta, spec *common) {
	c.Metadata.Name, c.Metadata.Labels, c.Metadata.Annotations = meta.Name, meta.Labels, meta.Annotations
	for _, f := range []struct{ name, annotation, value string }{
		{"maintainer", xpkg.AnnotationMaintainer, spec.Maintainer},
		{"source", xpkg.AnnotationSource, spec.Source},
		{"license", xpkg.AnnotationLicense, spec.License},
		{"description", xpkg.AnnotationDescription, spec.Description},
		{"readme", xpkg.AnnotationReadme, spec.Readme},
	} {
		if f.value != "" {
			r.annotate(c, f.annotation, f.value, "spec."+f.name)
		}
	}
	if spec.Crossplane != nil && spec.Crossplane.Version != "" &&
		r.constraint("spec.crossplane.version", spec.Crossplane.Version, false) {
		c.Spec.Crossplane = spec.Crossplane
	}
	if r.p.Repository = spec.Repository; spec.Repository == "" {
		r.fault(xpkg.ErrMissingRepository, "spec", "the Project has no spec.repository")
	}
	if r.p.Architectures = spec.Architectures; spec.Architectures == nil {
		r.p.Architectures = []string{"amd64", "arm64"}
	} else if len(spec.Architectures) == 0 {
		r.fault(xpkg.ErrMalformedMeta, "spec.architectures", "spec.architectures is empty")
	}
}

func (r *reader) annotate(c *metadata, key, value, at string) {
	if c.Metadata.Annotations == nil {
		c.Metadata.Annotations = map[string]string{}
	}
	c.Metadata.Annotations[key] = value
	c.renamed[child("metadata.annotations", key)] = at
}

// paths sets the paths that are given and inside of the Project.
func (r *reader) paths(given wirePaths) {
	for _, f := range []struct {
		name, value string
		to          *string
	}{
		{"apis", given.APIs, &r.p.Paths.APIs},
		{"functions", given.Functions, &r.p.Paths.Functions},
		{"examples", given.Examples, &r.p.Paths.Examples},
		{"tests", given.Tests, &r.p.Paths.Tests},
		{"operations", given.Operations, &r.p.Paths.Operations},
		{"schemas", given.Schemas, &r.p.Paths.Schemas},
	} {
		if f.value != "" && r.inside("spec.paths."+f.name, f.value) {
			*f.to = path.Clean(f.value)
		}
	}
}

// inside reports whether a path is relative and inside of the Project.
func (r *reader) inside(at, value string) bool {
	if fs.ValidPath(path.Clean(value)) {
		return true
	}
	r.fault(xpkg.ErrMalformedMeta, at, "%s is %.200q, which is not a path inside of the Project", at, value)
	return false
}

// functions reads the declared functions.
func (r *reader) functions(list []wireFunction) {
	for i, w := range list {
		at := fmt.Sprintf("spec.functions[%d]", i)
		var f Function
		switch {
		case w.Source == "Directory" && w.Directory != nil && w.Tarball == nil:
			f.Name = w.Directory.Name
			f.Folder = path.Join(r.p.Paths.Functions, f.Name)
		case w.Source == "Tarball" && w.Tarball != nil && w.Directory == nil:
			f.Name = w.Tarball.Name
			if w.Tarball.PathPrefix == "" || !r.inside(at+".tarball.pathPrefix", w.Tarball.PathPrefix) {
				r.fault(xpkg.ErrMalformedMeta, at+".tarball", "%s.tarball needs a pathPrefix", at)
				continue
			}
			f.Tarball = path.Clean(w.Tarball.PathPrefix)
		default:
			r.fault(
				xpkg.ErrMalformedMeta, at, "%s needs the source Directory with directory, or Tarball with tarball", at,
			)
			continue
		}
		switch {
		case len(validation.IsDNS1123Subdomain(f.Name)) > 0:
			r.fault(xpkg.ErrMalformedMeta, at, "%s: the name %.100q is not a lower-case RFC 1123 name", at, f.Name)
		case slices.ContainsFunc(r.p.Declared, func(o Function) bool { return o.Name == f.Name }):
			r.fault(xpkg.ErrMalformedMeta, at, "%s: the name %q is already used", at, f.Name)
		default:
			r.p.Declared = append(r.p.Declared, f)
		}
	}
}

// fault records a problem with the field at a path.
func (r *reader) fault(code errcode.Code, at, format string, args ...any) {
	r.findings = append(r.findings, r.p.finding(code, at, fmt.Sprintf(format, args...)))
}
