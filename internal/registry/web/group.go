package web

import (
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/catalog"
)

type groupView struct {
	Group, Title string
	Owner        Owner
	Kinds        []kindRow
	Packages     []groupPackage
	More         bool
}

// A groupPackage is a package with kinds of a group.
type groupPackage struct {
	catalog.Package
	// InGroup is the number of its kinds in the group.
	InGroup int
	// Foreign reports that the package is not that of the owner of the group.
	Foreign bool
}

// maxGroupKinds is the maximum number of rows of kinds on the page of a group.
const maxGroupKinds = 5000

func (h *Handler) group(r *request) (*response, error) {
	if len(r.path) != 2 {
		return nil, ErrNotFound
	}
	group := r.path[1]
	rows, err := r.view.Kinds(r.ctx, group, "", maxGroupKinds+1)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 || group == "" {
		return nil, ErrNotFound
	}
	v := groupView{Group: group, More: len(rows) > maxGroupKinds}
	if v.Owner, err = r.view.GroupOwner(r.ctx, group); err != nil {
		return nil, err
	}
	packages, err := packagesOf(r, results{Kinds: rows})
	if err != nil {
		return nil, err
	}
	v.fill(rows[:min(len(rows), maxGroupKinds)], packages)
	return h.page(r, "group", page{
		Title: group, Description: "The kinds of the API group " + group + ".", Body: v,
		Crumbs: []link{{"API groups", searchURL("group:" + group)}},
	})
}

func (v *groupView) fill(rows []catalog.Kind, packages map[string]catalog.Package) {
	counts := map[string]int{}
	index := map[string]int{}
	for _, k := range rows {
		counts[k.Repository]++
		if i, ok := index[k.Kind]; ok {
			v.Kinds[i].Others++
			continue
		}
		index[k.Kind] = len(v.Kinds)
		v.Kinds = append(v.Kinds, kindRow{k, 0, packages[k.Repository].Type})
	}
	slices.SortStableFunc(v.Kinds, func(a, b kindRow) int { return strings.Compare(a.Kind.Kind, b.Kind.Kind) })
	for repository, n := range counts {
		p := packages[repository]
		v.Packages = append(v.Packages, groupPackage{p, n, v.Owner.Publisher != "" && !v.Owner.owns(p)})
	}
	slices.SortFunc(v.Packages, func(a, b groupPackage) int { return strings.Compare(a.Repository, b.Repository) })
}
