package web

import (
	"cmp"
	"slices"

	"github.com/xpkg-dev/xpkg/pkg/catalog"
)

type homeView struct {
	Recent, Popular []catalog.Package
	Categories      []facet
	Types           []facet
}

// A facet is a value of a filter with the number of results that have it.
type facet struct {
	Value    string
	Count    int
	URL      string
	Selected bool
}

const homeRows = 8

func (h *Handler) home(r *request) (*response, error) {
	if len(r.path) > 1 {
		return nil, ErrNotFound
	}
	packages, err := r.view.Packages(r.ctx)
	if err != nil {
		return nil, err
	}
	v := homeView{}
	types, categories := map[string]int{}, map[string]int{}
	for _, p := range packages {
		if p.Type != "" {
			types[p.Type]++
		}
		if p.Category != "" {
			categories[p.Category]++
		}
	}
	v.Types = facetsOf(types, func(t string) string {
		if r.static {
			return "/search"
		}
		return "/search?type=" + segment(t)
	})
	v.Categories = facetsOf(categories, func(c string) string { return searchURL(c) })
	v.Categories = v.Categories[:min(len(v.Categories), 12)]
	v.Recent = top(packages, func(a, b catalog.Package) int {
		return cmp.Or(b.Updated.Compare(a.Updated), cmp.Compare(a.Repository, b.Repository))
	})
	v.Popular = top(packages, func(a, b catalog.Package) int {
		return cmp.Or(cmp.Compare(b.Rank, a.Rank), cmp.Compare(b.Kinds, a.Kinds), cmp.Compare(a.Repository, b.Repository))
	})
	return h.page(r, "home", page{Title: h.options.Name, Home: true, Feed: "/feed.atom", Body: v,
		Description: "Search Crossplane packages and the kinds that they define."})
}

// top returns the first packages in an order.
func top(packages []catalog.Package, compare func(a, b catalog.Package) int) []catalog.Package {
	sorted := slices.SortedFunc(slices.Values(packages), compare)
	sorted = slices.DeleteFunc(sorted, func(p catalog.Package) bool { return p.Error != nil })
	return sorted[:min(len(sorted), homeRows)]
}

// facetsOf returns facets, most frequent first.
func facetsOf(counts map[string]int, address func(string) string) []facet {
	var out []facet
	for value, n := range counts {
		out = append(out, facet{Value: value, Count: n, URL: address(value)})
	}
	slices.SortFunc(
		out, func(a, b facet) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Value, b.Value)) },
	)
	return out
}
