package web

import (
	"net/url"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/catalog"
)

// Limits of the page of the search.
const (
	searchCandidates = 200
	// searchHits is the number of kinds and packages together; the best packages can have lower scores than many kinds.
	searchHits = 1000
	searchRows = 50
	maxFacets  = 8
	staticRows = 20_000
)

type searchView struct {
	Query, Type, Publisher, Group string
	// Problem is the reason why the query cannot be parsed.
	Problem  string
	Packages []catalog.Package
	Kinds    []kindRow
	// MorePackages and MoreKinds are the numbers of results that are not shown.
	MorePackages, MoreKinds       int
	Types, Publishers, Groups     []facet
	Empty, Everything, HasFilters bool
	// rows is the maximum number of rows of each kind.
	rows int
}

// A kindRow is a kind with its package, or several packages.
type kindRow struct {
	catalog.Kind
	// Others is the number of other packages with the kind.
	Others int
	// PackageType is the type of the package.
	PackageType string
}

func (h *Handler) search(r *request) (*response, error) {
	if len(r.path) > 1 {
		return nil, ErrNotFound
	}
	values := r.URL.Query()
	v := searchView{
		Query: strings.TrimSpace(values.Get("q")), Type: values.Get("type"), Publisher: values.Get("publisher"),
		Group: values.Get("group"),
	}
	v.rows = searchRows
	if v.Query == "" {
		v.Everything, v.rows = true, searchCandidates
	}
	if h.options.Static {
		v.rows = staticRows
	}
	v.HasFilters = v.Type+v.Publisher+v.Group != ""
	found, err := h.find(r, &v)
	if err != nil {
		return nil, err
	}
	if err := v.fill(r, found); err != nil {
		return nil, err
	}
	v.Empty = v.Problem == "" && len(v.Packages)+len(v.Kinds) == 0
	title := "Search"
	if v.Query != "" {
		title = v.Query + " – search"
	}
	resp, err := h.page(r, "search", page{Title: title, Query: v.Query, Wide: true, Body: v})
	if resp != nil {
		resp.reflects = true
	}
	return resp, err
}

// find returns the results for a query, or everything without one.
func (h *Handler) find(r *request, v *searchView) (results, error) {
	if v.Everything {
		packages, err := r.view.Packages(r.ctx)
		if err != nil {
			return results{}, err
		}
		kinds, err := r.view.Kinds(r.ctx, v.Group, "", v.rows)
		return results{packages, kinds}, err
	}
	q, err := catalog.ParseQuery(v.Query)
	if err != nil {
		v.Problem = err.Error()
		return results{}, nil
	}
	return r.find(q, searchHits)
}

// results are packages and kinds, best first.
type results struct {
	Packages []catalog.Package
	Kinds    []catalog.Kind
}

// find returns the results of a query.
func (r *request) find(q catalog.Query, limit int) (results, error) {
	hits, err := r.view.Search(r.ctx, q, limit)
	var out results
	for _, hit := range hits {
		switch {
		case hit.Kind != nil:
			out.Kinds = append(out.Kinds, *hit.Kind)
		case hit.Package != nil:
			out.Packages = append(out.Packages, *hit.Package)
		}
	}
	return out, err
}

// fill sets the rows and the facets.
func (v *searchView) fill(r *request, found results) error {
	packages, err := packagesOf(r, found)
	if err != nil {
		return err
	}
	types, publishers, groups := map[string]int{}, map[string]int{}, map[string]int{}
	for _, p := range found.Packages {
		add(types, p.Type)
		add(publishers, p.Publisher)
		if v.accepts(p) && v.Group == "" {
			v.Packages = append(v.Packages, p)
		}
	}
	rows := map[[2]string]int{}
	for _, k := range found.Kinds {
		add(groups, k.Group)
		if !v.accepts(packages[k.Repository]) || v.Group != "" && k.Group != v.Group {
			continue
		}
		id := [2]string{k.Group, k.Kind}
		if i, ok := rows[id]; ok {
			v.Kinds[i].Others++
			continue
		}
		rows[id] = len(v.Kinds)
		v.Kinds = append(v.Kinds, kindRow{k, 0, packages[k.Repository].Type})
	}
	v.Types, v.Publishers, v.Groups = v.facets(types, "type", v.Type), v.facets(publishers, "publisher", v.Publisher),
		v.facets(groups, "group", v.Group)
	if r.static {
		v.Types, v.Publishers, v.Groups = nil, nil, nil
	}
	v.Packages, v.MorePackages = shorten(v.Packages, v.rows)
	v.Kinds, v.MoreKinds = shorten(v.Kinds, v.rows)
	return nil
}

func add(counts map[string]int, value string) {
	if value != "" {
		counts[value]++
	}
}

// shorten returns the rows that are shown, and the number of the others.
func shorten[T any](rows []T, most int) ([]T, int) {
	n := min(len(rows), most)
	return rows[:n], len(rows) - n
}

// packagesOf returns the packages of the results by repository.
func packagesOf(r *request, found results) (map[string]catalog.Package, error) {
	out := map[string]catalog.Package{}
	for _, p := range found.Packages {
		out[p.Repository] = p
	}
	for _, k := range found.Kinds {
		if _, ok := out[k.Repository]; ok {
			continue
		}
		p, _, err := r.view.Package(r.ctx, k.Repository)
		if err != nil {
			return nil, err
		}
		out[k.Repository] = p
	}
	return out, nil
}

// accepts reports whether a package passes the filters of packages.
func (v *searchView) accepts(p catalog.Package) bool {
	return (v.Type == "" || strings.EqualFold(p.Type, v.Type)) && (v.Publisher == "" || p.Publisher == v.Publisher)
}

// facets returns the values of a filter as links that select or deselect them.
func (v *searchView) facets(counts map[string]int, name, selected string) []facet {
	if selected != "" && counts[selected] == 0 {
		counts[selected] = 0
	}
	out := facetsOf(counts, func(value string) string { return v.with(name, value) })
	for i := range out {
		if strings.EqualFold(out[i].Value, selected) {
			out[i].Selected, out[i].URL = true, v.with(name, "")
		}
	}
	if len(out) < 2 && selected == "" {
		return nil
	}
	chosen := slices.IndexFunc(out, func(f facet) bool { return f.Selected })
	if chosen >= maxFacets {
		out[maxFacets-1] = out[chosen]
	}
	return out[:min(len(out), maxFacets)]
}

// with returns the path of the search with another value of a filter.
func (v *searchView) with(name, value string) string {
	values := url.Values{}
	for key, now := range map[string]string{"q": v.Query, "type": v.Type, "publisher": v.Publisher, "group": v.Group} {
		if key == name {
			now = value
		}
		if now != "" {
			values.Set(key, now)
		}
	}
	return "/search?" + values.Encode()
}
