package firstgen

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// attached is metadata that applies to CRDs by the position of its file.
type attached[T any] struct {
	path string
	// id is the kind that the file states; empty if the file states none.
	id    string
	value T
}

// kind returns the name of the kind to which the file applies, in lower case; empty for every kind.
func (a attached[T]) kind() string {
	if a.id != "" {
		return strings.ToLower(a.id)
	}
	base := path.Base(a.path)
	if base == groupFile || slices.Contains([]string{resourceSuffix, uiSchemaSuffix}, base) ||
		strings.HasPrefix(base, "icon.") {
		return ""
	}
	if i := strings.IndexAny(base, ".-_"); i >= 0 {
		base = base[:i]
	}
	return strings.ToLower(base)
}

// metadata is the metadata of the resources folder.
type metadata struct {
	groups    []attached[GroupMeta]
	resources []attached[ResourceMeta]
	icons     []attached[Icon]
	uiSchemas []attached[string]
	// used are the files that apply to a CRD.
	used map[string]bool
	// preceded are the files that would apply to a CRD if another file did not precede them, with the reason.
	preceded map[string]string
	// reported are the files with fields that have no effect.
	reported map[string]bool
}

// nearest returns the metadata that applies to a CRD, first the one that takes precedence: for each file with a version
// of the CRD, highest version first, the files of the deepest folder above it, where files for the kind precede files
// for every kind.
func nearest[T any](m *metadata, all []attached[T], r *Resource) []attached[T] {
	var out []attached[T]
	for _, s := range r.sources {
		best := -1
		var found []attached[T]
		for _, a := range all {
			rank, applies := a.rank(r, s.file)
			switch {
			case !applies:
			case rank > best:
				precede(m, found, a, r)
				best, found = rank, []attached[T]{a}
			case rank == best:
				found = append(found, a)
			default:
				precede(m, []attached[T]{a}, found[0], r)
			}
		}
		for _, a := range found {
			if !slices.ContainsFunc(out, func(b attached[T]) bool { return a.path == b.path }) {
				out = append(out, a)
			}
		}
	}
	for _, a := range out {
		m.used[a.path] = true
	}
	return out
}

// rank returns the precedence of a metadata file for a CRD in a file, and false if it does not apply.
func (a attached[T]) rank(r *Resource, file string) (int, bool) {
	kind, dir, names := a.kind(), path.Dir(a.path), r.CRD.Spec.Names
	rank := 2 * strings.Count(dir, "/")
	if kind != "" {
		rank++
	}
	applies := isBelow(path.Dir(file), dir) &&
		(kind == "" || slices.Contains([]string{strings.ToLower(names.Kind), names.Plural, names.Singular}, kind))
	if g, ok := any(a.value).(GroupMeta); ok && g.Group != "" && !strings.EqualFold(g.Group, r.CRD.Spec.Group) {
		applies = false
	}
	return rank, applies
}

// isBelow reports whether dir is the folder parent or below it.
func isBelow(dir, parent string) bool { return dir == parent || strings.HasPrefix(dir, parent+"/") }

// precede records that a file precedes others for a CRD.
func precede[T any](m *metadata, others []attached[T], by attached[T], r *Resource) {
	for _, a := range others {
		if m.preceded[a.path] == "" {
			m.preceded[a.path] = fmt.Sprintf("the file has no effect: %s precedes it for CRD %s", shown(by.path), r.CRD.Name)
		}
	}
}

// combined returns the fields of metadata files for one CRD, and reports fields that an earlier file states with
// another value.
func combined[T any](r *reader, m *metadata, all []attached[T], res *Resource) T {
	var out T
	into := reflect.ValueOf(&out).Elem()
	files := make([]string, into.NumField())
	for _, a := range all {
		from := reflect.ValueOf(a.value)
		var lost []string
		by := ""
		for i := range files {
			name, _, _ := strings.Cut(into.Type().Field(i).Tag.Get("json"), ",")
			switch value, has := from.Field(i).String(), into.Field(i).String(); {
			case has == "" && !(name == "overview" && into.FieldByName("Description").String() != ""): // Either is the overview.
				into.Field(i).SetString(value)
				files[i] = a.path
			case value != "" && value != has && name != "id" && name != "group":
				lost, by = append(lost, name), files[i]
			}
		}
		if len(lost) > 0 && !m.reported[a.path] {
			m.reported[a.path] = true
			r.report(xpkg.Warning, ErrUnusedMetadata, a.path, 0, "%s of the file has no effect on CRD %s: %s takes precedence",
				strings.Join(lost, ", "), res.CRD.Name, shown(by))
		}
	}
	return out
}

// shown returns a path as it is if it is printable, and quoted otherwise.
func shown(path string) string {
	if q := strconv.Quote(path); q != `"`+path+`"` {
		return q
	}
	return path
}

// iconOf returns the first icon, or nil, and reports icons of other folders, which are for other versions of the CRD.
func (r *reader) iconOf(m *metadata, all []attached[Icon], res *Resource) *Icon {
	if len(all) == 0 {
		return nil
	}
	first := all[0]
	dirs := []string{path.Dir(first.path)}
	for _, a := range all[1:] {
		if dir := path.Dir(a.path); !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
			if !bytes.Equal(a.value.Data, first.value.Data) && !m.reported[a.path] {
				m.reported[a.path] = true
				r.report(
					xpkg.Warning, ErrUnusedMetadata, a.path, 0, "the icon has no effect on CRD %s: %s takes precedence", res.CRD.Name,
					shown(first.path),
				)
			}
		}
	}
	return &first.value
}

// concatenated returns the documents of all UI schemas, without repetition of equal files.
func concatenated(all []attached[string]) string {
	var b strings.Builder
	for i, a := range all {
		if slices.ContainsFunc(all[:i], func(other attached[string]) bool { return other.value == a.value }) {
			continue
		}
		if text := b.String(); text != "" {
			if !strings.HasSuffix(text, "\n") {
				b.WriteByte('\n')
			}
			if !strings.HasPrefix(a.value, "---") {
				b.WriteString("---\n")
			}
		}
		b.WriteString(a.value)
	}
	return b.String()
}

// reportUnused reports metadata that applies to no CRD, or that other files precede.
func (r *reader) reportUnused(m *metadata) {
	unused := map[string]string{}
	note := func(path string, icon bool) {
		if reason := m.preceded[path]; !m.used[path] && !(icon && reason != "") {
			unused[path] = cmp.Or(reason, "the file applies to no CRD")
		}
	}
	for _, a := range m.groups {
		note(a.path, false)
	}
	for _, a := range m.resources {
		note(a.path, false)
	}
	for _, a := range m.uiSchemas {
		note(a.path, false)
	}
	for _, a := range m.icons {
		note(a.path, true)
	}
	for _, p := range slices.Sorted(maps.Keys(unused)) {
		r.report(xpkg.Warning, ErrUnusedMetadata, p, 0, "%s", unused[p])
	}
}
