package catalog

import (
	"maps"
	"slices"
)

// overlay is the effect of a journal on the kinds of a snapshot.
type overlay map[string]*kindOverlay

// kindOverlay is the effect on the kinds of one package.
type kindOverlay struct {
	// all means that no kind of the snapshot remains.
	all  bool
	drop map[KindKey]bool
	rows []Kind
}

func overlayOf(events []Event) overlay {
	o := overlay{}
	for i := range events {
		e := &events[i]
		switch {
		case e.Type == Forget:
			o[e.Repository] = &kindOverlay{all: true, drop: map[KindKey]bool{}}
		case len(e.Kinds)+len(e.GoneKinds) > 0:
			into := o[e.Repository]
			if into == nil {
				into = &kindOverlay{drop: map[KindKey]bool{}}
				o[e.Repository] = into
			}
			into.apply(e)
		}
	}
	return o
}

func (o *kindOverlay) apply(e *Event) {
	for i := range e.Kinds {
		o.drop[e.Kinds[i].key()] = true
	}
	for _, k := range e.GoneKinds {
		o.drop[k] = true
	}
	o.rows = replaceRows(o.rows, e.Kinds, e.GoneKinds, (*Kind).key, compareKinds)
}

// replaces reports whether a kind of the snapshot no longer applies.
func (o overlay) replaces(k *Kind) bool {
	of := o[k.Repository]
	return of != nil && (of.all || of.drop[k.key()])
}

// each calls visit for the kinds of the journal.
func (o overlay) each(visit func(*Kind)) {
	for _, repository := range slices.Sorted(maps.Keys(o)) {
		for i := range o[repository].rows {
			visit(&o[repository].rows[i])
		}
	}
}

// applyPackages returns the packages after events.
func applyPackages(snapshot []Package, events []Event) []Package {
	if len(events) == 0 {
		return snapshot
	}
	rows := make(map[string]Package, len(snapshot))
	for _, p := range snapshot {
		rows[p.Repository] = p
	}
	for i := range events {
		switch e := &events[i]; {
		case e.Type == Forget:
			delete(rows, e.Repository)
		case e.Package != nil:
			rows[e.Repository] = *e.Package
		case e.Repository != "":
			if _, exists := rows[e.Repository]; !exists {
				rows[e.Repository] = Package{Repository: e.Repository}
			}
		}
	}
	return slices.SortedFunc(maps.Values(rows), comparePackages)
}

// applyTexts returns the texts after events.
func applyTexts(snapshot []Text, events []Event) []Text {
	if len(events) == 0 {
		return snapshot
	}
	rows := make(map[string]Text, len(snapshot))
	for _, t := range snapshot {
		rows[t.Repository] = t
	}
	for i := range events {
		switch e := &events[i]; {
		case e.Type == Forget, e.Text != nil && e.Text.empty():
			delete(rows, e.Repository)
		case e.Text != nil:
			rows[e.Repository] = *e.Text
		}
	}
	return slices.SortedFunc(maps.Values(rows), compareTexts)
}

// applyHistory returns a history after events.
func applyHistory(h History, events []Event) *History {
	e := Entry{history: History{
		Repository: h.Repository, Versions: slices.Clone(h.Versions), Kinds: slices.Clone(h.Kinds),
	}}
	for i := range events {
		ev := &events[i]
		if ev.Repository != h.Repository {
			continue
		}
		if ev.Type == Forget {
			e.history.Versions, e.history.Kinds = nil, nil
			continue
		}
		e.applyVersion(ev)
		e.history.Kinds = replaceRows(
			e.history.Kinds, ev.Histories, ev.GoneHistories, (*KindHistory).key, compareKindHistories,
		)
	}
	return &e.history
}
