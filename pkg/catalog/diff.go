package catalog

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
)

// Diff returns the events from one catalog to another, ordered by repository and version. Each event contains the rows
// of its version; the last event of a package contains its other rows.
func Diff(from, to *Catalog) []Event {
	var events []Event
	for _, s := range to.Config.Sources {
		if !slices.ContainsFunc(from.Config.Sources, func(o Source) bool { return reflect.DeepEqual(o, s) }) {
			events = append(events, Event{Type: SourceAdded, Source: &s})
		}
	}
	all := func(string) bool { return true }
	before, after := from.kindPositions(all), to.kindPositions(all)
	for i := range to.Packages {
		repository := to.Packages[i].Repository
		if is := to.entry(repository, after); !from.hasEqual(is, before) || from.exact(repository).Rank != is.row.Rank {
			events = append(events, diffEntries(from.entry(repository, before), is)...)
		}
	}
	for i := range from.Packages {
		if repository := from.Packages[i].Repository; to.exact(repository) == nil {
			events = append(events, Event{Type: Forget, Repository: repository})
		}
	}
	return events
}

// diffEntries returns the events of one package. A nil entry is a package that did not exist.
func diffEntries(a, b *Entry) []Event {
	if a == nil {
		a = &Entry{}
	}
	events := diffVersions(&a.history, &b.history)
	rest := Event{Type: Update, Repository: b.history.Repository}
	if !reflect.DeepEqual(a.row, b.row) {
		row := b.row
		rest.Package = &row
	}
	rest.Kinds, rest.GoneKinds = diffRows(a.kinds, b.kinds, (*Kind).key)
	rest.Histories, rest.GoneHistories = diffRows(a.history.Kinds, b.history.Kinds, (*KindHistory).key)
	if !reflect.DeepEqual(a.text, b.text) {
		rest.Text = &Text{Repository: b.history.Repository}
		if b.text != nil {
			rest.Text = b.text
		}
	}
	if reflect.DeepEqual(rest, Event{Type: Update, Repository: rest.Repository}) {
		return events
	}
	if len(events) == 0 {
		return []Event{rest}
	}
	last := &events[len(events)-1]
	last.Package, last.Text = rest.Package, rest.Text
	last.Kinds, last.GoneKinds, last.Histories, last.GoneHistories = rest.Kinds, rest.GoneKinds, rest.Histories,
		rest.GoneHistories
	return events
}

// diffRows returns the rows that are new or changed, and the keys of those that are gone.
func diffRows[T any](a, b []T, key func(*T) KindKey) (changed []T, gone []KindKey) {
	old := make(map[KindKey]*T, len(a))
	for i := range a {
		old[key(&a[i])] = &a[i]
	}
	for i := range b {
		k := key(&b[i])
		if was := old[k]; was == nil || !reflect.DeepEqual(*was, b[i]) {
			changed = append(changed, b[i])
		}
		delete(old, k)
	}
	return changed, slices.SortedFunc(maps.Keys(old), compareKeys)
}

func compareKeys(a, b KindKey) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Role, b.Role))
}

// diffVersions returns an event for each version that changed, lowest version first.
func diffVersions(a, b *History) []Event {
	var events []Event
	for i := range b.Versions {
		v := &b.Versions[i]
		was := a.Find(v.Tag)
		if was != nil && reflect.DeepEqual(*was, *v) {
			continue
		}
		e := Event{Type: eventType(was, v), Repository: b.Repository, Tag: v.Tag, Digest: v.Digest, At: v.Created, Version: v}
		if v.Status != nil && e.Type != Publish && e.Type != Move {
			e.At = v.Status.Since
		}
		if e.Type == Move {
			e.Former = was.Digest
		}
		events = append(events, e)
	}
	for _, v := range a.Versions {
		if b.Find(v.Tag) == nil {
			events = append(events, Event{Type: Remove, Repository: b.Repository, Tag: v.Tag, Digest: v.Digest})
		}
	}
	slices.SortStableFunc(events, func(a, b Event) int { return compareTags(a.Tag, b.Tag) })
	return events
}

// eventType returns the type of the change of one version.
func eventType(was, is *Version) EventType {
	state := func(v *Version) State {
		if v == nil || v.Status == nil {
			return ""
		}
		return v.Status.State
	}
	switch {
	case state(is) == Removed && state(was) != Removed:
		return Remove
	case was == nil:
		return Publish
	case was.Digest != is.Digest:
		return Move
	case reflect.DeepEqual(was.Status, is.Status):
		return Update
	}
	switch state(is) {
	case Yanked:
		return Yank
	case Retracted:
		return Retract
	case Deprecated:
		return Deprecate
	}
	return Unyank
}
