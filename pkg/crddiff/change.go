package crddiff

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/wording"
)

// Class is the effect of a change on users of a CRD.
type Class int

// Classes, in ascending order of their effect.
const (
	Safe Class = iota
	Care
	Breaking
)

// String returns "safe", "needs care" or "breaking".
func (c Class) String() string { return [...]string{"safe", "needs care", "breaking"}[c] }

// classTexts are the encodings of the classes.
var classTexts = [...]string{"safe", "care", "breaking"}

// MarshalText returns "safe", "care" or "breaking".
func (c Class) MarshalText() ([]byte, error) { return []byte(classTexts[c]), nil }

// UnmarshalText parses the result of MarshalText.
func (c *Class) UnmarshalText(text []byte) error {
	i := slices.Index(classTexts[:], string(text))
	if i < 0 {
		return fmt.Errorf("%q is not a class of changes", text)
	}
	*c = Class(i)
	return nil
}

// Type is the type of a change. Values are stable.
type Type string

// Types of changes to a CRD.
const (
	ScopeChanged      Type = "ScopeChanged"
	NamesChanged      Type = "NamesChanged"
	ConversionChanged Type = "ConversionChanged"

	VersionAdded         Type = "VersionAdded"
	VersionRemoved       Type = "VersionRemoved"
	VersionServed        Type = "VersionServed"
	VersionNotServed     Type = "VersionNotServed"
	VersionDeprecated    Type = "VersionDeprecated"
	VersionNotDeprecated Type = "VersionNotDeprecated"
	StorageMoved         Type = "StorageMoved"
	StoredVersionRemoved Type = "StoredVersionRemoved"
	StoredFieldDropped   Type = "StoredFieldDropped"

	SubresourceAdded       Type = "SubresourceAdded"
	SubresourceRemoved     Type = "SubresourceRemoved"
	ColumnsChanged         Type = "ColumnsChanged"
	SelectableFieldAdded   Type = "SelectableFieldAdded"
	SelectableFieldRemoved Type = "SelectableFieldRemoved"
)

// Types of changes to a field.
const (
	FieldAdded           Type = "FieldAdded"
	FieldRemoved         Type = "FieldRemoved"
	TypeChanged          Type = "TypeChanged"
	RequiredAdded        Type = "RequiredAdded"
	RequiredRemoved      Type = "RequiredRemoved"
	DefaultAdded         Type = "DefaultAdded"
	DefaultChanged       Type = "DefaultChanged"
	DefaultRemoved       Type = "DefaultRemoved"
	EnumAdded            Type = "EnumAdded"
	EnumRemoved          Type = "EnumRemoved"
	EnumValuesAdded      Type = "EnumValuesAdded"
	EnumValuesRemoved    Type = "EnumValuesRemoved"
	ConstraintTightened  Type = "ConstraintTightened"
	ConstraintLoosened   Type = "ConstraintLoosened"
	ConstraintChanged    Type = "ConstraintChanged"
	RuleAdded            Type = "RuleAdded"
	RuleRemoved          Type = "RuleRemoved"
	RuleChanged          Type = "RuleChanged"
	UnknownFieldsPruned  Type = "UnknownFieldsPruned"
	UnknownFieldsKept    Type = "UnknownFieldsKept"
	MergeChanged         Type = "MergeChanged"
	DocumentationChanged Type = "DocumentationChanged"
)

// A Change is one difference between two CRDs.
type Change struct {
	Class Class `json:"class"`
	Type  Type  `json:"type"`
	// Version is the API version that changed; empty for a change to the CRD itself.
	Version string `json:"version,omitempty"`
	// Path is the path of the field, such as .spec.forProvider.tags[*].key; empty for a change that concerns no field.
	// Keys of maps and items of lists are [*].
	Path string `json:"path,omitempty"`
	// Subject is the changed property, such as maxLength; empty if the type of the change implies it.
	Subject string `json:"subject,omitempty"`
	// From and To are the old and the new value; empty if there is none.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Reason states the effect in one sentence without a full stop.
	Reason string `json:"reason"`
}

// String returns the change in one line: class, version and path, values and reason.
func (c Change) String() string {
	place := c.Version
	if c.Path != "" {
		place += " " + c.Path
	}
	if place != "" {
		place += ": "
	}
	return fmt.Sprintf("%s: %s%s%s", c.Class, place, c.Reason, Values(c.From, c.To))
}

// mostSafe is the number of safe changes in one line.
const mostSafe = 3

// SafeLine returns the safe changes among some in one line, or "" if there are none.
func SafeLine(changes []Change) string {
	var safe []string
	for _, c := range changes {
		if c.Class == Safe {
			safe = append(safe, strings.TrimPrefix(c.String(), Safe.String()+": "))
		}
	}
	return wording.Few(safe, mostSafe, "; ")
}

// Values returns an old and a new value in parentheses, preceded by a space, and "" if both are empty.
func Values(from, to string) string {
	switch {
	case from != "" && to != "":
		return fmt.Sprintf(" (%s -> %s)", from, to)
	case from != "":
		return fmt.Sprintf(" (was %s)", from)
	case to != "":
		return fmt.Sprintf(" (now %s)", to)
	default:
		return ""
	}
}

// Max returns the highest class of the changes, and Safe if there are none.
func Max(changes []Change) Class {
	worst := Safe
	for _, c := range changes {
		worst = max(worst, c.Class)
	}
	return worst
}

// sortChanges orders changes by version and path, and within a field by class, highest first.
func sortChanges(changes []Change) {
	slices.SortStableFunc(changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.Version, b.Version), cmp.Compare(a.Path, b.Path), cmp.Compare(b.Class, a.Class),
			cmp.Compare(a.Type, b.Type), cmp.Compare(a.Subject, b.Subject), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
}
