package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Definition holds the fields of a CRD or an XRD that decide whether the API server
// accepts another version of it.
type Definition struct {
	Group, Plural, Kind, Scope string
	// Fixed are further fields that cannot change once they are set, by their paths in the
	// spec.
	Fixed map[string]string
	// Versions are the names of all versions, and Served the names of the served ones.
	Versions, Served []string
	// Storage is the version in which objects are stored.
	Storage string
	// Stored are the versions of status.storedVersions: objects may be stored in each of
	// them. Only a live CRD has any.
	Stored []string
	// Established reports that the API server serves the kind. Until then it accepts
	// another scope and kind.
	Established bool
}

// Immutable returns a refusal for each field that a new version of a definition changes
// and the API server does not.
func Immutable(ref Ref, live, want Definition) []Refusal {
	var out []Refusal
	check := func(field, is, becomes string) {
		if is == becomes || is == "" || becomes == "" {
			return
		}
		out = append(out, Refusal{Ref: ref, Cause: ImmutableField, Reason: fmt.Sprintf(
			"%s %s: %s is %s and cannot become %s", ref.Kind, ref.Name, field, is, becomes)})
	}
	check("spec.group", live.Group, want.Group)
	check("spec.names.plural", live.Plural, want.Plural)
	if live.Established {
		check("spec.scope", live.Scope, want.Scope)
		check("spec.names.kind", live.Kind, want.Kind)
	}
	for _, field := range slices.Sorted(maps.Keys(live.Fixed)) {
		check(field, live.Fixed[field], want.Fixed[field])
	}
	return out
}

// DroppedStored returns the versions in which objects may be stored and that the new
// version of a CRD does not have.
func DroppedStored(live, want Definition) []string {
	var out []string
	for _, v := range live.Stored {
		if !slices.Contains(want.Versions, v) {
			out = append(out, v)
		}
	}
	return out
}

// StoredVersions refuses a CRD that drops versions in which objects may be stored. Pkg is the package of the CRD as
// "kind/name", or empty if it has none. Unknown is the reason why the objects cannot be counted, or empty when there
// are some.
func StoredVersions(ref Ref, pkg string, live, want Definition, dropped []string, unknown string) Refusal {
	why := "and custom resources exist"
	if unknown != "" {
		why = "and whether custom resources exist is not known: " + unknown
	}
	r := Refusal{Ref: ref, Cause: StoredVersionInUse, Reason: fmt.Sprintf("%s %s: the new version drops %s, which status.storedVersions lists, %s",
		ref.Kind, ref.Name, strings.Join(dropped, ", "), why)}
	if slices.Contains(dropped, live.Storage) {
		r.Fix = fmt.Sprintf("First update to a version of the package that still has %s and stores %s in a version that the new one keeps (%s).",
			strings.Join(dropped, ", "), ref.Name, strings.Join(want.Versions, ", "))
		return r
	}
	if pkg == "" {
		pkg = "--crd " + ref.Name
	}
	r.Fix = "Run `xpkg migrate-storage " + pkg + "`, and try again."
	return r
}

// Names are the names under which the API server serves a kind of a group.
type Names struct {
	Plural string
	// Resources are the plural, the singular and the short names, and Kinds the kind and
	// the kind of its lists.
	Resources, Kinds []string
}

// NamesTaken refuses a CRD with a name that another kind of the same group has. The API
// server stores such a CRD and never serves it.
func NamesTaken(ref Ref, want Names, served []Names) []Refusal {
	var out []Refusal
	for _, s := range served {
		if s.Plural == want.Plural {
			continue
		}
		for _, name := range append(shared(want.Resources, s.Resources), shared(want.Kinds, s.Kinds)...) {
			out = append(out, Refusal{Ref: ref, Cause: NameTaken, Reason: fmt.Sprintf(
				"%s %s: the name %s belongs to %s of the same group", ref.Kind, ref.Name, name, s.Plural)})
		}
	}
	return out
}

// shared returns the non-empty strings that two lists have in common.
func shared(a, b []string) []string {
	var out []string
	for _, s := range a {
		if s != "" && slices.Contains(b, s) && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
