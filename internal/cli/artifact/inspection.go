package artifact

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/index"
)

// inspection is the result in the output formats JSON and YAML.
type inspection struct {
	// Source is the fully qualified reference with its digest, or the path.
	Source string     `json:"source"`
	Digest oci.Digest `json:"digest"`
	// Index are the entries of the index, if the package has one.
	Index    []manifestEntry `json:"index,omitempty"`
	Manifest manifestView    `json:"manifest"`
	Content  contentView     `json:"content"`
}

type manifestEntry struct {
	Platform    string            `json:"platform,omitempty"`
	Digest      oci.Digest        `json:"digest"`
	MediaType   oci.MediaType     `json:"mediaType"`
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// manifestView is the image of the package.
type manifestView struct {
	Digest      oci.Digest        `json:"digest"`
	MediaType   oci.MediaType     `json:"mediaType"`
	Platform    string            `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Layers      []layerView       `json:"layers"`
}

type layerView struct {
	Digest    oci.Digest    `json:"digest"`
	MediaType oci.MediaType `json:"mediaType"`
	Size      int64         `json:"size"`
	// Annotation is the annotation of the specification: "base" for the package itself.
	Annotation string `json:"annotation,omitempty"`
}

// indexState is the state of the index layer of a package.
type indexState string

const (
	indexAbsent      indexState = "absent"
	indexProven      indexState = "proven"
	indexUnproven    indexState = "unproven"
	indexContradicts indexState = "contradicts"
)

// Sources of the content.
const (
	fromYAML  = "package.yaml"
	fromIndex = "index"
)

// contentView is the content of package.yaml.
type contentView struct {
	// From is "package.yaml", or "index" for the index layer.
	From       string     `json:"from"`
	IndexLayer indexState `json:"indexLayer"`
	// Size is the size of package.yaml in bytes; 0 if only the index was read.
	Size int64 `json:"size,omitempty"`
	// Problems are the reasons why the package is refused.
	Problems    []xpkg.Finding    `json:"problems,omitempty"`
	APIVersion  string            `json:"apiVersion"`
	Kind        xpkg.Kind         `json:"kind"`
	Name        string            `json:"name"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// Presentation describes the package to users.
	Presentation       xpkg.Presentation   `json:"presentation,omitzero"`
	Crossplane         string              `json:"crossplane,omitempty"`
	Capabilities       []string            `json:"capabilities,omitempty"`
	ControllerImage    string              `json:"controllerImage,omitempty"`
	PermissionRequests []rbacv1.PolicyRule `json:"permissionRequests,omitempty"`
	Dependencies       []dependencyView    `json:"dependencies,omitempty"`
	// OptionalDependencies are the optional dependencies.
	OptionalDependencies []dependencyView `json:"optionalDependencies,omitempty"`
	// RequiredKinds are the kinds of custom resources that the package requires from any other package.
	RequiredKinds []dependency.KindRef `json:"requiredKinds,omitempty"`
	Objects       []objectView         `json:"objects"`
}

type dependencyView struct {
	Package    string `json:"package"`
	Kind       string `json:"kind,omitempty"`
	Constraint string `json:"constraint,omitempty"`
}

type objectView struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	// Size is the size of the object as JSON, in bytes.
	Size int64 `json:"size"`
}

func describeIndex(d *oci.Document) []manifestEntry {
	var entries []manifestEntry
	for _, m := range d.Manifests {
		e := manifestEntry{Digest: m.Digest, MediaType: m.MediaType, Size: m.Size, Annotations: m.Annotations}
		if m.Platform != nil {
			e.Platform = m.Platform.String()
		}
		entries = append(entries, e)
	}
	return entries
}

func describeManifest(m oci.Manifest) manifestView {
	v := manifestView{Digest: m.Digest, MediaType: m.MediaType, Annotations: m.Annotations, Layers: []layerView{}}
	if m.Platform != nil {
		v.Platform = m.Platform.String()
	}
	for _, l := range m.Layers {
		v.Layers = append(v.Layers, layerView{
			Digest: l.Digest, MediaType: l.MediaType, Size: l.Size, Annotation: l.Annotations[oci.AnnotationKey],
		})
	}
	return v
}

func describeContent(pkg *xpkg.Package, index *index.Index, from string, state indexState) contentView {
	m := pkg.Meta
	v := contentView{
		From: from, IndexLayer: state, APIVersion: m.APIVersion, Kind: m.Kind, Name: m.Name, Labels: m.Labels,
		Annotations: m.Annotations,
		Crossplane:  m.Crossplane, Capabilities: m.Capabilities, ControllerImage: m.ControllerImage,
		PermissionRequests: m.PermissionRequests, Objects: []objectView{},
	}
	v.Presentation = m.Presentation()
	v.Dependencies, v.OptionalDependencies = dependencyViews(m.DependsOn), dependencyViews(m.Optional)
	v.RequiredKinds = m.Kinds
	for _, o := range index.Objects {
		v.Objects = append(v.Objects, objectView{o.GVK.GroupVersion().String(), o.GVK.Kind, o.Name, o.Length})
	}
	return v
}

func dependencyViews(all []dependency.Dependency) []dependencyView {
	var out []dependencyView
	for _, d := range all {
		out = append(out, dependencyView{d.Package, d.Kind, d.Constraint})
	}
	return out
}
