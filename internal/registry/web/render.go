package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/xpkg-dev/xpkg/internal/registry/web/untrusted"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/crddiff"
)

//go:embed assets/*
var assetFiles embed.FS

//go:embed templates/*.html
var templateFiles embed.FS

// An asset is a file that pages load.
type asset struct {
	mediaType string
	body      []byte
	url       string
}

var assetTypes = map[string]string{
	".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
}

// loadAssets reads the assets. Their paths contain a hash, so that browsers can keep them.
func (h *Handler) loadAssets() error {
	entries, err := assetFiles.ReadDir("assets")
	if err != nil {
		return err
	}
	h.assets = map[string]asset{}
	for _, e := range entries {
		body, err := assetFiles.ReadFile("assets/" + e.Name())
		if err != nil {
			return err
		}
		sum := sha256.Sum256(body)
		h.assets[e.Name()] = asset{assetTypes[path.Ext(e.Name())], body, "/static/" + hex.EncodeToString(sum[:6]) + "/" +
			e.Name()}
	}
	return nil
}

func (h *Handler) asset(parts []string) *response {
	if len(parts) == 3 {
		if a, ok := h.assets[parts[2]]; ok && a.url == "/"+strings.Join(parts, "/") {
			return &response{mediaType: a.mediaType, body: a.body, fixed: true}
		}
	}
	return h.plainError(http.StatusNotFound, "Not found")
}

// A page is the content of a page.
type page struct {
	// Title is the heading of the page; the title of the document adds the name of the site.
	Title, Description string
	// Query is the content of the search box.
	Query string
	// Crumbs lead to the page.
	Crumbs []link
	// Feed is the path of the feed of the page; empty if there is none.
	Feed string
	// Wide pages use the whole width.
	Wide bool
	// Body is the data of the template.
	Body any

	// Site, Static, Status and Login are set by the handler. Login is the path on which the client can log in; empty if
	// there is none.
	Site   string
	Login  string
	Static bool
	Status Status
	Home   bool
}

type link struct {
	Text, URL string
}

// parseTemplates parses the templates: each page is the layout with the template of the page.
func (h *Handler) parseTemplates() error {
	names, err := templateFiles.ReadDir("templates")
	if err != nil {
		return err
	}
	shared, err := template.New("layout.html").Funcs(h.functions()).
		ParseFS(templateFiles, "templates/layout.html", "templates/parts.html", "templates/fields.html")
	if err != nil {
		return err
	}
	h.templates = map[string]*template.Template{}
	for _, e := range names {
		name := strings.TrimSuffix(e.Name(), ".html")
		if name == "layout" || name == "parts" || name == "fields" {
			continue
		}
		t, err := shared.Clone()
		if err != nil {
			return err
		}
		if h.templates[name], err = t.ParseFS(templateFiles, "templates/"+e.Name()); err != nil {
			return err
		}
	}
	return nil
}

// page renders a page.
func (h *Handler) page(r *request, name string, p page) (*response, error) {
	status, err := r.view.Status(r.ctx)
	if err != nil {
		return nil, err
	}
	p.Site, p.Static, p.Status, p.Login = h.options.Name, h.options.Static, status, h.options.Login
	var out bytes.Buffer
	if err := h.templates[name].Execute(&out, p); err != nil {
		return nil, fmt.Errorf("template %s: %w", name, err)
	}
	return &response{mediaType: "text/html; charset=utf-8", body: untrusted.Visible(out.Bytes())}, nil
}

// functions are the functions of templates.
func (h *Handler) functions() template.FuncMap {
	return template.FuncMap{
		"asset":          func(name string) string { return h.assets[name].url },
		"packageURL":     packageURL,
		"partURL":        partURL,
		"kindURL":        kindURL,
		"packageKindURL": packageKindURL,
		"diffURL":        diffURL,
		"searchURL":      searchURL,
		"feedURL":        feedURL,
		"count": func(n int, noun string) string {
			return thousands(n) + strings.TrimPrefix(wording.Count(n, noun), fmt.Sprint(n))
		},
		"number":    thousands,
		"date":      date,
		"datetime":  func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"join":      strings.Join,
		"lower":     strings.ToLower,
		"link":      untrusted.Link,
		"linkText":  linkText,
		"markdown":  h.markdown.Markdown,
		"yaml":      untrusted.YAML,
		"prose":     untrusted.Prose,
		"breakable": breakable,
		"class":     classOf,
		"clip":      func(most int, s string) string { return wording.ClipCharacters(s, most) },
		"add":       func(a, b int) int { return a + b },
		"name":      lastSegment,
		"parent":    parentPath,
		"fieldID":   func(path string) string { return string(untrusted.Visible([]byte(path))) },
		"person":    person,
		"initial":   initial,
		"int":       func(n int64) int { return int(n) },
		"dict":      dict,
	}
}

// dict returns a map for the arguments of a template.
func dict(pairs ...any) map[string]any {
	out := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if key, ok := pairs[i].(string); ok {
			out[key] = pairs[i+1]
		}
	}
	return out
}

// thousands returns a number with separators between groups of three digits.
func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// date returns a day; empty for the zero time.
func date(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2 Jan 2006")
}

// linkText returns a short form of an address.
func linkText(address string) string {
	_, rest, _ := strings.Cut(address, "//")
	if rest == "" {
		rest = strings.TrimPrefix(address, "mailto:")
	}
	return strings.TrimSuffix(strings.TrimPrefix(rest, "www."), "/")
}

// breakable returns a name in which a line can break after dots, slashes and before capitals.
func breakable(name string) template.HTML {
	var out strings.Builder
	former := rune(0)
	for _, r := range name {
		if r >= 'A' && r <= 'Z' && former >= 'a' && former <= 'z' {
			out.WriteString("<wbr>")
		}
		out.WriteString(template.HTMLEscapeString(string(r)))
		if r == '.' || r == '/' {
			out.WriteString("<wbr>")
		}
		former = r
	}
	return template.HTML(out.String()) //nolint:gosec // every character is escaped
}

// classOf returns the name of a class of changes in style sheets.
func classOf(c crddiff.Class) string {
	return [...]string{"safe", "care", "breaking"}[c]
}

// person returns the name of a person without the address: "Acme" for "Acme <acme@example.org>".
func person(s string) string {
	if name, _, ok := strings.Cut(s, " <"); ok && strings.TrimSpace(name) != "" {
		return strings.TrimSpace(name)
	}
	return s
}

func lastSegment(repository string) string {
	return repository[strings.LastIndexByte(repository, '/')+1:]
}

func parentPath(repository string) string {
	if i := strings.LastIndexByte(repository, '/'); i >= 0 {
		return repository[:i+1]
	}
	return ""
}

// initial returns the first letter of the name of a repository, for packages without an icon.
func initial(repository string) string {
	for _, prefix := range []string{"provider-", "configuration-", "function-"} {
		if rest, ok := strings.CutPrefix(lastSegment(repository), prefix); ok && rest != "" {
			return strings.ToUpper(rest[:1])
		}
	}
	if name := lastSegment(repository); name != "" {
		return strings.ToUpper(name[:1])
	}
	return "?"
}
