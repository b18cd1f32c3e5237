package web

import (
	"cmp"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/crddiff"
	"github.com/xpkg-dev/xpkg/pkg/packagediff"
)

type diffView struct {
	release
	Static   bool
	From, To string
	Diff     packagediff.Diff
	// Classes are the changes, most severe first.
	Classes []changeClass
	// Added are the added kinds.
	Added     []string
	MoreKinds int
	// Breaking, Care and Safe are the numbers of changes by class.
	Breaking, Care, Safe int
	Unchanged            int
	Tags                 []string
	Costs                []cost
}

// A changeClass is all changes of one class, with the kinds whose most severe change has it.
type changeClass struct {
	Class crddiff.Class
	// Package are the changes of the metadata, and Objects those of other objects than kinds.
	Package, Objects []packagediff.Change
	Removed          []string
	Kinds            []changedKind
	// AllKinds is the number of the kinds, of which some are not shown.
	AllKinds int
}

// A changedKind is a CRD or XRD with changes, by class.
type changedKind struct {
	Name, Kind, Group, URL string
	Class                  crddiff.Class
	Changes                []crddiff.Change
	// Hidden is the number of changes that are not shown.
	Hidden int
}

// Limits of the page of differences.
const (
	maxChangedKinds = 400
	maxChanges      = 60
	pageChanges     = 1500
)

func (h *Handler) diff(r *request) (*response, error) {
	if len(r.path) < 3 {
		return nil, ErrNotFound
	}
	last := r.path[len(r.path)-1]
	from, to, ok := strings.Cut(last, "..")
	if !ok {
		return chooseVersions(r)
	}
	repository := strings.Join(r.path[1:len(r.path)-1], "/")
	at, err := releaseOf(r.ctx, r.view, repository, to)
	if err != nil {
		return nil, err
	}
	if _, err := releaseOf(r.ctx, r.view, repository, from); err != nil || from == "" || to == "" {
		return nil, first(err, ErrNotFound)
	}
	d, err := r.view.Diff(r.ctx, repository, from, to)
	if err != nil {
		return nil, err
	}
	v := diffView{release: at, Static: r.static, From: from, To: to, Diff: d}
	if err := v.fill(r, d); err != nil {
		return nil, err
	}
	return h.page(r, "diff", page{
		Title: lastSegment(repository) + " " + from + " → " + to, Wide: true, Body: v,
		Crumbs: []link{{repository, packageURL(repository, "")}, {
			"Versions", partURL(repository, at.Package.Latest, "versions"),
		}},
	})
}

// chooseVersions redirects the form that selects two versions to the page of their differences.
func chooseVersions(r *request) (*response, error) {
	from, to := r.URL.Query().Get("from"), r.URL.Query().Get("to")
	repository := strings.Join(r.path[1:], "/")
	for _, tag := range []string{from, to} {
		if tag == "" {
			return nil, ErrNotFound
		}
		if _, err := releaseOf(r.ctx, r.view, repository, tag); err != nil {
			return nil, err
		}
	}
	return redirect(diffURL(repository, from, to)), nil
}

func (v *diffView) fill(r *request, d packagediff.Diff) error {
	v.Unchanged = d.CRDs.Unchanged + d.XRDs.Unchanged
	v.Added = slices.Concat(d.CRDs.Added, d.XRDs.Added)
	names := map[string]catalog.Kind{}
	for _, tag := range []string{v.From, v.To} {
		c, err := r.view.Content(r.ctx, v.Repository(), tag)
		if err != nil {
			return err
		}
		v.Costs = append(v.Costs, costOf(c.Kinds))
		for _, k := range c.Kinds {
			names[k.Plural+"."+k.Group] = k
		}
	}
	var kinds []changedKind
	for _, changed := range slices.Concat(d.CRDs.Changed, d.XRDs.Changed) {
		kinds = append(kinds, v.kindOf(changed, names[changed.Name]))
	}
	v.classify(d, kinds)
	for _, tag := range v.release.History.Versions {
		v.Tags = append(v.Tags, tag.Tag)
	}
	slices.Reverse(v.Tags)
	return nil
}

// classify sets the changes by class, and their numbers.
func (v *diffView) classify(d packagediff.Diff, kinds []changedKind) {
	removed := slices.Concat(d.CRDs.Removed, d.XRDs.Removed)
	v.Breaking, v.Safe = v.Breaking+len(removed), v.Safe+len(v.Added)
	for _, c := range slices.Concat(d.Metadata, d.Objects) {
		v.countClass(c.Class)
	}
	slices.SortStableFunc(kinds, func(a, b changedKind) int { return cmp.Compare(b.Class, a.Class) })
	shown, more := shorten(kinds, maxChangedKinds)
	v.MoreKinds = more
	limitChanges(shown)
	for _, class := range []crddiff.Class{crddiff.Breaking, crddiff.Care, crddiff.Safe} {
		c := changeClass{Class: class, Package: ofClass(d.Metadata, class), Objects: ofClass(d.Objects, class)}
		if class == crddiff.Breaking {
			c.Removed = removed
		}
		for i, k := range kinds {
			if k.Class != class {
				continue
			}
			if c.AllKinds++; i < len(shown) {
				c.Kinds = append(c.Kinds, k)
			}
		}
		if len(c.Package)+len(c.Objects)+len(c.Removed)+c.AllKinds > 0 {
			v.Classes = append(v.Classes, c)
		}
	}
}

// ofClass returns the changes of a class.
func ofClass(changes []packagediff.Change, class crddiff.Class) (out []packagediff.Change) {
	for _, c := range changes {
		if c.Class == class {
			out = append(out, c)
		}
	}
	return out
}

func (v *diffView) kindOf(changed crddiff.ChangedCRD, k catalog.Kind) changedKind {
	out := changedKind{
		Name: changed.Name, Kind: cmp.Or(k.Kind, changed.Name), Group: k.Group, Class: crddiff.Max(changed.Changes),
		Changes: slices.Clone(changed.Changes),
	}
	if k.Kind != "" {
		out.URL = packageKindURL(v.Repository(), v.To, k.Group, k.Kind)
	}
	for _, c := range changed.Changes {
		v.countClass(c.Class)
	}
	slices.SortStableFunc(out.Changes, func(a, b crddiff.Change) int { return cmp.Compare(b.Class, a.Class) })
	return out
}

func (v *diffView) countClass(c crddiff.Class) {
	switch c {
	case crddiff.Breaking:
		v.Breaking++
	case crddiff.Care:
		v.Care++
	default:
		v.Safe++
	}
}

// limitChanges hides the least severe changes of each kind, and when the page is full all safe changes.
func limitChanges(kinds []changedKind) {
	shown := 0
	for i := range kinds {
		k := &kinds[i]
		most := min(len(k.Changes), maxChanges)
		if shown > pageChanges {
			safe := slices.IndexFunc(k.Changes, func(c crddiff.Change) bool { return c.Class == crddiff.Safe })
			if safe >= 0 {
				most = min(most, safe)
			}
		}
		k.Hidden = len(k.Changes) - most
		k.Changes = k.Changes[:most]
		shown += most
	}
}
