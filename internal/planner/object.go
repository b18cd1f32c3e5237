package planner

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	kjson "sigs.k8s.io/json"

	"github.com/xpkg-dev/xpkg/apis/crds"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/revision"
)

// Wanted returns the package that the plan writes. It fails for an uninstall, and if the object
// does not match the plan.
func (p *Plan) Wanted() (v1.Package, error) {
	out := v1.NewPackage(p.Package.Kind)
	if out == nil {
		return nil, fmt.Errorf("%q is not a kind of package", p.Package.Kind)
	}
	kind := out.GetObjectKind().GroupVersionKind()
	strict, err := kjson.UnmarshalStrict(p.Package.Object, out)
	if err := errors.Join(append(strict, err)...); err != nil {
		return nil, fmt.Errorf("the object to write: %w", err)
	}
	if out.GetObjectKind().GroupVersionKind() != kind || out.GetName() != p.Package.Name {
		return nil, fmt.Errorf("the object to write is not %s %s", p.Package.Kind, p.Package.Name)
	}
	return out, nil
}

// written returns the fields of a package that users write, with the defaults of the API server.
func written(p v1.Package) (json.RawMessage, error) {
	raw, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	var o map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &o); err != nil {
		return nil, err
	}
	meta := map[string]any{"name": p.GetName()}
	if len(p.GetLabels()) > 0 {
		meta["labels"] = p.GetLabels()
	}
	// The transaction that has written a package is no matter of a plan.
	annotations := maps.Clone(p.GetAnnotations())
	delete(annotations, revision.AnnotationTransaction)
	if len(annotations) > 0 {
		meta["annotations"] = annotations
	}
	out := map[string]any{
		"apiVersion": v1.GroupVersion.String(), "kind": p.PackageKind(), "metadata": meta, "spec": o["spec"],
	}
	s, err := schemaOf(p.PackageKind())
	if err != nil {
		return nil, err
	}
	defaulting.Default(out, s)
	delete(out, "status") // It has a default, but only the manager writes it.
	return json.Marshal(out)
}

// withDefaults returns p with the defaults of the API server.
func withDefaults(p v1.Package) (v1.Package, error) {
	raw, err := written(p)
	if err != nil {
		return nil, err
	}
	out := p.DeepCopyObject().(v1.Package)
	return out, json.Unmarshal(raw, out)
}

// specOf returns the spec of a package as JSON, with its defaults.
func specOf(p v1.Package) (json.RawMessage, error) {
	raw, err := written(p)
	if err != nil {
		return nil, err
	}
	return specIn(raw), nil
}

// specIn returns the spec in the JSON of an object, or nil.
func specIn(object json.RawMessage) json.RawMessage {
	var o struct {
		Spec json.RawMessage `json:"spec"`
	}
	if json.Unmarshal(object, &o) != nil {
		return nil
	}
	return o.Spec
}

// schemaOf returns the schema of a kind of package from its CRD, which defines the defaults. It must not be changed.
func schemaOf(kind string) (*schema.Structural, error) {
	all, err := packageSchemas()
	if err != nil {
		return nil, err
	}
	if s, ok := all[kind]; ok {
		return s, nil
	}
	return nil, fmt.Errorf("%q is not a kind of package", kind)
}

// packageSchemas returns the schemas of the kinds of the package API. It parses the embedded CRDs once, because a plan
// of several packages needs the schemas for each of them.
var packageSchemas = sync.OnceValues(func() (map[string]*schema.Structural, error) {
	definitions, err := crds.Packages()
	if err != nil {
		return nil, err
	}
	out := map[string]*schema.Structural{}
	for _, crd := range definitions {
		for _, version := range crd.Spec.Versions {
			if version.Name != v1.GroupVersion.Version {
				continue
			}
			var s apiextensions.JSONSchemaProps
			if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
				version.Schema.OpenAPIV3Schema, &s, nil,
			); err != nil {
				return nil, err
			}
			if out[crd.Spec.Names.Kind], err = schema.NewStructural(&s); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
})
