package web

import (
	"cmp"
	"encoding/json"
	"errors"
	"html/template"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/xpkg-dev/xpkg/internal/registry/web/fields"
	"github.com/xpkg-dev/xpkg/internal/registry/web/untrusted"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/catalog/docs"
	"github.com/xpkg-dev/xpkg/pkg/firstgen"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// maxDescription is the maximum size in bytes of the description of a page for search engines.
const maxDescription = 300

// kind returns a page below /k/: a kind in the newest version of its first provider.
func (h *Handler) kind(r *request) (*response, error) {
	if len(r.path) < 3 {
		return nil, ErrNotFound
	}
	row, err := firstProvider(r, r.path[1], r.path[2])
	if err != nil {
		return nil, err
	}
	at, err := releaseOf(r.ctx, r.view, row.Repository, "")
	if err != nil {
		return nil, err
	}
	at.base = kindURL(row.Group, row.Kind)
	return h.kindParts(r, at, row, r.path[3:])
}

// kindOf returns a page of a kind in a version of a package: path is GROUP/KIND[/VERSION].
func (h *Handler) kindOf(r *request, at release, path []string) (*response, error) {
	if len(path) < 2 {
		return nil, ErrNotFound
	}
	c, err := r.view.Content(r.ctx, at.Repository(), at.Tag)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(c.Kinds, func(k catalog.Kind) bool { return k.Group == path[0] && k.Kind == path[1] })
	if i < 0 {
		return nil, ErrNotFound
	}
	at.base = packageKindURL(at.Repository(), at.Tag, path[0], path[1])
	return h.kindParts(r, at, c.Kinds[i], path[2:])
}

// kindParts returns the page of a kind or of a part of it.
func (h *Handler) kindParts(r *request, at release, row catalog.Kind, path []string) (*response, error) {
	d, err := definitionOf(r, at, row)
	if err != nil {
		return nil, err
	}
	switch {
	case len(path) == 1 && path[0] == "crd.yaml":
		return d.yaml()
	case len(path) == 1 && path[0] == "icon":
		data, ok := untrusted.DataURI(d.crd.Annotations[firstgen.AnnotationIcon])
		if !ok {
			return nil, ErrNotFound
		}
		return iconResponse(data)
	case len(path) == 0:
		return h.kindPage(r, at, row, d, d.preferred(), "")
	}
	version := d.version(path[0])
	switch {
	case version == nil:
		return nil, ErrNotFound
	case len(path) == 1:
		return h.kindPage(r, at, row, d, version, "")
	case path[1] == "fields" && len(path) > 2:
		return h.kindPage(r, at, row, d, version, fieldPath(path[2:]))
	}
	return nil, ErrNotFound
}

// fieldPath returns the path of the field that segments of an address name.
func fieldPath(segments []string) string {
	var out strings.Builder
	for _, s := range segments {
		if s == "*" {
			out.WriteString(fields.AnyItem)
			continue
		}
		out.WriteString("." + s)
	}
	return out.String()
}

// A definition is the CRD of a kind.
type definition struct {
	docs.Kind
	crd apiextensionsv1.CustomResourceDefinition
}

func definitionOf(r *request, at release, row catalog.Kind) (*definition, error) {
	kind, err := r.view.Kind(r.ctx, at.Repository(), at.Tag, row.Group, row.Kind)
	if err != nil {
		return nil, err
	}
	d := &definition{Kind: kind}
	if err := json.Unmarshal(kind.CRD, &d.crd); err != nil {
		return nil, err
	}
	if len(d.crd.Spec.Versions) == 0 {
		return nil, ErrNotFound
	}
	return d, nil
}

// yaml returns the CRD as YAML.
func (d *definition) yaml() (*response, error) {
	text, err := xpkg.EncodeDocument(d.CRD)
	if err != nil {
		return nil, err
	}
	return &response{mediaType: "text/plain; charset=utf-8", body: text}, nil
}

// version returns a version of the CRD; nil if there is none.
func (d *definition) version(name string) *apiextensionsv1.CustomResourceDefinitionVersion {
	for i := range d.crd.Spec.Versions {
		if d.crd.Spec.Versions[i].Name == name {
			return &d.crd.Spec.Versions[i]
		}
	}
	return nil
}

// preferred returns the version that clients should use: the first served version in the order of Kubernetes.
func (d *definition) preferred() *apiextensionsv1.CustomResourceDefinitionVersion {
	served := d.sorted()
	for _, v := range served {
		if v.Served && !v.Deprecated {
			return v
		}
	}
	return served[0]
}

// versionSchema returns the schema of a version; nil if it has none.
func versionSchema(v *apiextensionsv1.CustomResourceDefinitionVersion) *apiextensionsv1.JSONSchemaProps {
	if v.Schema == nil {
		return nil
	}
	return v.Schema.OpenAPIV3Schema
}

type kindView struct {
	release
	Kind catalog.Kind
	// Base is the path of the kind, to which the API version is appended.
	Base string
	// APIVersion is the API version without the group.
	APIVersion string
	Versions   []apiVersion
	Deprecated bool
	Warning    string
	// Title, Overview, Readme and Category are those of the first generation; empty if there are none.
	Title, Category string
	Overview        string
	Readme          template.HTML
	GroupTitle      string
	// GroupURL is the page of the API group, if it exists.
	GroupURL    string
	HasIcon     bool
	Description string
	Storage     string
	Conversion  string
	Total       int
	Fields      []*node
	// Subtree is the path of the field whose fields are shown; empty for all fields.
	Subtree  string
	Parents  []link
	Rules    []fields.Rule
	Examples []exampleView
	// Composite is the kind of the composite resource of an XRD, with the Compositions for it; empty for other kinds.
	Composite    string
	Compositions []compositionRow
	Others       []provider
	Form         []formSection
	Columns      []string
	Command      []snippet
	PackageTag   string
	// NewestURL is the page of the kind in the newest version of its first provider, and SchemaURL its JSON schema of the
	// API version. They are empty if no newest version has them.
	NewestURL, SchemaURL string
}

// An apiVersion is an API version of a kind.
type apiVersion struct {
	Name                        string
	URL                         string
	Served, Storage, Deprecated bool
	Selected                    bool
	// Since is the version of the package that served it first; empty if it is not known.
	Since string
}

func (h *Handler) kindPage(
	r *request, at release, row catalog.Kind, d *definition, version *apiextensionsv1.CustomResourceDefinitionVersion,
	subtree string,
) (*response, error) {
	tree := fields.Tree(versionSchema(version))
	root := tree.Find(subtree)
	if root == nil {
		return nil, ErrNotFound
	}
	v := kindView{
		release: at, Kind: row, Base: at.base, APIVersion: version.Name, Deprecated: version.Deprecated, Total: root.Total,
		Subtree:     subtree,
		Description: root.Description, Rules: root.Rules, Conversion: conversionOf(&d.crd), PackageTag: at.Tag,
	}
	if version.DeprecationWarning != nil {
		v.Warning = *version.DeprecationWarning
	}
	since, err := r.view.Since(r.ctx, at.Repository(), at.Tag, row.Group, row.Kind, version.Name)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return nil, err
	}
	v.Fields = outline(root, outliner{
		base: at.base + "/" + segment(version.Name) + "/fields", since: since, first: firstTag(at),
	})
	v.Versions = apiVersions(at, row, d, version.Name)
	v.describe(h, r, d)
	if v.GroupURL, err = groupLink(r, at, row.Group); err != nil {
		return nil, err
	}
	if subtree != "" {
		v.Parents = parents(&tree, subtree, at.base+"/"+segment(version.Name))
		return h.page(r, "fields-page", page{Title: row.Kind + subtree, Body: v, Crumbs: kindCrumbs(v)})
	}
	if err := h.fillKind(r, at, &v, d, version); err != nil {
		return nil, err
	}
	return h.page(r, "kind", page{Title: row.Kind + " – " + row.Group + "/" +
		version.Name, Description: wording.FirstSentence(v.Description, maxDescription), Body: v,
		Crumbs: kindCrumbs(v)})
}

func kindCrumbs(v kindView) []link {
	crumbs := []link{{v.Repository(), packageURL(v.Repository(), tagUnlessNewest(v.release))}}
	if v.GroupURL != "" {
		crumbs = append(crumbs, link{v.Kind.Group, v.GroupURL})
	}
	if v.Subtree != "" {
		crumbs = append(crumbs, link{v.Kind.Kind, v.Base + "/" + segment(v.APIVersion)})
	}
	return crumbs
}

// tagUnlessNewest returns the tag for the path of a version; empty for the newest one.
func tagUnlessNewest(at release) string {
	if at.Newest {
		return ""
	}
	return at.Tag
}

// describe sets the parts of the view that come from the CRD itself.
func (v *kindView) describe(h *Handler, r *request, d *definition) {
	a := d.crd.Annotations
	v.Title, v.Category, v.GroupTitle = a[firstgen.AnnotationResourceTitle], a[firstgen.AnnotationResourceCategory],
		a[firstgen.AnnotationGroupTitle]
	v.Overview = cmp.Or(a[firstgen.AnnotationResourceOverviewShort], a[firstgen.AnnotationResourceOverview])
	if readme := a[firstgen.AnnotationResourceReadme]; readme != "" {
		v.Readme = h.markdown.Markdown(readme)
	}
	v.Form = parseForm(a[firstgen.AnnotationUISchema])
	if data, ok := untrusted.DataURI(a[firstgen.AnnotationIcon]); ok {
		v.HasIcon = r.shows(data)
	}
	for _, version := range d.crd.Spec.Versions {
		if version.Storage {
			v.Storage = version.Name
		}
		if version.Name == v.APIVersion {
			for _, c := range version.AdditionalPrinterColumns {
				v.Columns = append(v.Columns, c.Name)
			}
		}
	}
}

// fillKind sets the parts of the view that only the page of the whole kind shows.
func (h *Handler) fillKind(
	r *request, at release, v *kindView, d *definition, version *apiextensionsv1.CustomResourceDefinitionVersion,
) error {
	v.Examples = h.examples.of(
		r.ctx, exampleKey{at.Digest.String(), at.Repository(), at.Tag, v.Kind.Group, v.Kind.Kind, version.Name}, d,
	)
	var err error
	if v.Others, err = otherProviders(r, at, v.Kind, d); err != nil {
		return err
	}
	if err := v.linkNewest(r, at, d); err != nil {
		return err
	}
	if v.Composite = d.Composite; v.Composite != "" {
		if v.Compositions, err = compositionsOf(r, at, v.Kind.Group, v.Composite); err != nil {
			return err
		}
	}
	v.Command = []snippet{{
		Title: "On a control plane", Text: "kubectl explain " + v.Kind.Plural + "." + v.Kind.Group + " --recursive",
	}}
	return nil
}

// linkNewest sets the addresses of the kind and of its schema in the newest version of its first provider, as far as
// they exist.
func (v *kindView) linkNewest(r *request, at release, d *definition) error {
	row, err := firstProvider(r, v.Kind.Group, v.Kind.Kind)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	v.NewestURL = kindURL(row.Group, row.Kind)
	if !at.Newest || row.Repository != at.Repository() {
		newest, err := releaseOf(r.ctx, r.view, row.Repository, "")
		if err != nil {
			return err
		}
		if d, err = definitionOf(r, newest, row); err != nil {
			return err
		}
	}
	if d.version(v.APIVersion) != nil {
		v.SchemaURL = schemaURL(row.Group, row.Kind, v.APIVersion)
	}
	return nil
}

func conversionOf(crd *apiextensionsv1.CustomResourceDefinition) string {
	if crd.Spec.Conversion == nil || crd.Spec.Conversion.Strategy == "" ||
		crd.Spec.Conversion.Strategy == apiextensionsv1.NoneConverter {
		return ""
	}
	return string(crd.Spec.Conversion.Strategy)
}

// apiVersions returns the API versions of a kind in the order of Kubernetes.
func apiVersions(at release, row catalog.Kind, d *definition, selected string) []apiVersion {
	var out []apiVersion
	for _, v := range d.sorted() {
		out = append(out, apiVersion{
			Name: v.Name, URL: at.base + "/" + segment(v.Name), Served: v.Served, Storage: v.Storage, Deprecated: v.Deprecated,
			Selected: v.Name == selected, Since: servedSince(at, row, v.Name),
		})
	}
	return out
}

// servedSince returns the version of the package since which it has served an API version.
func servedSince(at release, row catalog.Kind, version string) string {
	since := ""
	for _, k := range at.History.Kinds {
		if k.Group != row.Group || k.Kind != row.Kind {
			continue
		}
		for _, i := range k.Intervals {
			if i.Version == version {
				since = i.Since
			}
		}
	}
	return since
}

// firstTag returns the first version of a package: fields that it has need no note.
func firstTag(at release) string {
	if len(at.History.Versions) == 0 {
		return ""
	}
	return at.History.Versions[0].Tag
}

// parents returns links to the fields above a field.
func parents(tree *fields.Field, path, base string) []link {
	var out []link
	for f := tree; f != nil && f.Path != path; {
		next := (*fields.Field)(nil)
		for i := range f.Children {
			if c := &f.Children[i]; c.Find(path) != nil {
				next = c
			}
		}
		if f.Path != "" {
			out = append(out, link{f.Name, base + "/fields" + fieldURL(f.Path)})
		}
		f = next
	}
	return out
}
