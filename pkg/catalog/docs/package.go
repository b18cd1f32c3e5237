package docs

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	kjson "sigs.k8s.io/json"

	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/crd"
)

// iconAnnotations are the annotations with the icon of a package as a data URI. The first one with a valid icon counts.
var iconAnnotations = []string{xpkg.AnnotationIcon, "meta.crossplane.io/iconURI"}

// FromPackage returns the documentation that is in a package itself: the schemas, the Compositions, and readme and icon
// of its annotations. The error is the error of reading an object.
func FromPackage(pkg *xpkg.Package) (Pack, error) {
	p := Pack{Readme: pkg.Meta.Annotations[xpkg.AnnotationReadme], Icon: icon(pkg.Meta.Annotations), Info: describe(pkg)}
	for _, o := range pkg.Objects {
		kinds, err := kindsOf(pkg.Meta.Kind, o)
		if err != nil {
			return Pack{}, err
		}
		p.Kinds = append(p.Kinds, kinds...)
		if o.GVK.Group == "apiextensions.crossplane.io" && o.GVK.Kind == "Composition" {
			c, err := compositionOf(o)
			if err != nil {
				return Pack{}, err
			}
			p.Compositions = append(p.Compositions, c)
		}
	}
	p.Kinds = sorted(p.Kinds)
	slices.SortStableFunc(p.Compositions, func(a, b Composition) int { return strings.Compare(a.Name, b.Name) })
	return p, nil
}

func describe(pkg *xpkg.Package) Info {
	row := catalog.Describe("", pkg.Meta)
	info := Info{
		Type: row.Type, Name: pkg.Meta.Name, Title: row.Title, Summary: row.Summary, Category: row.Category,
		Annotations: map[string]string{}, Objects: map[string]int{},
		SafeStart: pkg.Meta.Kind == xpkg.Provider && pkg.Meta.HasCapability(xpkg.CapabilitySafeStart),
	}
	for k, v := range pkg.Meta.Annotations {
		if k != xpkg.AnnotationReadme && !slices.Contains(iconAnnotations, k) {
			info.Annotations[k] = v
		}
	}
	for _, r := range pkg.Meta.PermissionRequests {
		info.Permissions = append(info.Permissions, rbac.Describe(r))
	}
	for _, o := range pkg.Objects {
		info.Objects[o.GVK.Kind]++
	}
	return info
}

// icon returns the icon of a data URI; nil for anything else.
func icon(annotations map[string]string) *Icon {
	for _, key := range iconAnnotations {
		uri, ok := strings.CutPrefix(annotations[key], "data:")
		mediaType, text, found := strings.Cut(uri, ";base64,")
		if !ok || !found {
			continue
		}
		if data, err := base64.StdEncoding.DecodeString(text); err == nil && strings.HasPrefix(mediaType, "image/") {
			return &Icon{mediaType, data}
		}
	}
	return nil
}

// kindsOf returns the kinds that an object defines, with their schemas.
func kindsOf(in xpkg.Kind, o xpkg.Object) ([]Kind, error) {
	definitions, err := o.Definitions()
	if err != nil || len(definitions) == 0 {
		return nil, err
	}
	text, err := o.JSON()
	if err != nil {
		return nil, err
	}
	var out []Kind
	composite := ""
	if i := slices.IndexFunc(definitions, func(d xpkg.Definition) bool { return !d.Claim }); i >= 0 &&
		o.GVK.Kind == "CompositeResourceDefinition" {
		composite = definitions[i].Kind
	}
	for _, d := range definitions {
		schema, err := schemaOf(o, d, text)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", o.GVK.Kind, o.Name, err)
		}
		out = append(out, Kind{
			Group: d.Group, Kind: d.Kind, Role: catalog.RoleOf(in, o, d), Composite: composite, CRD: schema,
		})
	}
	return out, nil
}

// schemaOf returns the CRD of a definition.
func schemaOf(o xpkg.Object, d xpkg.Definition, text []byte) ([]byte, error) {
	switch {
	case o.GVK.Kind == "CompositeResourceDefinition":
		return crdOfXRD(text, d)
	case o.GVK.Kind == "ManagedResourceDefinition":
		return withType(text)
	case o.GVK.Version == "v1beta1":
		return crd.FromV1Beta1(text)
	}
	return text, nil
}

// crdOfXRD returns the CRD of the composite resource, or of the claim, of an XRD.
func crdOfXRD(text []byte, d xpkg.Definition) ([]byte, error) {
	converted, err := crd.FromXRD(text)
	if err != nil {
		return nil, err
	}
	var object map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(converted, &object); err != nil {
		return nil, err
	}
	object["apiVersion"], object["kind"] = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
	object["metadata"] = map[string]any{"name": d.Plural + "." + d.Group}
	delete(object, "status")
	if spec, ok := object["spec"].(map[string]any); ok {
		spec["scope"] = d.Scope
		if d.Claim {
			spec["names"] = map[string]any{"kind": d.Kind, "plural": d.Plural, "singular": d.Singular}
		}
	}
	return json.Marshal(object)
}

// withType returns an MRD, whose spec is that of a CRD, as a CRD.
func withType(text []byte) ([]byte, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil {
		return nil, err
	}
	object["apiVersion"], object["kind"] = []byte(`"apiextensions.k8s.io/v1"`), []byte(`"CustomResourceDefinition"`)
	return json.Marshal(object)
}
