package web

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/xpkg-dev/xpkg/internal/registry/web/fields"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
)

// Types of the JSON interface. Their fields are those of `xpkg search -o json`.
type (
	packageJSON struct {
		Package    string              `json:"package"`
		Type       string              `json:"type,omitempty"`
		Title      string              `json:"title,omitempty"`
		Summary    string              `json:"summary,omitempty"`
		Category   string              `json:"category,omitempty"`
		Keywords   []string            `json:"keywords,omitempty"`
		License    string              `json:"license,omitempty"`
		Website    string              `json:"website,omitempty"`
		Source     string              `json:"source,omitempty"`
		Publisher  string              `json:"publisher,omitempty"`
		Verified   string              `json:"verified,omitempty"`
		Latest     string              `json:"latest,omitempty"`
		Updated    time.Time           `json:"updated,omitzero"`
		Kinds      int                 `json:"kinds"`
		Dependents int                 `json:"dependents"`
		Deprecated bool                `json:"deprecated,omitempty"`
		ReplacedBy string              `json:"replacedBy,omitempty"`
		Error      *catalog.IndexError `json:"error,omitempty"`
	}
	kindJSON struct {
		Kind       string   `json:"kind"`
		Group      string   `json:"group"`
		Plural     string   `json:"plural,omitempty"`
		ShortNames []string `json:"shortNames,omitempty"`
		Scope      string   `json:"scope,omitempty"`
		Versions   []string `json:"versions,omitempty"`
		Role       string   `json:"role,omitempty"`
		Package    string   `json:"package"`
		Since      string   `json:"since,omitempty"`
	}
	versionJSON struct {
		Version      string                  `json:"version"`
		Digest       string                  `json:"digest,omitempty"`
		Created      time.Time               `json:"created,omitzero"`
		Crossplane   string                  `json:"crossplane,omitempty"`
		Dependencies []dependency.Dependency `json:"dependencies,omitempty"`
		Status       *catalog.Status         `json:"status,omitempty"`
		Signatures   []string                `json:"signatures,omitempty"`
		Kinds        int                     `json:"kinds"`
	}
	fieldJSON struct {
		Path        string   `json:"path"`
		Type        string   `json:"type"`
		Description string   `json:"description,omitempty"`
		Required    bool     `json:"required,omitempty"`
		Default     string   `json:"default,omitempty"`
		Enum        []string `json:"enum,omitempty"`
		Constraints []string `json:"constraints,omitempty"`
		Immutable   bool     `json:"immutable,omitempty"`
		Deprecated  bool     `json:"deprecated,omitempty"`
		Since       string   `json:"since,omitempty"`
	}
	suggestionJSON struct {
		Text   string `json:"text"`
		Detail string `json:"detail"`
		Type   string `json:"type"`
		URL    string `json:"url"`
	}
)

// Role names of kinds in JSON.
var roleNames = map[catalog.Role]string{
	catalog.Provides: "provides", catalog.Composite: "composite", catalog.Claim: "claim", catalog.Input: "input",
	catalog.Elsewhere: "elsewhere",
}

func jsonOfPackage(p catalog.Package) packageJSON {
	return packageJSON{
		p.Repository, p.Type, p.Title, p.Summary, p.Category, p.Keywords, p.License, p.Website, p.SourceURL, p.Publisher,
		p.Verified,
		p.Latest, p.Updated, p.Kinds, p.Rank, p.Deprecated, p.ReplacedBy, p.Error,
	}
}

func jsonOfKind(k catalog.Kind) kindJSON {
	return kindJSON{k.Kind, k.Group, k.Plural, k.ShortNames, k.Scope, k.Served, roleNames[k.Role], k.Repository, k.Since}
}

func jsonOfVersion(v catalog.Version) versionJSON {
	out := versionJSON{
		Version: v.Tag, Created: v.Created, Crossplane: v.Crossplane, Dependencies: v.Dependencies, Status: v.Status,
		Signatures: v.Signatures, Kinds: v.Kinds,
	}
	if !v.Digest.IsZero() {
		out.Digest = v.Digest.String()
	}
	return out
}

// jsonOf converts every element of a list. The result is never nil, so that it is a list in JSON.
func jsonOf[T, J any](all []T, convert func(T) J) []J {
	out := make([]J, 0, len(all))
	for _, x := range all {
		out = append(out, convert(x))
	}
	return out
}

func jsonResponse(status int, value any) *response {
	text, err := json.Marshal(value)
	if err != nil {
		return &response{status: http.StatusInternalServerError, mediaType: "application/json", body: []byte("{}\n")}
	}
	return &response{status: status, mediaType: "application/json", body: append(text, '\n')}
}

// api returns a response below /api/v1/.
func (h *Handler) api(r *request) (*response, error) {
	if len(r.path) < 3 || r.path[1] != "v1" {
		return nil, ErrNotFound
	}
	rest := r.path[3:]
	switch r.path[2] {
	case "search":
		return apiSearch(r)
	case "suggest":
		return apiSuggest(r)
	case "packages":
		return apiPackages(r, rest)
	case "kinds":
		return apiKinds(r, rest)
	case "diff":
		return apiDiff(r, rest)
	case "status":
		return apiStatus(r)
	}
	return nil, ErrNotFound
}

// limitOf returns the limit of results that a request states.
func limitOf(r *request) int {
	if n, err := strconv.Atoi(r.URL.Query().Get("limit")); err == nil && n > 0 {
		return min(n, searchCandidates)
	}
	return searchRows
}

func apiSearch(r *request) (*response, error) {
	q, err := catalog.ParseQuery(r.URL.Query().Get("q"))
	if err != nil {
		return nil, err
	}
	found, err := r.find(q, limitOf(r))
	if err != nil {
		return nil, err
	}
	resp := jsonResponse(0, map[string]any{
		"packages": jsonOf(found.Packages, jsonOfPackage), "kinds": jsonOf(found.Kinds, jsonOfKind),
	})
	resp.reflects = true
	return resp, nil
}

// maxSuggestions is the maximum number of suggestions.
const maxSuggestions = 8

// apiSuggest returns suggestions for the beginning of a query. A query that cannot be parsed yet has none.
func apiSuggest(r *request) (*response, error) {
	out := []suggestionJSON{}
	if q, err := catalog.ParseQuery(r.URL.Query().Get("q")); err == nil && strings.TrimSpace(q.Text) != "" {
		hits, err := r.view.Search(r.ctx, q, 3*maxSuggestions)
		if err != nil {
			return nil, err
		}
		out = suggestions(hits)
	}
	resp := jsonResponse(0, out)
	resp.reflects = true
	return resp, nil
}

func suggestions(hits []catalog.Hit) []suggestionJSON {
	out := []suggestionJSON{}
	seen := map[string]bool{}
	for _, hit := range hits {
		var s suggestionJSON
		switch {
		case hit.Kind != nil:
			s = suggestionJSON{hit.Kind.Kind, hit.Kind.Group, "kind", kindURL(hit.Kind.Group, hit.Kind.Kind)}
		case hit.Package != nil:
			s = suggestionJSON{titleOf(*hit.Package), hit.Package.Repository, "package", packageURL(hit.Package.Repository, "")}
		}
		if s.URL != "" && !seen[s.URL] && len(out) < maxSuggestions {
			seen[s.URL] = true
			out = append(out, s)
		}
	}
	return out
}

func apiPackages(r *request, path []string) (*response, error) {
	if len(path) == 0 {
		packages, err := r.view.Packages(r.ctx)
		if err != nil {
			return nil, err
		}
		return jsonResponse(0, map[string]any{"packages": jsonOf(packages, jsonOfPackage)}), nil
	}
	repository, tag, _ := strings.Cut(strings.Join(path, "/"), "@")
	at, err := releaseOf(r.ctx, r.view, repository, tag)
	if err != nil {
		return nil, err
	}
	dependents, err := r.view.Dependents(r.ctx, at.Repository())
	if err != nil {
		return nil, err
	}
	out := map[string]any{
		"package": jsonOfPackage(at.Package), "version": jsonOfVersion(at.Version),
		"versions": jsonOf(at.History.Versions, jsonOfVersion),
	}
	names := []string{}
	for _, d := range dependents {
		names = append(names, d.Repository)
	}
	out["dependents"] = names
	if c, err := r.view.Content(r.ctx, at.Repository(), at.Tag); err == nil {
		out["kinds"], out["permissions"] = jsonOf(c.Kinds, jsonOfKind),
			jsonOf(c.Permissions, func(s string) string { return s })
	}
	return jsonResponse(0, out), nil
}

// first returns the first error.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// apiKinds returns the kinds of a group, the providers of a kind, or the fields of an API version of a kind.
func apiKinds(r *request, path []string) (*response, error) {
	if len(path) == 0 || len(path) > 3 {
		return nil, ErrNotFound
	}
	kind := ""
	if len(path) > 1 {
		kind = path[1]
	}
	rows, err := r.view.Kinds(r.ctx, path[0], kind, maxGroupKinds)
	if err != nil || len(rows) == 0 {
		return nil, first(err, ErrNotFound)
	}
	if len(path) < 3 {
		return jsonResponse(0, map[string]any{"kinds": jsonOf(rows, jsonOfKind)}), nil
	}
	row, err := firstProvider(r, path[0], path[1])
	if err != nil {
		return nil, err
	}
	at, err := releaseOf(r.ctx, r.view, row.Repository, "")
	if err != nil {
		return nil, err
	}
	d, err := definitionOf(r, at, row)
	if err != nil {
		return nil, err
	}
	version := d.version(path[2])
	if version == nil {
		return nil, ErrNotFound
	}
	since, err := r.view.Since(r.ctx, at.Repository(), at.Tag, row.Group, row.Kind, version.Name)
	if err != nil {
		return nil, err
	}
	tree := fields.Tree(versionSchema(version))
	return jsonResponse(0, map[string]any{
		"kind": jsonOfKind(row), "version": version.Name, "fields": jsonOfFields(&tree, since),
	}), nil
}

func jsonOfFields(tree *fields.Field, since map[string]string) []fieldJSON {
	out := []fieldJSON{}
	tree.Walk(func(f *fields.Field) {
		if f.Path != "" {
			out = append(out, fieldJSON{
				f.Path, f.Type, f.Description, f.Required, f.Default, f.Enum, f.Constraints, f.Immutable, f.Deprecated,
				since[f.Path],
			})
		}
	})
	return out
}

func apiDiff(r *request, path []string) (*response, error) {
	if len(path) < 2 {
		return nil, ErrNotFound
	}
	from, to, ok := strings.Cut(path[len(path)-1], "..")
	if !ok {
		return nil, ErrNotFound
	}
	repository := strings.Join(path[:len(path)-1], "/")
	for _, tag := range []string{from, to} {
		if _, err := releaseOf(r.ctx, r.view, repository, tag); err != nil || tag == "" {
			return nil, first(err, ErrNotFound)
		}
	}
	d, err := r.view.Diff(r.ctx, repository, from, to)
	if err != nil {
		return nil, err
	}
	return jsonResponse(0, d), nil
}

func apiStatus(r *request) (*response, error) {
	s, err := r.view.Status(r.ctx)
	if err != nil {
		return nil, err
	}
	return jsonResponse(0, map[string]any{
		"name": s.Name, "reference": s.Reference, "sequence": s.Sequence, "counts": s.Counts,
	}), nil
}
