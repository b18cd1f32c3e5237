package catalog

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// Build returns the catalog of facts. The order of the facts does not matter, and repeated facts count once. It fails
// with ErrConflictingFacts if two facts for one tag differ, and with ErrIncompleteFacts if the Head of the newest
// version of a package is missing. A package with more than an index can contain is in the catalog with the reason
// only. Facts without a tag describe a repository whose versions cannot be listed; they count if there are no other
// facts about it. Of the configuration, Build sets the format and the counts; a configuration without shards gets the
// number of shards that suits the number of packages.
func Build(config Config, facts []Facts) (Catalog, error) {
	byRepository := map[string][]Facts{}
	for _, f := range facts {
		byRepository[f.Repository] = append(byRepository[f.Repository], f)
	}
	entries := make(map[string]*Entry, len(byRepository))
	for repository, of := range byRepository {
		e, err := NewEntry(of)
		if err != nil {
			return Catalog{}, err
		}
		entries[repository] = e
	}
	return (&Catalog{Config: config}).with(entries), nil
}

func (c *Catalog) count() {
	c.Config.Format = Format
	c.Config.Counts = Counts{Packages: len(c.Packages), Kinds: len(c.Kinds)}
	for i := range c.Histories {
		c.Config.Counts.Versions += len(c.Histories[i].Versions)
	}
	if c.Config.Shards == 0 {
		c.Config.Shards = shardsFor(len(c.Packages))
	}
}

// maxShards is the highest number of shards.
const maxShards = 64

// shardsFor returns the number of shards for a number of packages: a power of two, with about four packages in a shard.
func shardsFor(packages int) int {
	n := 1
	for n < maxShards && packages > 4*n {
		n *= 2
	}
	return n
}

// rank counts the dependents of every package. It changes the list of packages, which must be new.
func (c *Catalog) rank() {
	names := map[string]int{}
	for i, p := range c.Packages {
		names[p.Repository] = i
		c.Packages[i].Rank = 0
	}
	for i, p := range c.Packages {
		for _, alias := range p.Aliases {
			if _, exists := names[alias]; !exists {
				names[alias] = i
			}
		}
	}
	for i := range c.Histories {
		for target := range c.Histories[i].targets(names, c.Packages[i].Latest) {
			if target != i {
				c.Packages[target].Rank++
			}
		}
	}
}

// targets returns the packages that a version requires.
func (h *History) targets(names map[string]int, tag string) map[int]bool {
	out := map[int]bool{}
	v := h.Find(tag)
	if v == nil {
		return nil
	}
	for _, d := range v.Dependencies {
		if target, known := names[d.Package]; known && !d.Optional {
			out[target] = true
		}
	}
	return out
}

// NewEntry returns the entry of one package from the facts of all its versions, as [Build] does; nil without facts.
func NewEntry(facts []Facts) (*Entry, error) {
	if len(facts) == 0 {
		return nil, nil
	}
	if err := checkNumbers(facts); err != nil {
		return excluded(facts[0].Repository, err), nil
	}
	e, err := buildEntry(facts)
	if err != nil {
		return nil, err
	}
	if err := e.check(); err != nil {
		return excluded(facts[0].Repository, err), nil
	}
	if !e.text.fits() {
		e.text = nil
	}
	e.compact()
	return &e, nil
}

func buildEntry(all []Facts) (Entry, error) {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b Facts) int {
		return cmp.Or(compareTags(a.Version.Tag, b.Version.Tag), compareHeads(a.Head, b.Head))
	})
	for i := 1; i < len(all); i++ {
		if a, b := &all[i-1], &all[i]; a.Version.Tag == b.Version.Tag && !sameFacts(a, b) {
			return Entry{}, ErrConflictingFacts.New(nil, "there are different facts about %s:%s", b.Repository, b.Version.Tag)
		}
	}
	all = slices.CompactFunc(all, func(a, b Facts) bool { return a.Version.Tag == b.Version.Tag })
	if all[0].Version.Tag == "" && len(all) > 1 {
		all = all[1:]
	} else if all[0].Version.Tag == "" {
		return unlisted(all[0]), nil
	}
	e := Entry{history: History{Repository: all[0].Repository}}
	for _, f := range all {
		e.history.Versions = append(e.history.Versions, f.Version)
	}
	if err := e.history.retract(all); err != nil {
		return Entry{}, err
	}
	e.history.Kinds = intervals(e.history.Versions, all)
	return e, e.describe(all)
}

// excluded returns the entry of a package that an index cannot contain: its name, and the reason.
func excluded(repository string, err error) *Entry {
	e := unlisted(Failed(repository, "", oci.Digest{}, time.Time{}, IndexError{
		Code: ErrUnindexable.Name, Message: err.Error(),
	}))
	return &e
}

// unlisted returns the entry of a repository whose versions cannot be listed.
func unlisted(f Facts) Entry {
	return Entry{row: Package{Repository: f.Repository, Error: f.Version.Error}, history: History{
		Repository: f.Repository,
	}}
}

// Missing returns the positions of the facts whose Head Build needs and that have none: those of the highest and of the
// newest version. The caller adds a Head and asks again, because the highest version can retract the newest one.
func Missing(facts []Facts) []int {
	if len(facts) == 0 || checkNumbers(facts) != nil {
		return nil
	}
	_, err := buildEntry(facts)
	var missing *missingHead
	if !errors.As(err, &missing) {
		return nil
	}
	return []int{slices.IndexFunc(facts, func(f Facts) bool { return f.Version.Tag == missing.tag })}
}

// missingHead is the cause of ErrIncompleteFacts.
type missingHead struct{ tag string }

func (m *missingHead) Error() string { return "it was not read" }

func incomplete(repository, tag string) error {
	return ErrIncompleteFacts.New(&missingHead{tag}, "the description of %s:%s is missing", repository, tag)
}

// compareHeads puts facts with a Head first, so that they are kept.
func compareHeads(a, b *Head) int { return compareBool(a == nil, b == nil) }

// describe sets the row of the package and its kinds from the newest version.
func (e *Entry) describe(all []Facts) error {
	versions := e.history.Versions
	usable := func(v *Version) bool { return !v.Status.Excludes() }
	latest := newest(versions, func(v *Version) bool { return usable(v) && v.Error == nil })
	shown := latest
	if shown < 0 {
		shown = newest(versions, (*Version).indexed)
	}
	e.row = Package{}
	if shown >= 0 {
		if all[shown].Head == nil {
			return incomplete(e.history.Repository, versions[shown].Tag)
		}
		e.row = all[shown].Head.Package
	}
	e.row.Repository, e.row.Latest, e.row.Kinds, e.row.Rank, e.row.Updated = e.history.Repository, "", 0, 0, time.Time{}
	e.setStatus(shown)
	if last := newest(versions, usable); last >= 0 {
		e.row.Error = versions[last].Error
	}
	if latest < 0 {
		return nil
	}
	e.row.Latest, e.row.Updated, e.row.Kinds = versions[latest].Tag, versions[latest].Created, len(all[latest].Head.Kinds)
	e.kinds, e.text = slices.Clone(all[latest].Head.Kinds), all[latest].Head.Text
	position := e.history.positions()
	for i := range e.kinds {
		e.kinds[i].Since = e.history.since(&e.kinds[i], latest, position)
	}
	return nil
}

// setStatus sets the status of the package from the status of the version at a position. A package without any usable
// version is deprecated.
func (e *Entry) setStatus(shown int) {
	versions := e.history.Versions
	if shown < 0 {
		shown = newest(versions, func(v *Version) bool { return v.Status != nil })
	}
	e.row.Deprecated, e.row.ReplacedBy, e.row.Error = false, "", nil
	if shown >= 0 && versions[shown].Status != nil {
		e.row.Deprecated, e.row.ReplacedBy = true, versions[shown].Status.ReplacedBy
	}
}
