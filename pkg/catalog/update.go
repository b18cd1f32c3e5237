package catalog

import "slices"

// FactsFrom returns what a catalog states about the versions of a package, as facts without a Head. Together with the
// facts about the newest and the highest version, the package can be built again.
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

// isUnlisted reports whether only the reason is known of a package for which its repository could not be listed.
func (c *Catalog) isUnlisted(repository string) bool {
	row, history := c.exact(repository), c.History(repository)
	return row != nil && row.Error != nil && row.Error.Code != ErrUnindexable.Name &&
		(history == nil || len(history.Versions) == 0)
}

// KeepUnlisted returns the catalog with the content that a former one has of the packages whose repositories could not
// be listed.
func (c *Catalog) KeepUnlisted(former *Catalog) Catalog {
	of, kept := former.kindPositions(c.isUnlisted), map[string]*Entry{}
	for i := range c.Packages {
		name := c.Packages[i].Repository
		if e := former.entry(name, of); e != nil && c.isUnlisted(name) {
			kept[name] = e
		}
	}
	return c.Replace(kept)
}

// Replace returns the catalog with other entries of packages. A package whose entry is nil is removed. The other
// packages do not change, apart from their ranks. Without a change, the result shares the rows of the catalog.
func (c *Catalog) Replace(entries map[string]*Entry) Catalog {
	of := c.kindPositions(func(repository string) bool { return entries[repository] != nil })
	changed := make(map[string]*Entry, len(entries))
	for repository, e := range entries {
		if e == nil && c.exact(repository) != nil || e != nil && !c.hasEqual(e, of) {
			changed[repository] = e
		}
	}
	if len(changed) == 0 {
		return *c
	}
	return c.with(changed)
}

// with returns the catalog with changed entries, with ranks and counts.
func (c *Catalog) with(changed map[string]*Entry) Catalog {
	out := c.merge(changed)
	out.rank()
	out.count()
	return out
}

// Include returns the catalog with the packages of another one that it does not have itself, and the owners of API
// groups: those of groups that have no owner, and of which no package outside of the owner has kinds. Another index
// must not decide which package is preferred for a kind that the catalog has.
func (c *Catalog) Include(other *Catalog) Catalog {
	isNew := func(repository string) bool { return c.exact(repository) == nil }
	of, added := other.kindPositions(isNew), map[string]*Entry{}
	for i := range other.Packages {
		if repository := other.Packages[i].Repository; isNew(repository) {
			added[repository] = other.entry(repository, of)
		}
	}
	out := c.with(added)
	out.Config.includeOwners(c.uncontested(other.Config.Owners))
	return out
}

// merge returns the catalog with changed entries. Entries that are nil are removed. It sorts only what has changed, and
// the lists are in memory once.
func (c *Catalog) merge(changed map[string]*Entry) Catalog {
	out, added := Catalog{Config: c.Config}, 0
	for _, e := range changed {
		if e != nil {
			added += len(e.kinds)
		}
	}
	kinds := make([]Kind, 0, added)
	stays := func(repository string) bool {
		_, isChanged := changed[repository]
		return !isChanged
	}
	out.Packages = kept(c.Packages, len(changed), func(p *Package) bool { return stays(p.Repository) })
	out.Histories = kept(c.Histories, len(changed), func(h *History) bool { return stays(h.Repository) })
	out.Texts = kept(c.Texts, len(changed), func(t *Text) bool { return stays(t.Repository) })
	for _, e := range changed {
		if e == nil {
			continue
		}
		out.Packages, out.Histories = append(out.Packages, e.row), append(out.Histories, e.history)
		kinds = append(kinds, e.kinds...)
		if e.text != nil {
			out.Texts = append(out.Texts, *e.text)
		}
	}
	slices.SortFunc(out.Packages, comparePackages)
	slices.SortFunc(out.Histories, compareHistories)
	slices.SortFunc(out.Texts, compareTexts)
	slices.SortFunc(kinds, compareKinds)
	out.Kinds = mergeKinds(c.Kinds, kinds, stays)
	return out
}

// kept returns the rows that stay, in a list with space for some more.
func kept[T any](rows []T, more int, stays func(*T) bool) []T {
	out := make([]T, 0, len(rows)+more)
	for i := range rows {
		if stays(&rows[i]) {
			out = append(out, rows[i])
		}
	}
	return out
}

// mergeKinds returns the kinds of packages that stay and the added ones, both of which are sorted.
func mergeKinds(former, added []Kind, stays func(repository string) bool) []Kind {
	size := len(added)
	for i := range former {
		if stays(former[i].Repository) {
			size++
		}
	}
	if size == len(added) {
		return added
	}
	out := make([]Kind, 0, size)
	for i := range former {
		if !stays(former[i].Repository) {
			continue
		}
		for len(added) > 0 && compareKinds(added[0], former[i]) < 0 {
			out, added = append(out, added[0]), added[1:]
		}
		out = append(out, former[i])
	}
	return append(out, added...)
}

// SharesRows reports whether two catalogs have the same lists in memory, so that their rows are equal without a
// comparison.
func (c *Catalog) SharesRows(other *Catalog) bool {
	return isSameList(c.Packages, other.Packages) && isSameList(c.Kinds, other.Kinds) &&
		isSameList(c.Histories, other.Histories) &&
		isSameList(c.Texts, other.Texts)
}

func isSameList[T any](a, b []T) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }
