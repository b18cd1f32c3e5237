package catalog

import (
	"reflect"
	"slices"
	"strings"
)

// An Entry is everything that a catalog contains of one package.
type Entry struct {
	row     Package
	kinds   []Kind
	history History
	text    *Text
}

// Latest returns the tag of the newest version; empty if there is none that can be used.
func (e *Entry) Latest() string { return e.row.Latest }

// SetText sets the additional text of the newest version, unless it is too large for an index.
func (e *Entry) SetText(t *Text) {
	if !t.fits() { // The package can still be found by its names.
		e.text = nil
		return
	}
	names := interner{e.row.Repository: e.row.Repository}
	for i := range e.kinds {
		names[e.kinds[i].Group], names[e.kinds[i].Kind] = e.kinds[i].Group, e.kinds[i].Kind
	}
	e.text = names.text(t)
}

// compact makes equal strings and lists of the entry use the same memory, and its strings none of the document that
// they were read from. A large catalog takes half of the memory then.
func (e *Entry) compact() {
	names := interner{}
	repository := names.string(e.row.Repository)
	e.row.Repository, e.history.Repository = repository, repository
	kinds := make([]Kind, len(e.kinds))
	var served [][]string
	for i, k := range e.kinds {
		k.Kind, k.Group, k.Plural, k.Repository, k.Since = names.string(k.Kind), names.string(k.Group),
			names.string(k.Plural), repository, names.string(k.Since)
		if strings.HasPrefix(k.Plural, k.Singular) {
			k.Singular = k.Plural[:len(k.Singular)]
		} else {
			k.Singular = names.string(k.Singular)
		}
		k.Scope, k.Role = names.string(k.Scope), Role(names.string(string(k.Role)))
		k.ShortNames = names.list(k.ShortNames)
		same := slices.IndexFunc(served, func(list []string) bool { return slices.Equal(list, k.Served) })
		if k.Served != nil && same < 0 {
			served, same = append(served, names.list(k.Served)), len(served)
		}
		if k.Served != nil {
			k.Served = served[same]
		}
		kinds[i] = k
	}
	slices.SortFunc(kinds, compareKinds)
	e.kinds = kinds
	names.history(&e.history)
	e.text = names.text(e.text)
}

// interner has one string for each content.
type interner map[string]string

func (n interner) string(s string) string {
	kept, known := n[s]
	if !known {
		kept = strings.Clone(s)
		n[kept] = kept
	}
	return kept
}

// list returns a list with the same strings.
func (n interner) list(list []string) []string {
	if list == nil {
		return nil
	}
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = n.string(s)
	}
	return out
}

// history replaces the strings and the lists of the kinds of a history.
func (n interner) history(h *History) {
	if h.Kinds == nil {
		return
	}
	size := 0
	for i := range h.Kinds {
		size += len(h.Kinds[i].Intervals)
	}
	kinds, all := make([]KindHistory, len(h.Kinds)), make([]Interval, 0, size)
	for i, k := range h.Kinds {
		first := len(all)
		for _, in := range k.Intervals {
			all = append(all, Interval{n.string(in.Version), n.string(in.Since), n.string(in.Until)})
		}
		kinds[i] = KindHistory{Group: n.string(k.Group), Kind: n.string(k.Kind)}
		if len(k.Intervals) > 0 {
			kinds[i].Intervals = all[first:len(all):len(all)]
		}
	}
	h.Kinds = kinds
}

// text returns a text with the same strings.
func (n interner) text(t *Text) *Text {
	if t == nil {
		return nil
	}
	out := &Text{Repository: n.string(t.Repository), Readme: strings.Clone(t.Readme)}
	if t.Kinds != nil {
		out.Kinds = make([]KindText, len(t.Kinds))
	}
	for i, k := range t.Kinds {
		out.Kinds[i] = KindText{n.string(k.Group), n.string(k.Kind), n.string(k.Description), n.list(k.Fields)}
	}
	return out
}

// positions are the positions of the kinds of each package in the list of a catalog.
type positions map[string][]int32

// kindPositions returns the positions of the kinds of the packages that select returns true for.
func (c *Catalog) kindPositions(selects func(repository string) bool) positions {
	out := positions{}
	for i := range c.Kinds {
		if name := c.Kinds[i].Repository; selects(name) {
			out[name] = append(out[name], int32(i)) //nolint:gosec // A catalog has fewer kinds.
		}
	}
	return out
}

// entry returns the entry of a package with the positions of its kinds; nil if there is none.
func (c *Catalog) entry(repository string, of positions) *Entry {
	row := c.exact(repository)
	if row == nil {
		return nil
	}
	e := &Entry{row: *row, history: History{Repository: repository}}
	if list := of[repository]; len(list) > 0 {
		e.kinds = make([]Kind, len(list))
		for i, position := range list {
			e.kinds[i] = c.Kinds[position]
		}
	}
	if h := c.History(repository); h != nil {
		e.history = *h
	}
	e.text = c.textOf(repository)
	return e
}

// textOf returns the text of a package; nil if there is none.
func (c *Catalog) textOf(repository string) *Text {
	i, found := search(c.Texts, repository, func(t Text) string { return t.Repository })
	if !found {
		return nil
	}
	return &c.Texts[i]
}

// hasEqual reports whether a catalog contains a package with the same content as an entry, apart from its rank. It
// copies nothing.
func (c *Catalog) hasEqual(e *Entry, of positions) bool {
	repository := e.history.Repository
	row, h, list := c.exact(repository), c.History(repository), of[repository]
	if row == nil || h == nil || len(list) != len(e.kinds) {
		return false
	}
	ranked := e.row
	ranked.Rank = row.Rank
	text := c.textOf(repository)
	if !reflect.DeepEqual(*row, ranked) || !h.equals(&e.history) || text != e.text && !reflect.DeepEqual(text, e.text) {
		return false
	}
	for i, position := range list {
		if !c.Kinds[position].equals(&e.kinds[i]) {
			return false
		}
	}
	return true
}

// equals compares histories. Those that share their lists are equal.
func (h *History) equals(o *History) bool {
	if h.Repository != o.Repository {
		return false
	}
	return isSameList(h.Versions, o.Versions) && isSameList(h.Kinds, o.Kinds) ||
		slices.EqualFunc(h.Versions, o.Versions, func(a, b Version) bool { return reflect.DeepEqual(a, b) }) &&
			slices.EqualFunc(h.Kinds, o.Kinds, func(a, b KindHistory) bool {
				return a.Group == b.Group && a.Kind == b.Kind && slices.Equal(a.Intervals, b.Intervals)
			})
}

func (k *Kind) equals(o *Kind) bool {
	return k.Kind == o.Kind && k.Group == o.Group && k.Plural == o.Plural && k.Singular == o.Singular &&
		k.Scope == o.Scope && k.Role == o.Role &&
		k.Repository == o.Repository && k.Since == o.Since && slices.Equal(k.ShortNames, o.ShortNames) &&
		slices.Equal(k.Served, o.Served)
}
