package index

import (
	"slices"

	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// Flags of the API versions of a definition.
const (
	flagServed = 1 << iota
	flagStorage
	flagDeprecated
	allFlags = flagServed | flagStorage | flagDeprecated
)

// Flags of definitions.
const (
	flagClaim = 1 << iota
	flagManaged
)

func (w *encoder) definitions(all []xpkg.Definition, version int) {
	w.number(len(all))
	for _, d := range all {
		for _, s := range []string{d.Group, d.Kind, d.Plural, d.Singular} {
			w.text(s)
		}
		w.number(len(d.ShortNames))
		for _, s := range d.ShortNames {
			w.text(s)
		}
		w.text(d.Scope)
		w.number(definitionFlags(d, version))
		w.number(len(d.Versions))
		for _, v := range d.Versions {
			w.text(v.Name)
			w.number(flagsOf(v))
		}
	}
}

func definitionFlags(d xpkg.Definition, version int) (flags int) {
	if d.Claim {
		flags |= flagClaim
	}
	if d.Managed && version >= withManaged {
		flags |= flagManaged
	}
	return flags
}

func flagsOf(v xpkg.DefinedVersion) int {
	flags := 0
	for flag, set := range map[int]bool{flagServed: v.Served, flagStorage: v.Storage, flagDeprecated: v.Deprecated} {
		if set {
			flags |= flag
		}
	}
	return flags
}

// definitions reads the kinds that an object defines. The result is never nil.
func (r *decoder) definitions(version int) []xpkg.Definition {
	most := flagClaim
	if version >= withManaged {
		most |= flagManaged
	}
	all := make([]xpkg.Definition, r.count(8))
	for i := range all {
		d := &all[i]
		d.Group, d.Kind, d.Plural, d.Singular = string(r.text()), string(r.text()), string(r.text()), string(r.text())
		for range r.count(1) {
			d.ShortNames = append(d.ShortNames, string(r.text()))
		}
		d.Scope = string(r.text())
		flags := r.number()
		r.short = r.short || flags > most
		d.Claim, d.Managed = flags&flagClaim > 0, flags&flagManaged > 0
		for range r.count(2) {
			d.Versions = append(d.Versions, r.version())
		}
	}
	return all
}

func (r *decoder) version() xpkg.DefinedVersion {
	v := xpkg.DefinedVersion{Name: string(r.text())}
	flags := r.number()
	r.short = r.short || flags > allFlags
	v.Served, v.Storage, v.Deprecated = flags&flagServed > 0, flags&flagStorage > 0, flags&flagDeprecated > 0
	return v
}

func sameDefinitions(a, b []xpkg.Definition, version int) bool {
	return slices.EqualFunc(a, b, func(a, b xpkg.Definition) bool {
		return a.Group == b.Group && a.Kind == b.Kind && a.Plural == b.Plural && a.Singular == b.Singular &&
			a.Scope == b.Scope &&
			a.Claim == b.Claim && (version < withManaged || a.Managed == b.Managed) &&
			slices.Equal(a.ShortNames, b.ShortNames) && slices.Equal(a.Versions, b.Versions)
	})
}
