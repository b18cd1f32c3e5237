// Package revision computes the lifecycle of a package's revisions: their names, the active one, their numbers, and
// the ones to delete.
//
// It is pure. The rules come from the packages guide, "spec.package", "spec.revisionActivationPolicy" and
// "spec.revisionHistoryLimit".
package revision

import (
	"cmp"
	"slices"
)

// State is the known state of one revision.
type State struct {
	Name   string
	Number int64
	Active bool
}

// Policy contains the settings of a package for its revisions.
type Policy struct {
	// Automatic activates the current revision; otherwise a user activates it.
	Automatic bool
	// HistoryLimit is the number of inactive revisions that are kept; 0 keeps all.
	HistoryLimit int64
	// Refused is the revision that was rolled back, and Back the revision that is active in its
	// place. Both are empty without a rollback. A decision that activates another revision than
	// Back ends the rollback.
	Refused, Back string
	// Keep are the revisions that a rollback may activate. They are collected after all others.
	Keep []string
	// Failed are the revisions whose runtimes were not healthy when they last ran. They are
	// collected before all others, so that a healthy revision remains for a rollback.
	Failed []string
}

// Decision is the set of changes. Its steps are carried out in the order of the fields, and each can be repeated.
type Decision struct {
	// Deactivate are the revisions that become inactive.
	Deactivate []string
	// Activate is the revision that becomes, or stays, active, and Number the number that it must
	// have. Activate is empty if no revision is active.
	Activate string
	Number   int64
	// Collect are the revisions that are deleted, in order: failed ones first, revisions that a
	// rollback may activate last, and older ones before newer ones.
	Collect []string
}

// Decide returns the decision for a package whose newest content is the revision current.
//
// When a revision becomes active, its number is set to one more than the largest. Revisions beyond
// the history limit are collected, but never the active or the current one.
func Decide(current string, all []State, p Policy) Decision {
	var d Decision
	d.Activate = activate(current, all, p)
	for _, s := range all {
		if s.Active && s.Name != d.Activate {
			d.Deactivate = append(d.Deactivate, s.Name)
		}
	}
	slices.Sort(d.Deactivate)
	d.Number = number(d.Activate, all)
	d.Collect = collect(current, d.Activate, all, p)
	return d
}

// activate returns the name of the revision that should be active.
func activate(current string, all []State, p Policy) string {
	if p.goesBack(current, all) {
		return p.Back
	}
	if p.Automatic {
		return current
	}
	var active []State
	for _, s := range all {
		if s.Active {
			active = append(active, s)
		}
	}
	switch len(active) {
	case 0:
		return ""
	case 1:
		return active[0].Name
	}
	// A user has marked another revision as active. The revision that was active before is the one
	// with the highest number.
	slices.SortFunc(active, compare)
	active = active[:len(active)-1]
	if i := slices.IndexFunc(active, func(s State) bool { return s.Name == current }); i >= 0 {
		return current
	}
	return active[len(active)-1].Name
}

// goesBack reports whether the revision Back becomes active. With manual activation, a user who
// activates the refused revision again overrides the rollback.
func (p Policy) goesBack(current string, all []State) bool {
	if p.Refused == "" || !slices.ContainsFunc(all, func(s State) bool { return s.Name == p.Back }) {
		return false
	}
	if p.Automatic {
		return current == p.Refused
	}
	return isActive(p.Refused, all) && !isActive(p.Back, all)
}

func isActive(name string, all []State) bool {
	return slices.ContainsFunc(all, func(s State) bool { return s.Name == name && s.Active })
}

// Previous returns the name of the revision that was active before another one, or "".
func Previous(name string, all []State) string {
	all = slices.SortedFunc(slices.Values(all), compare)
	i := slices.IndexFunc(all, func(s State) bool { return s.Name == name })
	if i < 1 || all[i-1].Number == 0 {
		return ""
	}
	return all[i-1].Name
}

// number returns the number that the revision to activate must have, and 0 if there is none.
func number(name string, all []State) int64 {
	if name == "" {
		return 0
	}
	var highest int64
	for _, s := range all {
		if s.Name != name {
			highest = max(highest, s.Number)
		}
	}
	for _, s := range all {
		if s.Name == name && s.Active && s.Number > highest {
			return s.Number
		}
	}
	return highest + 1
}

func collect(current, active string, all []State, p Policy) []string {
	if p.HistoryLimit <= 0 {
		return nil
	}
	var old []State
	for _, s := range all {
		if s.Name != current && s.Name != active {
			old = append(old, s)
		}
	}
	slices.SortFunc(old, func(a, b State) int {
		return cmp.Or(rank(p.failed(b))-rank(p.failed(a)), rank(p.keeps(a))-rank(p.keeps(b)), compare(a, b))
	})
	var names []string
	for excess := int64(len(old)) - p.HistoryLimit; excess > 0; excess-- {
		names = append(names, old[0].Name)
		old = old[1:]
	}
	return names
}

func (p Policy) keeps(s State) bool { return slices.Contains(p.Keep, s.Name) }

func (p Policy) failed(s State) bool { return slices.Contains(p.Failed, s.Name) }

// rank orders false before true.
func rank(b bool) int {
	if b {
		return 1
	}
	return 0
}

// compare orders revisions by age: lowest number first.
func compare(a, b State) int {
	return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Name, b.Name))
}
