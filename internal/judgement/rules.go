package judgement

import (
	"slices"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/xpkg-dev/xpkg/internal/lazyregexp"
	"github.com/xpkg-dev/xpkg/pkg/crddiff"
)

// The rules of findings that follow from no single change of the schema.
const (
	// ValueDropped is a value that is dropped.
	ValueDropped = "ValueDropped"
	// Rejected is an object that the API server rejects.
	Rejected = "Rejected"
)

// Finding is a rule that an object breaks, in a form that many objects share.
type Finding struct {
	// Rule is the type of the change of the schema (see package crddiff), or one of the rules of this package. Values are
	// stable.
	Rule string `json:"rule"`
	// Path is the path of the field; empty for the object itself. Keys of maps and items of lists are [*].
	Path string `json:"path,omitempty"`
	// Text completes a sentence that begins with the path.
	Text string `json:"text"`
	// Tolerated reports that the object may keep the value, which new objects may not have.
	Tolerated bool `json:"tolerated,omitempty"`
}

// String returns the finding as a clause.
func (f Finding) String() string {
	if f.Path == "" {
		return "the object " + f.Text
	}
	return f.Path + " " + f.Text
}

// rules attributes what happens to objects to changes of the schema.
type rules struct {
	changes      []crddiff.Change
	live, future *structuralschema.Structural
}

// ofLoss returns the finding for a lost value.
func (r rules) ofLoss(l loss) Finding {
	dropping := []crddiff.Type{
		crddiff.FieldRemoved, crddiff.TypeChanged, crddiff.UnknownFieldsPruned, crddiff.StoredFieldDropped,
	}
	if l.isNull {
		dropping = append([]crddiff.Type{crddiff.ConstraintTightened}, dropping...)
	}
	c := r.changeOf(l.path, dropping)
	if c == nil {
		return Finding{Rule: ValueDropped, Path: l.path, Text: "is dropped and has a value"}
	}
	text := "has a value that is dropped"
	switch c.Type {
	case crddiff.FieldRemoved:
		text = "is removed and has a value"
	case crddiff.TypeChanged:
		text = "has values that its new type drops"
	case crddiff.UnknownFieldsPruned:
		text = "has fields that the schema does not describe and drops"
	case crddiff.StoredFieldDropped:
		text = "has a value that the new storage version drops"
	case crddiff.ConstraintTightened:
		text = "is null, which is dropped"
	default:
	}
	return Finding{Rule: string(c.Type), Path: c.Path, Text: text}
}

// typesOf are the types of changes that cause each type of error, the most specific ones first.
func typesOf(e *field.Error) []crddiff.Type {
	general := []crddiff.Type{
		crddiff.RuleAdded, crddiff.RuleChanged, crddiff.ConstraintTightened, crddiff.ConstraintChanged,
		crddiff.TypeChanged, crddiff.FieldAdded, crddiff.DefaultAdded, crddiff.DefaultChanged, crddiff.DefaultRemoved,
		crddiff.MergeChanged, crddiff.SubresourceAdded, crddiff.SubresourceRemoved,
	}
	var first []crddiff.Type
	switch e.Type {
	case field.ErrorTypeRequired:
		first = []crddiff.Type{crddiff.RequiredAdded, crddiff.DefaultRemoved}
	case field.ErrorTypeNotSupported:
		first = []crddiff.Type{crddiff.EnumValuesRemoved, crddiff.EnumAdded}
	case field.ErrorTypeTypeInvalid:
		first = []crddiff.Type{crddiff.TypeChanged, crddiff.ConstraintTightened}
	case field.ErrorTypeTooLong, field.ErrorTypeTooMany:
		first = []crddiff.Type{crddiff.ConstraintTightened}
	case field.ErrorTypeDuplicate:
		first = []crddiff.Type{crddiff.MergeChanged}
	case field.ErrorTypeInvalid:
		if !isConstraint(e) {
			break
		}
		first = []crddiff.Type{crddiff.ConstraintTightened, crddiff.ConstraintChanged, crddiff.TypeChanged}
	default:
	}
	return append(first, general...)
}

// isConstraint reports whether an error is of a constraint of the schema, and not of a validation rule.
func isConstraint(e *field.Error) bool { return inBody().MatchString(e.Detail) }

// inBody matches the name of a field that the API server repeats in the details of errors.
var inBody = lazyregexp.New(`^\S* in body `)

// ofError returns the finding for an error.
func (r rules) ofError(e *field.Error) Finding {
	path := pathOf(r.future, e.Field)
	f := Finding{Rule: Rejected, Path: path}
	if c := r.changeOf(path, typesOf(e)); c != nil {
		f.Rule = string(c.Type)
	}
	switch e.Type {
	case field.ErrorTypeRequired:
		f.Text = "is required and missing"
	case field.ErrorTypeNotSupported:
		f.Text = "has a value that is not allowed"
	case field.ErrorTypeDuplicate:
		f.Text = "has equal items"
	default:
		f.Text = "is rejected: " + oneLine(inBody().ReplaceAllString(e.Detail, ""))
	}
	if e.Type == field.ErrorTypeRequired && e.Detail != "" {
		f.Text = "is rejected: " + oneLine(e.Detail)
	}
	return f
}

// maxDetail is the maximum length of the details of an error.
const maxDetail = 200

// oneLine returns a text in one line of limited length.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > maxDetail {
		return string(runes[:maxDetail]) + "…"
	}
	return text
}

// changeOf returns the change that explains what happens at a path: of the types that are given, the change nearest to
// the path at it or above it, and of those the one of the first type. It returns nil if there is none.
func (r rules) changeOf(path string, types []crddiff.Type) *crddiff.Change {
	var best *crddiff.Change
	order := func(c *crddiff.Change) int { return slices.Index(types, c.Type) }
	for i := range r.changes {
		c := &r.changes[i]
		if order(c) < 0 || !isAtOrBelow(path, c.Path) {
			continue
		}
		if best == nil || len(c.Path) > len(best.Path) || len(c.Path) == len(best.Path) && order(c) < order(best) {
			best = c
		}
	}
	return best
}

// isAtOrBelow reports whether a path is equal to another one or below it.
func isAtOrBelow(path, of string) bool {
	rest, ok := strings.CutPrefix(path, of)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// itemIndex matches the index of an item at the start of a path of the API server.
var itemIndex = lazyregexp.New(`^(\[\d+\]|\.\d+)`)

// pathOf returns the path of an error of the API server in the form of package crddiff.
func pathOf(s *structuralschema.Structural, text string) string {
	if text == "<nil>" {
		return ""
	}
	path, rest := "", "."+strings.TrimPrefix(text, ".")
	for rest != "" && s != nil {
		index := itemIndex().FindString(rest)
		name, isField := "", false
		if s.Items == nil {
			name, isField = firstName(s, rest)
		}
		switch {
		case s.Items != nil && index != "":
			path, rest, s = path+anyItem, rest[len(index):], s.Items
		case isField:
			rest = strings.TrimPrefix(rest, "."+name)
			path, s = child(s, path, name)
		case s.AdditionalProperties != nil:
			rest = rest[keyLength(rest):]
			path, s = path+anyItem, s.AdditionalProperties.Structural
		default:
			return path + withoutIndices(rest)
		}
	}
	return path + withoutIndices(rest)
}

// firstName returns the longest name of a field of a schema with which a path starts.
func firstName(s *structuralschema.Structural, rest string) (string, bool) {
	found, ok := "", false
	for name := range s.Properties {
		if isAtOrBelow(rest, "."+name) && len(name) >= len(found) {
			found, ok = name, true
		}
	}
	return found, ok
}

// keyLength returns the length of the key of a map at the start of a path.
func keyLength(rest string) int {
	if rest[0] == '[' {
		if end := strings.IndexByte(rest, ']'); end >= 0 {
			return end + 1
		}
		return len(rest)
	}
	if end := strings.IndexAny(rest[1:], ".["); end >= 0 {
		return end + 1
	}
	return len(rest)
}

// anyIndex matches all indices of items.
var anyIndex = lazyregexp.New(`\[\d+\]`)

// withoutIndices returns a path with [*] in place of indices.
func withoutIndices(path string) string {
	return anyIndex().ReplaceAllLiteralString(path, anyItem)
}

// distinct returns findings without duplicates.
func distinct(found []Finding) []Finding {
	var out []Finding
	for _, f := range found {
		if !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	return out
}
