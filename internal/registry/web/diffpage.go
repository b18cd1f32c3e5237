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
	// Kinds are the changed CRDs and XRDs, most severe first.
	Kinds          []changedKind
	Added, Removed []string
	MoreKinds      int
	// Breaking, Care and Safe are the numbers of changes by class.
	Breaking, Care, Safe int
	Unchanged            int
	Tags                 []string
	Costs                []cost
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
		Crumbs: []link{{repository, packageURL(repository, "")}, {"Versions", partURL(repository, at.Package.Latest, "versions")}},
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
	v.Added, v.Removed = slices.Concat(d.CRDs.Added, d.XRDs.Added), slices.Concat(d.CRDs.Removed, d.XRDs.Removed)
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
	for _, c := range slices.Concat(d.Metadata, d.Objects) {
		v.countClass(c.Class)
	}
	v.Breaking, v.Safe = v.Breaking+len(v.Removed), v.Safe+len(v.Added)
	for _, changed := range slices.Concat(d.CRDs.Changed, d.XRDs.Changed) {
		v.Kinds = append(v.Kinds, v.kindOf(changed, names[changed.Name]))
	}
	slices.SortStableFunc(v.Kinds, func(a, b changedKind) int { return cmp.Compare(b.Class, a.Class) })
	if len(v.Kinds) > maxChangedKinds {
		v.Kinds, v.MoreKinds = v.Kinds[:maxChangedKinds], len(v.Kinds)-maxChangedKinds
	}
	v.limitChanges()
	for _, tag := range v.release.History.Versions {
		v.Tags = append(v.Tags, tag.Tag)
	}
	slices.Reverse(v.Tags)
	return nil
}

func (v *diffView) kindOf(changed crddiff.ChangedCRD, k catalog.Kind) changedKind {
	out := changedKind{Name: changed.Name, Kind: cmp.Or(k.Kind, changed.Name), Group: k.Group, Class: crddiff.Max(changed.Changes), Changes: slices.Clone(changed.Changes)}
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
func (v *diffView) limitChanges() {
	shown := 0
	for i := range v.Kinds {
		k := &v.Kinds[i]
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
