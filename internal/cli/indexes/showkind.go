package indexes

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/indexer"
	"github.com/xpkg-dev/xpkg/internal/registry/web/fields"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// kindView is the description of a kind.
type kindView struct {
	Kind       string         `json:"kind"`
	Group      string         `json:"group"`
	Plural     string         `json:"plural"`
	ShortNames []string       `json:"shortNames,omitempty"`
	Scope      string         `json:"scope,omitempty"`
	Providers  []providerView `json:"providers"`
	// Package, Version and APIVersion are those of the fields.
	Package     string      `json:"package,omitempty"`
	Version     string      `json:"version,omitempty"`
	APIVersion  string      `json:"apiVersion,omitempty"`
	Description string      `json:"description,omitempty"`
	Fields      []fieldView `json:"fields,omitempty"`
}

// providerView is a package that provides a kind.
type providerView struct {
	Package    string   `json:"package"`
	Version    string   `json:"version,omitempty"`
	Role       string   `json:"role"`
	Served     []string `json:"served"`
	Since      string   `json:"since,omitempty"`
	Kinds      int      `json:"kinds"`
	Deprecated bool     `json:"deprecated,omitempty"`
}

// showKind prints a kind, or the kinds with a name that several groups have.
func (c *ExplainCmd) showKind(env *terminal.Env, a *access, set indexer.Set) error {
	name, apiVersion, _ := strings.Cut(c.Name, "/")
	kind, group, _ := strings.Cut(name, ".")
	kinds, err := set.Lookup(group, kind)
	if err != nil {
		return err
	}
	if len(kinds) == 0 {
		return c.unknown(set, kind)
	}
	slices.SortStableFunc(kinds, func(a, b catalog.Kind) int { return cmp.Compare(rankOf(set, a), rankOf(set, b)) })
	if groups := groupsOf(kinds); len(groups) > 1 {
		return c.listGroups(env, set, kinds, groups)
	}
	view := viewOfKind(set, kinds)
	source, err := c.choose(set, kinds)
	if err != nil {
		return err
	}
	if err := c.addFields(env, a, set, &view, source, apiVersion); err != nil {
		if errors.Is(err, indexer.ErrNothingFound) {
			return err
		}
		fmt.Fprintf(env.Stderr, "warning: the fields cannot be shown: %s\n", terminal.Safe(err.Error()))
	}
	return c.PrintText(
		env.Stdout, view, []string{view.Kind + "." + view.Group}, func(w io.Writer) { view.write(w, c.Since) },
	)
}

// rankOf returns 0 for a kind of a package with a release, and 1 for others, which are listed after it.
func rankOf(set indexer.Set, k catalog.Kind) int {
	if p, _ := set.Package(k.Repository); p != nil && p.Released() {
		return 0
	}
	return 1
}

// unknown returns the error for a name that is neither a kind nor a package.
func (c *ExplainCmd) unknown(set indexer.Set, kind string) error {
	err := indexer.ErrNothingFound.New(nil, "%q is neither a kind nor a package of %s", c.Name, locations(set))
	similar, failed := set.Suggest(kind)
	if failed != nil || len(similar) == 0 {
		return err
	}
	return err.WithDo("Similar kinds: %s.", strings.Join(similar, ", "))
}

func groupsOf(kinds []catalog.Kind) []string {
	var out []string
	for _, k := range kinds {
		out = append(out, k.Group)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// listGroups prints the groups that have a kind.
func (c *ExplainCmd) listGroups(env *terminal.Env, set indexer.Set, kinds []catalog.Kind, groups []string) error {
	views := []kindView{}
	var rows [][]string
	var names []string
	for _, g := range groups {
		of := slices.DeleteFunc(slices.Clone(kinds), func(k catalog.Kind) bool { return k.Group != g })
		v := viewOfKind(set, of)
		views, names = append(views, v), append(names, v.Kind+"."+v.Group)
		for _, p := range v.Providers {
			rows = append(rows, []string{v.Kind + "." + v.Group, p.Package, p.Version, p.Since})
		}
	}
	return c.PrintText(env.Stdout, views, names, func(w io.Writer) {
		view.WriteTable(w, []string{"NAME", "PACKAGE", "VERSION", "SINCE"}, rows)
		fmt.Fprintf(
			w, "\n%d API groups have this kind. Name one of them, for example `xpkg show %s`.\n", len(groups),
			views[0].Kind+"."+groups[0],
		)
	})
}

func viewOfKind(set indexer.Set, kinds []catalog.Kind) kindView {
	k := kinds[0]
	v := kindView{Kind: k.Kind, Group: k.Group, Plural: k.Plural, ShortNames: k.ShortNames, Scope: k.Scope}
	for _, k := range kinds {
		p, _ := set.Package(k.Repository)
		if p == nil {
			continue
		}
		v.Providers = append(v.Providers, providerView{
			Package: k.Repository, Version: p.Latest, Role: roleText(k.Role), Served: k.Served, Since: k.Since, Kinds: p.Kinds,
			Deprecated: p.Deprecated,
		})
	}
	return v
}

func roleText(r catalog.Role) string {
	switch r {
	case catalog.Composite:
		return "composite resource"
	case catalog.Claim:
		return "claim"
	case catalog.Input:
		return "input of a Function"
	case catalog.Elsewhere:
		return "defined elsewhere"
	}
	return "provides"
}

// choose returns the package whose schema is shown: the named one, otherwise one that is not deprecated, has a release
// and has few kinds.
func (c *ExplainCmd) choose(set indexer.Set, kinds []catalog.Kind) (*catalog.Package, error) {
	var rows []*catalog.Package
	for _, k := range kinds {
		p, _ := set.Package(k.Repository)
		if p == nil ||
			c.Package != "" && p.Repository != oci.RepositoryName(c.Package) && shortName(p.Repository) != c.Package {
			continue
		}
		rows = append(rows, p)
	}
	if len(rows) == 0 {
		return nil, indexer.ErrNothingFound.New(nil, "%s does not provide %s", c.Package, kinds[0].Kind)
	}
	return slices.MinFunc(rows, func(a, b *catalog.Package) int {
		deprecated := 0
		if a.Deprecated != b.Deprecated {
			deprecated = 1
			if b.Deprecated {
				deprecated = -1
			}
		}
		released := 0
		if a.Released() != b.Released() {
			released = 1
			if a.Released() {
				released = -1
			}
		}
		return cmp.Or(deprecated, released, cmp.Compare(a.Kinds, b.Kinds), cmp.Compare(a.Repository, b.Repository))
	}), nil
}

func (v *kindView) write(w io.Writer, since bool) {
	rows := [][]string{{"Kind", v.Kind}, {"Group", v.Group}, {"Plural", v.Plural}}
	if len(v.ShortNames) > 0 {
		rows = append(rows, []string{"Short names", strings.Join(v.ShortNames, ", ")})
	}
	rows = append(rows, []string{"Scope", v.Scope})
	view.WriteTable(w, nil, rows)
	fmt.Fprintln(w)
	rows = nil
	for _, p := range v.Providers {
		role := p.Role
		if p.Deprecated {
			role += ", deprecated"
		}
		rows = append(rows, []string{p.Package, p.Version, role, strings.Join(p.Served, ","), p.Since, fmt.Sprint(p.Kinds)})
	}
	view.WriteTable(w, []string{"PACKAGE", "VERSION", "ROLE", "SERVED", "SINCE", "KINDS"}, rows)
	if v.APIVersion == "" {
		return
	}
	fmt.Fprintf(w, "\n%s of %s:%s\n", v.APIVersion, v.Package, v.Version)
	if v.Description != "" {
		fmt.Fprintf(w, "%s\n", terminal.Safe(v.Description))
	}
	v.writeFields(w, since)
}

func (v *kindView) writeFields(w io.Writer, since bool) {
	header := []string{"FIELD", "TYPE", "NOTE"}
	if since {
		header = []string{"FIELD", "TYPE", "SINCE", "NOTE"}
	}
	var rows [][]string
	for _, f := range v.Fields {
		row := []string{f.Path, f.Type}
		if since {
			row = append(row, f.Since)
		}
		rows = append(rows, append(row, f.note()))
	}
	fmt.Fprintln(w)
	view.WriteTable(w, header, rows)
}

// fieldView is a field of a kind.
type fieldView struct {
	Path        string   `json:"path"`
	Type        string   `json:"type"`
	Since       string   `json:"since,omitempty"`
	Required    bool     `json:"required,omitempty"`
	Immutable   bool     `json:"immutable,omitempty"`
	Deprecated  bool     `json:"deprecated,omitempty"`
	Default     string   `json:"default,omitempty"`
	Enum        []string `json:"enum,omitempty"`
	Constraints []string `json:"constraints,omitempty"`
	Description string   `json:"description,omitempty"`
	// Below is the number of fields below the field that are not listed.
	Below int `json:"below,omitempty"`
}

// maxNote is the length of the description of a field in the text.
const maxNote = 90

// note returns the properties and the description of a field in one line.
func (f *fieldView) note() string {
	var out []string
	for _, p := range []struct {
		name string
		set  bool
	}{{"required", f.Required}, {"immutable", f.Immutable}, {"deprecated", f.Deprecated}} {
		if p.set {
			out = append(out, p.name)
		}
	}
	if f.Default != "" {
		out = append(out, "default "+f.Default)
	}
	if len(f.Enum) > 0 {
		out = append(out, "one of "+strings.Join(f.Enum[:min(len(f.Enum), 8)], ", "))
	}
	if f.Below > 0 {
		out = append(out, fmt.Sprintf("%d fields below", f.Below))
	}
	text := wording.FirstSentence(f.Description, maxNote)
	if text != "" {
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

func viewOfField(f *fields.Field, below int) fieldView {
	return fieldView{
		Path: strings.TrimPrefix(f.Path, "."), Type: f.Type, Required: f.Required || f.RequiredToCreate,
		Immutable: f.Immutable, Deprecated: f.Deprecated,
		Default: f.Default, Enum: f.Enum, Constraints: f.Constraints, Description: f.Description, Below: below,
	}
}
