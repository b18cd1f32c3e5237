package indexes

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/indexer"
	"github.com/xpkg-dev/xpkg/internal/registry/web/fields"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/catalog/docs"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// shownDepth is the number of levels that are shown without --recursive.
const shownDepth = 3

// addFields adds the fields of a kind from the newest version of a package.
func (c *ExplainCmd) addFields(
	env *terminal.Env, a *access, set indexer.Set, view *kindView, p *catalog.Package, apiVersion string,
) error {
	_, in := set.Package(p.Repository)
	history, err := in.History(p.Repository)
	if err != nil {
		return err
	}
	r := schemaReader{
		access: a, pull: !c.Offline, repository: p.Repository, group: view.Group, kind: view.Kind, history: history,
	}
	progress := terminal.StartTask(env.Stderr, "reading %s:%s", p.Repository, p.Latest)
	defer progress.End()
	crd, err := r.read(env.Context, history.Find(p.Latest))
	if err != nil {
		return err
	}
	version := chooseVersion(crd, apiVersion)
	if version == nil {
		return indexer.ErrNothingFound.New(nil, "%s does not serve %s in %s", p.Repository, view.Kind, apiVersion)
	}
	view.Package, view.Version, view.APIVersion = p.Repository, p.Latest, view.Group+"/"+version.Name
	tree := fields.Tree(schemaOf(version))
	view.Description = tree.Description
	root := &tree
	if c.Field != "" {
		if root = tree.Find(fieldPath(c.Field)); root == nil {
			return indexer.ErrNothingFound.New(nil, "%s has no field %q", view.Kind, c.Field).
				WithDo("List the fields with `xpkg show %s.%s --recursive`.", view.Kind, view.Group)
		}
		view.Description = root.Description
	}
	view.Fields = c.listFields(root)
	if c.Since {
		return r.addSince(env.Context, view, version.Name)
	}
	return nil
}

// fieldPath returns a path in the form of package fields.
func fieldPath(s string) string { return "." + strings.TrimPrefix(s, ".") }

// listFields returns the fields below a field, down to the depth of the flags.
func (c *ExplainCmd) listFields(root *fields.Field) []fieldView {
	var out []fieldView
	var visit func(f *fields.Field, depth int)
	visit = func(f *fields.Field, depth int) {
		for i := range f.Children {
			child := &f.Children[i]
			if depth == 0 && root.Path == "" && slices.Contains([]string{"apiVersion", "kind", "metadata"}, child.Name) {
				continue
			}
			deep := !c.Recursive && depth+1 >= shownDepth
			below := 0
			if deep {
				below = child.Total
			}
			out = append(out, viewOfField(child, below))
			if !deep {
				visit(child, depth+1)
			}
		}
	}
	visit(root, 0)
	if len(out) == 0 && root.Path != "" {
		// The field has no fields below it.
		out = append(out, viewOfField(root, 0))
	}
	return out
}

type crdVersion = apiextensionsv1.CustomResourceDefinitionVersion

func schemaOf(v *crdVersion) *apiextensionsv1.JSONSchemaProps {
	if v.Schema == nil {
		return nil
	}
	return v.Schema.OpenAPIV3Schema
}

// chooseVersion returns the named API version, otherwise the storage version if it is served, otherwise the first
// served one.
func chooseVersion(crd *apiextensionsv1.CustomResourceDefinition, name string) *crdVersion {
	var best *crdVersion
	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		switch {
		case name != "" && v.Name == name:
			return v
		case name == "" && v.Served && (best == nil || v.Storage):
			best = v
		}
	}
	return best
}

// schemaReader reads the CRD of a kind in the versions of a package.
type schemaReader struct {
	*access
	pull                    bool
	repository, group, kind string
	history                 *catalog.History
}

// read returns the CRD of the kind in a version. A version without the kind has an empty CRD.
func (r *schemaReader) read(
	ctx context.Context, v *catalog.Version,
) (*apiextensionsv1.CustomResourceDefinition, error) {
	if v == nil {
		return nil, indexer.ErrNothingFound.New(nil, "the index does not contain the newest version of %s", r.repository)
	}
	ref, err := oci.ParseReference(r.repository, oci.ParseOptions{AllowUntagged: true})
	if err != nil {
		return nil, err
	}
	pkg, err := r.source.Read(ctx, fetch.Plain(ref.WithTag(v.Tag).WithDigest(v.Digest)), v.Digest, r.pull)
	if err != nil {
		return nil, err
	}
	pack, err := docs.FromPackage(pkg)
	if err != nil {
		return nil, err
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	for _, k := range pack.Kinds {
		if k.Group == r.group && k.Kind == r.kind {
			return crd, json.Unmarshal(k.CRD, crd)
		}
	}
	return crd, nil
}

// addSince sets the version since which each field exists. Versions between two that have the same fields are taken to
// have them too, so only about two versions are read for each change.
func (r *schemaReader) addSince(ctx context.Context, view *kindView, apiVersion string) error {
	versions := r.readable(apiVersion, view.Version)
	known := map[int]map[string]bool{}
	paths := func(i int) (map[string]bool, error) {
		if known[i] != nil {
			return known[i], nil
		}
		crd, err := r.read(ctx, versions[i])
		if err != nil {
			return nil, err
		}
		known[i] = map[string]bool{}
		if v := chooseVersion(crd, apiVersion); v != nil {
			tree := fields.Tree(schemaOf(v))
			known[i] = fields.Paths(&tree)
		}
		return known[i], nil
	}
	if len(versions) == 0 {
		return nil
	}
	if err := bisect(0, len(versions)-1, paths); err != nil {
		return err
	}
	var read []fields.Version
	for _, i := range slices.Sorted(maps.Keys(known)) {
		read = append(read, fields.Version{Tag: versions[i].Tag, Paths: known[i]})
	}
	since := fields.Since(read)
	for i := range view.Fields {
		view.Fields[i].Since = since[fieldPath(view.Fields[i].Path)]
	}
	return nil
}

// readable returns the versions up to a tag that serve the API version of the kind, from the first one since which all
// do.
func (r *schemaReader) readable(apiVersion, tag string) []*catalog.Version {
	last := slices.IndexFunc(r.history.Versions, func(v catalog.Version) bool { return v.Tag == tag })
	first := r.firstTag(apiVersion, last)
	var out []*catalog.Version
	for i := range last + 1 {
		v := &r.history.Versions[i]
		if len(out) == 0 && v.Tag != first {
			continue
		}
		if v.Error == nil && (v.Status == nil || v.Status.State != catalog.Removed) {
			out = append(out, v)
		}
	}
	return out
}

// bisect calls paths for both ends of a range, and for the versions at which the fields change within it.
func bisect(first, last int, paths func(int) (map[string]bool, error)) error {
	a, err := paths(first)
	if err != nil {
		return err
	}
	b, err := paths(last)
	if err != nil || last-first < 2 || maps.Equal(a, b) {
		return err
	}
	middle := (first + last) / 2
	if err := bisect(first, middle, paths); err != nil {
		return err
	}
	return bisect(middle, last, paths)
}

// firstTag returns the version since which the package has served the API version of the kind without interruption up
// to the version at a position.
func (r *schemaReader) firstTag(apiVersion string, last int) string {
	for _, k := range r.history.Kinds {
		if k.Group != r.group || k.Kind != r.kind {
			continue
		}
		for _, in := range k.Intervals {
			since := slices.IndexFunc(r.history.Versions, func(v catalog.Version) bool { return v.Tag == in.Since })
			until := slices.IndexFunc(r.history.Versions, func(v catalog.Version) bool { return v.Tag == in.Until })
			if in.Version == apiVersion && since <= last && (in.Until == "" || until > last) {
				return in.Since
			}
		}
	}
	return ""
}
