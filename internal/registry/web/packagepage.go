package web

import (
	"context"
	"errors"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/registry/web/untrusted"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/firstgen"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// A release is one version of a package with the package.
type release struct {
	catalog.Package
	catalog.History
	catalog.Version
	// Newest reports that the version is the newest one.
	Newest bool
	// base is the path under which the version was requested: with or without a tag.
	base string
}

// Repository is the repository of the package.
func (r release) Repository() string { return r.Package.Repository }

// packagePart returns a page below /p/.
func (h *Handler) packagePart(r *request) (*response, error) {
	at, rest, err := findRelease(r.ctx, r.view, r.path[1:])
	if err != nil {
		return nil, err
	}
	switch {
	case len(rest) > 0 && rest[0] == kindPart:
		return h.kindOf(r, at, rest[1:])
	case len(rest) == 2 && rest[0] == compositionPart:
		return h.composition(r, at, rest[1])
	}
	switch strings.Join(rest, "/") {
	case "":
		return h.packagePage(r, at, "overview")
	case "kinds", "versions", "dependencies", "trust":
		return h.packagePage(r, at, rest[0])
	case "graph":
		return h.packagePage(r, at, "dependencies")
	case "graph.svg":
		return h.graphImage(r, at)
	case "icon":
		return h.packageIcon(r, at)
	case "feed.atom":
		return h.packageFeed(r, at)
	}
	return nil, ErrNotFound
}

// findRelease finds the version that a path names, and returns the rest of the path. Without "@", a part of a package
// has precedence over a package with the same path, so that no package takes the address of a part of another one.
func findRelease(ctx context.Context, view View, path []string) (release, []string, error) {
	for i, s := range path {
		if name, tag, ok := strings.Cut(s, "@"); ok {
			at, err := releaseOf(ctx, view, strings.Join(append(slices.Clone(path[:i]), name), "/"), tag)
			return at, path[i+1:], err
		}
	}
	if i := splitPart(path); i > 0 {
		at, err := releaseOf(ctx, view, strings.Join(path[:i], "/"), "")
		if !errors.Is(err, ErrNotFound) {
			return at, path[i:], err
		}
	}
	at, err := releaseOf(ctx, view, strings.Join(path, "/"), "")
	return at, nil, err
}

// releaseOf returns a version of a package; the newest one if the tag is empty.
func releaseOf(ctx context.Context, view View, repository, tag string) (release, error) {
	p, history, err := view.Package(ctx, repository)
	if err != nil {
		return release{}, err
	}
	at := release{Package: p, History: history, base: packageURL(repository, tag)}
	if tag == "" {
		tag = p.Latest
	}
	i := slices.IndexFunc(history.Versions, func(v catalog.Version) bool { return v.Tag == tag })
	if i < 0 {
		if tag != "" {
			return release{}, ErrNotFound
		}
		return at, nil // It has no version, or all versions are excluded.
	}
	at.Version, at.Newest = history.Versions[i], tag == p.Latest
	return at, nil
}

type packageView struct {
	release
	// Static reports that the pages are files: there is no form to compare versions.
	Static bool
	// Part is the part of the package that the page shows.
	Part string
	// Problem is the reason why the content of the version cannot be shown.
	Problem *catalog.IndexError
	// ReplacementURL is the page of the package or version that replaces the package; empty if the index does not have it.
	ReplacementURL string
	Title          string
	Summary        string
	HasIcon        bool
	Readme         template.HTML
	ReleaseNotes   template.HTML
	Groups         []kindGroup
	MoreKinds      int
	// Compositions are those of the version, some of them on its first page.
	Compositions     []compositionRow
	MoreCompositions int
	// Filter are the words of the filter of kinds, and NoneFit reports that no kind has them.
	Filter      string
	NoneFit     bool
	Snippets    []snippet
	Cost        cost
	Permissions []string
	// SafeStart reports that the kinds can be activated one by one.
	SafeStart  bool
	Objects    []facet
	Form       []formSection
	Versions   []versionRow
	Former     string
	Dependents []Dependent
	Tree       *treeNode
	Graph      template.HTML
	Trust      []snippet
}

// DeprecatesPackage reports whether the status of the version is the one of the package, so that one banner states
// both.
func (v packageView) DeprecatesPackage() bool {
	return v.Newest && v.Status != nil && v.Status.State == catalog.Deprecated
}

// StatesReplacement reports whether the status of the version names the replacement of the package.
func (v packageView) StatesReplacement() bool {
	return v.Status != nil && v.Status.ReplacedBy == v.ReplacedBy
}

// A versionRow is a version in the list of versions, newest first.
type versionRow struct {
	catalog.Version
	// Former is the version before it that has content; empty for the first, and for a removed version.
	Former  string
	Current bool
	// Removed reports that the version has no content, and therefore no page.
	Removed bool
}

func (h *Handler) packagePage(r *request, at release, part string) (*response, error) {
	v := packageView{
		release: at, Static: r.static, Part: part, Title: titleOf(at.Package), Summary: at.Summary, Problem: at.Package.Error,
	}
	if at.Version.Error != nil {
		v.Problem = at.Version.Error
	}
	var err error
	if v.ReplacementURL, err = replacementURL(r, at); err != nil {
		return nil, err
	}
	v.Versions = versionRows(at)
	if i := slices.IndexFunc(v.Versions, func(row versionRow) bool { return row.Current }); i >= 0 {
		v.Former = v.Versions[i].Former
	}
	content, err := h.content(r, at, &v)
	if err != nil {
		return nil, err
	}
	if err := h.fillPart(r, at, &v, content); err != nil {
		return nil, err
	}
	p := page{Title: v.Title, Description: at.Summary, Feed: feedURL(at.Repository()), Body: v, Crumbs: []link{
		{"Packages", "/search"}, {at.Repository(), packageURL(at.Repository(), "")},
	}}
	if !at.Newest && at.Tag != "" {
		p.Title += " " + at.Tag
	}
	if part != "overview" {
		p.Title += ": " + part
	}
	resp, err := h.page(r, "package", p)
	if resp != nil {
		resp.reflects = v.Filter != ""
	}
	return resp, err
}

// replacementURL returns the page of the package or version that replaces a package; empty if there is none. Publishers
// state any text.
func replacementURL(r *request, at release) (string, error) {
	repository, tag := at.Repository(), at.ReplacedBy
	if at.History.Find(tag) == nil {
		repository, tag = at.ReplacedBy, ""
		if i := strings.LastIndexByte(repository, ':'); i > strings.LastIndexByte(repository, '/') {
			repository, tag = repository[:i], repository[i+1:]
		}
	}
	found, err := releaseOf(r.ctx, r.view, repository, tag)
	switch {
	case repository == "" || errors.Is(err, ErrNotFound):
		return "", nil
	case err != nil:
		return "", err
	case found.Status != nil && found.Status.State == catalog.Removed:
		return packageURL(repository, ""), nil // A removed version has no page.
	}
	return packageURL(repository, tag), nil
}

// content returns the content of the version, and fills the parts of the view that come from it. An error of the
// package is shown on its page, and its content is then nil.
func (h *Handler) content(r *request, at release, v *packageView) (*Content, error) {
	if at.Tag == "" {
		return nil, nil
	}
	c, err := r.view.Content(r.ctx, at.Repository(), at.Tag)
	var known *errcode.Error
	switch {
	case errors.As(err, &known):
		v.Problem = &catalog.IndexError{Code: known.Code.Name, Message: known.Error()}
		return nil, nil
	case err != nil:
		return nil, err
	}
	v.HasIcon = r.shows(c.Icon)
	v.Cost = costOf(c.Kinds)
	v.Snippets = installSnippets(at, xpkg.Kind(c.Type))
	v.Permissions, v.SafeStart = c.Permissions, c.SafeStart
	v.Objects = facetsOf(otherObjects(c.Objects), func(string) string { return "" })
	return c, nil
}

// otherObjects returns the numbers of objects other than the definitions of kinds.
func otherObjects(all map[string]int) map[string]int {
	others := maps.Clone(all)
	for _, kind := range []string{"CustomResourceDefinition", "CompositeResourceDefinition", "ManagedResourceDefinition"} {
		delete(others, kind)
	}
	return others
}

// fillPart sets the parts of the view that only one part of the package shows.
func (h *Handler) fillPart(r *request, at release, v *packageView, c *Content) (err error) {
	if v.Dependents, err = r.view.Dependents(r.ctx, at.Repository()); err != nil {
		return err
	}
	switch {
	case v.Part == "dependencies":
		if v.Tree, err = dependencyTree(r.ctx, r.view, at); err != nil {
			return err
		}
		v.Graph = graphSVG(graphOf(at, v.Tree, v.Dependents))
	case c == nil:
	case v.Part == "overview":
		v.Groups, v.MoreKinds = groupKinds(c.Kinds, overviewKinds)
		v.Compositions, v.MoreCompositions = shorten(compositionRows(c, at.Repository(), at.Tag), overviewKinds)
		if err := linkGroups(r, at, v.Groups); err != nil {
			return err
		}
		if c.Readme != "" {
			v.Readme = h.markdown.Markdown(c.Readme)
		}
		if c.ReleaseNotes != "" {
			v.ReleaseNotes = h.notes.Markdown(c.ReleaseNotes)
		}
		v.Form = parseForm(c.Annotations[firstgen.AnnotationUISchema])
	case v.Part == "kinds":
		v.Groups, _ = groupKinds(c.Kinds, len(c.Kinds))
		v.Compositions = compositionRows(c, at.Repository(), at.Tag)
		v.Filter = r.URL.Query().Get("q")
		v.filterKinds()
		return linkGroups(r, at, v.Groups)
	case v.Part == "trust":
		v.Trust = trustSnippets(at)
	}
	return nil
}

// titleOf returns the title of a package; the last part of its repository if it has none.
func titleOf(p catalog.Package) string {
	if p.Title != "" {
		return p.Title
	}
	return lastSegment(p.Repository)
}

// versionRows returns the versions, newest first.
func versionRows(at release) []versionRow {
	rows := make([]versionRow, 0, len(at.History.Versions))
	former := ""
	for _, v := range at.History.Versions {
		row := versionRow{Version: v, Current: v.Tag == at.Tag, Removed: v.Status != nil && v.Status.State == catalog.Removed}
		if !row.Removed {
			row.Former, former = former, v.Tag
		}
		rows = append(rows, row)
	}
	slices.Reverse(rows)
	return rows
}

// Comparable returns the versions with content, newest first.
func (v packageView) Comparable() []string {
	var tags []string
	for _, row := range v.Versions {
		if !row.Removed {
			tags = append(tags, row.Tag)
		}
	}
	return tags
}

// shows reports whether pages show an icon. Files have no SVG icons: a web server that only serves files does not send
// the policy that keeps a reader safe who opens one.
func (r *request) shows(data []byte) bool {
	icon, err := untrusted.ParseIcon(data)
	return err == nil && (!r.static || icon.MediaType == "image/png")
}

func (h *Handler) packageIcon(r *request, at release) (*response, error) {
	c, err := r.view.Content(r.ctx, at.Repository(), at.Tag)
	if err != nil {
		return nil, err
	}
	return iconResponse(c.Icon)
}

// iconResponse returns an icon. The policy of SVG applies if a reader opens its address.
func iconResponse(data []byte) (*response, error) {
	icon, err := untrusted.ParseIcon(data)
	if err != nil {
		return nil, ErrNotFound
	}
	return &response{status: http.StatusOK, mediaType: icon.MediaType, body: icon.Data, policy: untrusted.SVGPolicy}, nil
}

// metaDependencies returns the dependencies of the version, required ones first.
func metaDependencies(v catalog.Version) []dependency.Dependency {
	return slices.Concat(dependency.Required(v.Dependencies), dependency.Optional(v.Dependencies))
}

// manifestKind returns the kind of the object that installs a package.
func manifestKind(kind xpkg.Kind) string {
	if kind == "" {
		return string(xpkg.Provider)
	}
	return string(kind)
}
