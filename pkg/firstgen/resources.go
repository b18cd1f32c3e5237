package firstgen

import (
	"cmp"
	"encoding/json"
	"path"
	"reflect"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apimachinery/pkg/version"

	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/check"
	xpkgcrd "github.com/xpkg-dev/xpkg/pkg/xpkg/crd"
)

// crdKind is the kind of a CRD.
const crdKind = "CustomResourceDefinition"

// readResources returns the resources of the CRD files of the package, and of extra files from outside of the folder.
func (r *reader) readResources(files, extra []file, m *metadata, title string) []Resource {
	var all []Resource
	for _, f := range files {
		all = append(all, r.readCRDs(f, false)...)
	}
	for _, f := range extra {
		for _, res := range r.readCRDs(f, true) {
			res.File = m.folderOf(res.CRD.Spec.Group) + "/" + f.base()
			res.sources[0].file = res.File
			all = append(all, res)
		}
	}
	all = r.mergeVersions(all)
	slices.SortFunc(m.icons, func(a, b attached[Icon]) int {
		return cmp.Or(cmp.Compare(a.value.preference(), b.value.preference()), cmp.Compare(a.path, b.path))
	})
	m.used, m.preceded, m.reported = map[string]bool{}, map[string]string{}, map[string]bool{}
	for i := range all {
		res := &all[i]
		res.Group = combined(r, m, nearest(m, m.groups, res), res)
		res.Meta = combined(r, m, nearest(m, m.resources, res), res)
		res.Icon = r.iconOf(m, nearest(m, m.icons, res), res)
		res.UISchema = concatenated(nearest(m, m.uiSchemas, res))
		annotate(res, title)
		r.checkAnnotations(res)
	}
	r.reportUnused(m)
	return all
}

// folderOf returns the folder that contains the metadata of an API group: a folder with the name of the group, or the
// resources folder.
func (m *metadata) folderOf(group string) string {
	for _, a := range m.resources {
		if dir := path.Dir(a.path); path.Base(dir) == group {
			return dir
		}
	}
	return resourceDir
}

// readCRDs returns the CRDs of a file. Other objects in the file are errors, unless optional is set, and then ignored.
func (r *reader) readCRDs(f file, optional bool) []Resource {
	var out []Resource
	for _, d := range r.documents(f) {
		text, err := d.JSON()
		if err != nil {
			r.reportError(xpkg.ErrInvalidYAML, f.path, d.Line, err)
			continue
		}
		var header struct {
			APIVersion, Kind string
			Metadata         struct{ Name string }
		}
		if err := json.Unmarshal(text, &header); err != nil || header.Kind != crdKind {
			if !optional {
				r.report(xpkg.Error, xpkg.ErrWrongKind, f.path, d.Line, "the document is not a CustomResourceDefinition")
			}
			continue
		}
		crd, untyped, err := decodeCRD(header.APIVersion, text)
		if err != nil {
			if text, ok := r.textual(d, text, check.ErrInvalidCRD, crdType(header.APIVersion)); ok {
				crd, untyped, err = decodeCRD(header.APIVersion, text)
			} else {
				continue
			}
		}
		switch {
		case err != nil:
			r.report(xpkg.Error, check.ErrInvalidCRD, f.path, d.Line, "%v", err)
		case crd.Name != crd.Spec.Names.Plural+"."+crd.Spec.Group:
			r.report(
				xpkg.Error, check.ErrCRDName, f.path, d.Line, "the CRD is named %.260q, want %.260q", crd.Name,
				crd.Spec.Names.Plural+"."+crd.Spec.Group,
			)
		default:
			s := crdSource{file: f.path, doc: d}
			for _, v := range crd.Spec.Versions {
				s.versions = append(s.versions, v.Name)
			}
			if len(untyped) > 0 {
				r.report(
					xpkg.Warning, ErrUntypedSchema, f.path, d.Line,
					"CRD %s accepts any value, because its schema states no type: %.500s", crd.Name,
					shown(wording.Few(untyped, 5, ", ")),
				)
			}
			out = append(out, Resource{CRD: crd, File: f.path, sources: []crdSource{s}})
		}
	}
	return out
}

// crdType returns the Go type of a CRD.
func crdType(apiVersion string) reflect.Type {
	if apiVersion != apiextensionsv1.SchemeGroupVersion.String() {
		return reflect.TypeFor[apiextensionsv1beta1.CustomResourceDefinition]()
	}
	return reflect.TypeFor[apiextensionsv1.CustomResourceDefinition]()
}

// decodeCRD decodes the JSON of a CRD and converts v1beta1 to v1. It returns the fields for which the result accepts
// any value, and v1beta1 had no type.
func decodeCRD(
	apiVersion string, text []byte,
) (crd *apiextensionsv1.CustomResourceDefinition, untyped []string, err error) {
	if apiVersion != apiextensionsv1.SchemeGroupVersion.String() {
		if text, untyped, err = xpkgcrd.ConvertV1Beta1(text); err != nil {
			return nil, nil, err
		}
	}
	crd = &apiextensionsv1.CustomResourceDefinition{}
	if err := json.Unmarshal(text, crd); err != nil {
		return nil, nil, err
	}
	crd.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
	return crd, untyped, nil
}

// mergeVersions merges CRDs with the same name, because the format has a file for each version. The highest
// version is stored. The result is ordered by group and kind.
func (r *reader) mergeVersions(all []Resource) []Resource {
	slices.SortStableFunc(all, func(a, b Resource) int { return cmp.Or(compareNames(a, b), compareVersions(a, b)) })
	var out []Resource
	for _, res := range all {
		if len(out) == 0 || compareNames(out[len(out)-1], res) != 0 {
			out = append(out, res)
			continue
		}
		r.merge(&out[len(out)-1], res)
	}
	return out
}

func compareNames(a, b Resource) int {
	return cmp.Or(
		cmp.Compare(a.CRD.Spec.Group, b.CRD.Spec.Group), cmp.Compare(a.CRD.Spec.Names.Kind, b.CRD.Spec.Names.Kind),
		cmp.Compare(a.CRD.Name, b.CRD.Name),
	)
}

// compareVersions orders the CRD with the higher version first.
func compareVersions(a, b Resource) int {
	return version.CompareKubeAwareVersionStrings(highest(b), highest(a))
}

func highest(r Resource) string {
	names := make([]string, 0, len(r.CRD.Spec.Versions))
	for _, v := range r.CRD.Spec.Versions {
		names = append(names, v.Name)
	}
	if len(names) == 0 {
		return ""
	}
	return slices.MaxFunc(names, version.CompareKubeAwareVersionStrings)
}

// merge adds the versions of a CRD to another file's CRD of the same name, which has the higher version.
func (r *reader) merge(into *Resource, from Resource) {
	if into.CRD.Spec.Scope != from.CRD.Spec.Scope || !reflect.DeepEqual(into.CRD.Spec.Names, from.CRD.Spec.Names) {
		r.report(
			xpkg.Error, check.ErrInvalidCRD, from.File, from.sources[0].doc.Line,
			"CRD %s has different names or a different scope in %s", from.CRD.Name, shown(into.File),
		)
		return
	}
	into.sources = append(into.sources, from.sources...)
	for _, v := range from.CRD.Spec.Versions {
		i := slices.IndexFunc(
			into.CRD.Spec.Versions, func(w apiextensionsv1.CustomResourceDefinitionVersion) bool { return w.Name == v.Name },
		)
		switch {
		case i < 0:
			v.Storage = false
			into.CRD.Spec.Versions = append(into.CRD.Spec.Versions, v)
		case !reflect.DeepEqual(into.CRD.Spec.Versions[i].Schema, v.Schema):
			r.report(
				xpkg.Error, xpkg.ErrDuplicateObject, from.File, from.sources[0].doc.Line,
				"version %s of CRD %s has a different schema in %s", v.Name, from.CRD.Name, shown(into.File),
			)
		}
	}
	for k, v := range from.CRD.Annotations {
		if _, exists := into.CRD.Annotations[k]; !exists {
			if into.CRD.Annotations == nil {
				into.CRD.Annotations = map[string]string{}
			}
			into.CRD.Annotations[k] = v
		}
	}
}
