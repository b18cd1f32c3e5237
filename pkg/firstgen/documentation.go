package firstgen

import (
	"cmp"
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
		if r.Icon != nil {
			out = append(out, DocumentationFile{"icons", "icons/" + r.CRD.Name + r.Icon.extension(), r.Icon.Data})
		}
	}
	for _, r := range p.Resources {
		add("docs", r.CRD.Name+".md", r.page())
	}
	add("ui-schemas", "package.yaml", p.UISchema)
	for _, r := range p.Resources {
		add("ui-schemas", r.CRD.Name+".yaml", r.UISchema)
	}
	return out
}

// page returns the documentation of a kind, or an empty text if its package has none.
func (r Resource) page() string {
	body := cmp.Or(r.Meta.Readme, r.Meta.Overview, r.Meta.Description, r.Meta.OverviewShort)
	group := cmp.Or(r.Group.Readme, r.Group.Overview, r.Group.Description, r.Group.OverviewShort)
	if strings.TrimSpace(body+group) == "" {
		return ""
	}
	title := cmp.Or(r.Meta.Title, r.CRD.Spec.Names.Kind)
	return strings.TrimSpace("# "+title+"\n\n"+strings.TrimSpace(body)+"\n\n"+strings.TrimSpace(group)) + "\n"
}

// extension returns the file name extension of the format.
func (i Icon) extension() string {
	if n := i.preference(); n >= 0 {
		return iconFormats[n]
	}
	return ""
}
