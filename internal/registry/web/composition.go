package web

import (
	"errors"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/catalog/docs"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

type compositionView struct {
	release
	Name      string
	Composite composedKind
	Steps     []compositionStep
}

// A compositionStep is a step with the package of its Function and the kinds that it composes.
type compositionStep struct {
	Name, Function string
	// URL is the page of the Function; empty if it is not in the index.
	URL   string
	Kinds []composedKind
	// More is the number of resources that are not shown.
	More int
}

// A composedKind is a kind with the names of its resources.
type composedKind struct {
	docs.TypeRef
	// URL is the page of the kind; empty if it is not in the index.
	URL   string
	Names []string
}

// maxComposed is the maximum number of resources of a step that are shown.
const maxComposed = 500

// composition returns the page of a Composition.
func (h *Handler) composition(r *request, at release, name string) (*response, error) {
	c, err := r.view.Content(r.ctx, at.Repository(), at.Tag)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(c.Compositions, func(c docs.Composition) bool { return c.Name == name })
	if i < 0 {
		return nil, ErrNotFound
	}
	v := compositionView{release: at, Name: name, Composite: composedKind{TypeRef: c.Compositions[i].Composite}}
	if v.Composite.URL, err = typeURL(r, at, c, v.Composite.TypeRef); err != nil {
		return nil, err
	}
	for _, s := range c.Compositions[i].Steps {
		step, err := compositionStepOf(r, at, c, s)
		if err != nil {
			return nil, err
		}
		v.Steps = append(v.Steps, step)
	}
	return h.page(r, "composition", page{
		Title: name, Description: "The steps and resources of the Composition " + name + ".", Body: v,
		Crumbs: []link{{at.Repository(), packageURL(at.Repository(), tagUnlessNewest(at))}, {
			"Kinds", partURL(at.Repository(), at.Tag, "kinds"),
		}},
	})
}

// compositionStepOf returns a step, with its resources by kind in their order.
func compositionStepOf(r *request, at release, c *Content, s docs.Step) (compositionStep, error) {
	resources, more := shorten(s.Resources, maxComposed)
	out := compositionStep{Name: s.Name, Function: s.Function, More: more}
	var err error
	if out.URL, err = functionURL(r, at, s.Function); err != nil {
		return out, err
	}
	for _, resource := range resources {
		i := slices.IndexFunc(out.Kinds, func(k composedKind) bool { return k.TypeRef == resource.Base })
		if i < 0 {
			kind := composedKind{TypeRef: resource.Base}
			if kind.URL, err = typeURL(r, at, c, resource.Base); err != nil {
				return out, err
			}
			i, out.Kinds = len(out.Kinds), append(out.Kinds, kind)
		}
		if resource.Name != "" {
			out.Kinds[i].Names = append(out.Kinds[i].Names, resource.Name)
		}
	}
	return out, nil
}

// typeURL returns the page of a kind: in the version itself, or else in the newest version of its first provider; empty
// if there is none.
func typeURL(r *request, at release, c *Content, t docs.TypeRef) (string, error) {
	group, _, _ := strings.Cut(t.APIVersion, "/")
	for _, k := range c.Kinds {
		if k.Group == group && k.Kind == t.Kind {
			return packageKindURL(at.Repository(), at.Tag, group, t.Kind), nil
		}
	}
	if _, err := firstProvider(r, group, t.Kind); errors.Is(err, ErrNotFound) {
		return "", nil
	} else if err != nil {
		return "", err
	}
	return kindURL(group, t.Kind), nil
}

// functionURL returns the page of the package that an object with the name installs: a dependency of the version, or
// the only Function of the index whose repository has the name. It is empty if there is none.
func functionURL(r *request, at release, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	packages, err := r.view.Packages(r.ctx)
	if err != nil {
		return "", err
	}
	var found []string
	for _, p := range packages {
		if p.Type != string(xpkg.Function) || name != objectName(p.Repository) && name != lastSegment(p.Repository) {
			continue
		}
		for _, d := range at.Dependencies {
			if d.Package == p.Repository {
				return packageURL(p.Repository, ""), nil
			}
		}
		found = append(found, p.Repository)
	}
	if len(found) != 1 {
		return "", nil
	}
	return packageURL(found[0], ""), nil
}

// A compositionRow is a Composition in a list.
type compositionRow struct {
	docs.Composition
	URL string
	// Repository is the package with the Composition, unless it is the one of the page.
	Repository string
}

// compositionRows returns the Compositions of a version of a package.
func compositionRows(c *Content, repository, tag string) []compositionRow {
	out := make([]compositionRow, len(c.Compositions))
	for i, found := range c.Compositions {
		out[i] = compositionRow{Composition: found, URL: compositionURL(repository, tag, found.Name)}
	}
	return out
}

// compositionsOf returns the Compositions for a composite resource: those of its package, and those of packages that
// depend on it.
func compositionsOf(r *request, at release, group, composite string) ([]compositionRow, error) {
	c, err := r.view.Content(r.ctx, at.Repository(), at.Tag)
	if err != nil {
		return nil, err
	}
	all := compositionRows(c, at.Repository(), at.Tag)
	dependents, err := r.view.Dependents(r.ctx, at.Repository())
	if err != nil {
		return nil, err
	}
	for _, d := range dependents[:min(len(dependents), maxProviders)] {
		c, err := r.view.Content(r.ctx, d.Repository, d.Tag)
		if err != nil {
			continue // It cannot be read; its own page has the reason.
		}
		for _, row := range compositionRows(c, d.Repository, d.Tag) {
			row.Repository = d.Repository
			all = append(all, row)
		}
	}
	return slices.DeleteFunc(all, func(row compositionRow) bool {
		of, _, _ := strings.Cut(row.Composite.APIVersion, "/")
		return of != group || row.Composite.Kind != composite
	}), nil
}
