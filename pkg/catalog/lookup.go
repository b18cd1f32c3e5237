package catalog

import (
	"slices"
	"strings"
)

// Lookup returns the kinds with a name, in any case: the kind, or the plural, singular or a short name. Other names
// than the kind are only used if no kind has the name. An empty group means every group.
func (c *Catalog) Lookup(group, kind string) []Kind {
	lower := strings.ToLower(kind)
	first, _ := slices.BinarySearchFunc(
		c.Kinds, lower, func(k Kind, s string) int { return strings.Compare(strings.ToLower(k.Kind), s) },
	)
	var out []Kind
	for _, k := range c.Kinds[first:] {
		if !strings.EqualFold(k.Kind, lower) {
			break
		}
		if group == "" || k.Group == group {
			out = append(out, k)
		}
	}
	if len(out) > 0 {
		return out
	}
	for i := range c.Kinds {
		if k := &c.Kinds[i]; (group == "" || k.Group == group) && k.hasName(lower) {
			out = append(out, *k)
		}
	}
	return out
}

// hasName reports whether a lower-case name is the plural, the singular or a short name of the kind.
func (k *Kind) hasName(lower string) bool {
	return k.Plural == lower || k.Singular == lower || slices.Contains(k.ShortNames, lower)
}

// Package returns the row of a package, or nil. The repository may be an alias.
func (c *Catalog) Package(repository string) *Package {
	if i, found := search(c.Packages, repository, func(p Package) string { return p.Repository }); found {
		return &c.Packages[i]
	}
	for i := range c.Packages {
		if slices.Contains(c.Packages[i].Aliases, repository) {
			return &c.Packages[i]
		}
	}
	return nil
}

// History returns the history of a package, or nil.
func (c *Catalog) History(repository string) *History {
	i, found := search(c.Histories, repository, func(h History) string { return h.Repository })
	if !found {
		return nil
	}
	return &c.Histories[i]
}

// KindsOf returns the kinds of the newest version of a package.
func (c *Catalog) KindsOf(repository string) []Kind {
	var out []Kind
	for i := range c.Kinds {
		if c.Kinds[i].Repository == repository {
			out = append(out, c.Kinds[i])
		}
	}
	return out
}

// hasNamesOf reports whether two kinds have the same names apart from the group.
func (k *Kind) hasNamesOf(o *Kind) bool {
	return k.Kind == o.Kind && k.Plural == o.Plural && k.Singular == o.Singular && slices.Equal(k.ShortNames, o.ShortNames)
}
