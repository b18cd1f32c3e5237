package firstgen

import (
	"cmp"
	"encoding/base64"
	"strings"
)

// A DocumentationFile is a file of the extensions manifest of a converted package.
type DocumentationFile struct {
	// Layer is the annotation of its layer, such as readme.
	Layer string
	// Path is the path in the layer, which starts with the name of the layer.
	Path string
	Data []byte
}

// Documentation returns the documentation of the package for people, as files of the extensions manifest: the readme,
// the icons, a page for each kind, and the UI schemas. The files of a layer are consecutive.
func (p *Package) Documentation() []DocumentationFile {
	var out []DocumentationFile
	add := func(layer, path, text string) {
		if strings.TrimSpace(text) != "" {
			out = append(out, DocumentationFile{layer, layer + "/" + path, []byte(text)})
		}
	}
	add("readme", "readme.md", cmp.Or(p.App.Readme, p.App.Overview, p.App.OverviewShort))
	for _, i := range p.Icons[:min(1, len(p.Icons))] {
		out = append(out, DocumentationFile{"icons", "icons/icon" + i.extension(), i.Data})
	}
	for _, r := range p.Resources {
		if icon := r.icon(); icon != nil {
			out = append(out, DocumentationFile{"icons", "icons/" + r.CRD.Name + icon.extension(), icon.Data})
		}
	}
	for _, r := range p.Resources {
		add("docs", r.CRD.Name+".md", r.page())
	}
	add("ui-schemas", "package.yaml", p.UISchema)
	for _, r := range p.Resources {
		add("ui-schemas", r.CRD.Name+".yaml", r.CRD.Annotations[AnnotationUISchema])
	}
	return out
}

// icon returns the icon of a kind: of a file, or of the annotation that a build wrote. It returns nil if the kind has
// none.
func (r Resource) icon() *Icon {
	if r.Icon != nil {
		return r.Icon
	}
	mediaType, data, ok := strings.Cut(strings.TrimPrefix(r.CRD.Annotations[AnnotationIcon], "data:"), ";base64,")
	decoded, err := base64.StdEncoding.DecodeString(data)
	icon := Icon{mediaType, decoded}
	if !ok || err != nil || len(decoded) > MaxIconBytes || icon.extension() == "" || !isImage(icon.extension(), decoded) {
		return nil
	}
	return &icon
}

// page returns the documentation of a kind, or an empty text if its package has none. The annotations have the text of
// the files, and the one that a build wrote.
func (r Resource) page() string {
	a := r.CRD.Annotations
	body := cmp.Or(a[AnnotationResourceReadme], a[AnnotationResourceOverview], a[AnnotationResourceOverviewShort])
	group := cmp.Or(a[AnnotationGroupReadme], a[AnnotationGroupOverview], a[AnnotationGroupOverviewShort])
	if strings.TrimSpace(body+group) == "" {
		return ""
	}
	title := cmp.Or(a[AnnotationResourceTitle], r.CRD.Spec.Names.Kind)
	return strings.TrimSpace("# "+title+"\n\n"+strings.TrimSpace(body)+"\n\n"+strings.TrimSpace(group)) + "\n"
}

// extension returns the file name extension of the format.
func (i Icon) extension() string {
	if n := i.preference(); n >= 0 {
		return iconFormats[n]
	}
	return ""
}
