package catalog

import (
	"maps"
	"slices"
)

// FactsFrom returns what a catalog states about the versions of a package, as facts without a Head. Together with the facts
// about the newest and the highest version, the package can be built again.
func (c *Catalog) FactsFrom(repository string) ([]Facts, error) {
	history := c.History(repository)
	if history == nil {
		return nil, nil
	}
	served, err := history.served()
	if err != nil {
		return nil, err
	}
	out := make([]Facts, len(history.Versions))
	for i, v := range history.Versions {
		out[i] = Facts{Repository: repository, Version: v, Served: served[i]}
	}
	return out, nil
}

// exact returns the row of a package, or nil. Aliases are not considered.
func (c *Catalog) exact(repository string) *Package {
	i, found := search(c.Packages, repository, func(p Package) string { return p.Repository })
	if !found {
		return nil
	}
	return &c.Packages[i]
}

// Replace returns the catalog with packages built from new facts. A package with an empty list of facts is removed. The other
// packages do not change, apart from their ranks.
func (c *Catalog) Replace(packages map[string][]Facts) (Catalog, error) {
	entries := c.entries()
	for _, repository := range slices.Sorted(maps.Keys(packages)) {
		facts := packages[repository]
		if len(facts) == 0 {
			delete(entries, repository)
			continue
		}
		e, err := buildPackage(facts)
		if err != nil {
			return Catalog{}, err
		}
		entries[repository] = &e
	}
	out := Catalog{Config: c.Config}
	for _, e := range entries {
		out.add(*e)
	}
	out.finish()
	return out, nil
}

// Include returns the catalog with the packages of another one that it does not have itself, and the owners of API groups.
func (c *Catalog) Include(other *Catalog) Catalog {
	entries := c.entries()
	for repository, e := range other.entries() {
		if _, exists := entries[repository]; !exists {
			entries[repository] = e
		}
	}
	out := Catalog{Config: c.Config}
	out.Config.includeOwners(other.Config.Owners)
	for _, e := range entries {
		out.add(*e)
	}
	out.finish()
	return out
}

// SharesRows reports whether two catalogs have the same lists in memory, so that their rows are equal without a comparison.
func (c *Catalog) SharesRows(other *Catalog) bool {
	return isSameList(c.Packages, other.Packages) && isSameList(c.Kinds, other.Kinds) && isSameList(c.Histories, other.Histories) &&
		isSameList(c.Texts, other.Texts)
}

func isSameList[T any](a, b []T) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }
