package catalog

import (
	"slices"
)

// Fold returns the catalog after events. The events must belong to the catalog: Fold(a, Diff(a, b)) equals b, apart
// from the configuration, of which Fold changes the sources and the counts only. It fails with ErrInvalidIndex for
// events that do not follow their format or that contradict the catalog.
func Fold(c *Catalog, events []Event) (Catalog, error) {
	f := folding{config: c.Config, entries: map[string]*Entry{}}
	f.config.Sources = slices.Clone(c.Config.Sources)
	names := map[string]bool{}
	for i := range events {
		names[events[i].Repository] = true
	}
	of := c.kindPositions(func(repository string) bool { return names[repository] })
	for i := range events {
		if err := f.apply(c, of, &events[i]); err != nil {
			return Catalog{}, err
		}
	}
	out := c.merge(f.entries)
	out.Config = f.config
	out.count()
	return out, nil
}

// folding are the changes by events.
type folding struct {
	config Config
	// entries are the packages with events, which may be changed; nil for one that was removed.
	entries map[string]*Entry
}

// own returns the entry of a package for changing it. It is created if it does not exist.
func (f *folding) own(c *Catalog, of positions, repository string) *Entry {
	if e := f.entries[repository]; e != nil {
		return e
	}
	var e *Entry
	if _, removed := f.entries[repository]; !removed {
		e = c.entry(repository, of)
	}
	if e == nil {
		e = &Entry{row: Package{Repository: repository}, history: History{Repository: repository}}
	}
	e.history.Versions, e.history.Kinds = slices.Clone(e.history.Versions), slices.Clone(e.history.Kinds)
	f.entries[repository] = e
	return e
}

func (f *folding) apply(c *Catalog, of positions, e *Event) error {
	if err := e.check(); err != nil {
		return err
	}
	switch e.Type {
	case SourceAdded:
		f.config.Sources = append(f.config.Sources, *e.Source)
		return nil
	case Forget:
		f.entries[e.Repository] = nil
		return nil
	}
	into := f.own(c, of, e.Repository)
	into.applyVersion(e)
	if e.Package != nil {
		into.row = *e.Package
	}
	if e.Text != nil {
		into.text = e.Text
		if e.Text.empty() {
			into.text = nil
		}
	}
	into.kinds = replaceRows(into.kinds, e.Kinds, e.GoneKinds, (*Kind).key, compareKinds)
	into.history.Kinds = replaceRows(
		into.history.Kinds, e.Histories, e.GoneHistories, (*KindHistory).key, compareKindHistories,
	)
	return nil
}

// applyVersion replaces the row of the version, or removes it.
func (e *Entry) applyVersion(ev *Event) {
	if ev.Tag == "" {
		return
	}
	i, found := slices.BinarySearchFunc(
		e.history.Versions, ev.Tag, func(v Version, tag string) int { return compareTags(v.Tag, tag) },
	)
	switch {
	case ev.Version == nil && found:
		e.history.Versions = slices.Delete(e.history.Versions, i, i+1)
	case ev.Version == nil:
	case found:
		e.history.Versions[i] = *ev.Version
	default:
		e.history.Versions = slices.Insert(e.history.Versions, i, *ev.Version)
	}
}

// replaceRows returns the rows with the changed ones, and without those that are gone.
func replaceRows[T any](rows, changed []T, gone []KindKey, key func(*T) KindKey, compare func(a, b T) int) []T {
	if len(changed)+len(gone) == 0 {
		return rows
	}
	drop := make(map[KindKey]bool, len(changed)+len(gone))
	for i := range changed {
		drop[key(&changed[i])] = true
	}
	for _, k := range gone {
		drop[k] = true
	}
	rows = slices.DeleteFunc(rows, func(row T) bool { return drop[key(&row)] })
	rows = append(rows, changed...)
	slices.SortFunc(rows, compare)
	return rows
}

func (t *Text) empty() bool { return t.Readme == "" && len(t.Kinds) == 0 }

// check fails with ErrInvalidIndex if the event is incomplete or names other packages than its own.
func (e *Event) check() error {
	wrong := func(format string, args ...any) error {
		return ErrInvalidIndex.New(nil, "an event of type %.50q "+format, append([]any{string(e.Type)}, args...)...)
	}
	switch e.Type {
	case SourceAdded:
		if e.Source == nil {
			return wrong("has no source")
		}
		return nil
	case Publish, Yank, Unyank, Retract, Deprecate, Move:
		if e.Version == nil || e.Tag == "" {
			return wrong("has no version")
		}
	case Remove:
		if e.Tag == "" {
			return wrong("has no version")
		}
	case Update, Forget:
	default:
		return wrong("is not known")
	}
	switch {
	case !validRepository(e.Repository):
		return wrong("names the invalid repository %.200q", e.Repository)
	case e.Version != nil && e.Version.Tag != e.Tag, e.Package != nil && e.Package.Repository != e.Repository,
		e.Text != nil && e.Text.Repository != e.Repository,
		slices.ContainsFunc(e.Kinds, func(k Kind) bool { return k.Repository != e.Repository }):
		return wrong("has rows of another package")
	}
	return nil
}
