package catalog

import "strings"

// maxQueryWords and maxQueryBytes limit a query.
const (
	maxQueryWords = 16
	maxQueryBytes = 1024
)

// A Query selects kinds and packages. All parts must match.
type Query struct {
	// Words are in lower case. Each must match a name or a text.
	Words []string
	// Kind is a kind, plural, singular or short name. Group is an API group; * stands for any text.
	Kind, Group string
	// Provides is a kind that a package must define: KIND, KIND.GROUP or PLURAL.GROUP.
	Provides string
	// Field is the name of a field, or its beginning.
	Field string
	// Type is the type of a package.
	Type string
	// Text is the query as written.
	Text string
}

// ParseQuery parses words and the prefixes kind:, group:, provides:, field: and type:. It fails with ErrInvalidQuery
// for other prefixes.
func ParseQuery(text string) (Query, error) {
	q := Query{Text: text}
	if len(text) > maxQueryBytes {
		return Query{}, ErrInvalidQuery.New(nil, "the query has %d bytes, at most %d are allowed", len(text), maxQueryBytes)
	}
	for _, word := range strings.Fields(text) {
		name, value, prefixed := strings.Cut(word, ":")
		if !prefixed {
			q.Words = append(q.Words, strings.ToLower(word))
			continue
		}
		into := q.field(name)
		switch {
		case into == nil:
			return Query{}, ErrInvalidQuery.New(nil, "unknown prefix %.50q", name+":")
		case value == "":
			return Query{}, ErrInvalidQuery.New(nil, "%s: has no value", name)
		case *into != "":
			return Query{}, ErrInvalidQuery.New(nil, "%s: is repeated", name)
		}
		*into = value
	}
	return q, q.check()
}

func (q *Query) check() error {
	if len(q.Words) > maxQueryWords {
		return ErrInvalidQuery.New(nil, "the query has %d words, at most %d are allowed", len(q.Words), maxQueryWords)
	}
	return nil
}

// field returns the part of the query with a prefix, or nil.
func (q *Query) field(name string) *string {
	switch strings.ToLower(name) {
	case "kind":
		return &q.Kind
	case "group":
		return &q.Group
	case "provides":
		return &q.Provides
	case "field":
		return &q.Field
	case "type":
		return &q.Type
	}
	return nil
}

// Empty reports whether the query selects everything.
func (q *Query) Empty() bool {
	return len(q.Words) == 0 && q.Kind == "" && q.Group == "" && q.Provides == "" && q.Field == "" && q.Type == ""
}

// matchesGroup returns a function that reports whether a group matches a pattern, in which * stands for any text.
func matchesGroup(pattern string) func(group string) bool {
	parts := strings.Split(strings.ToLower(pattern), "*")
	return func(group string) bool {
		if len(parts) == 1 {
			return parts[0] == group
		}
		rest, ok := strings.CutPrefix(group, parts[0])
		if !ok {
			return false
		}
		for _, part := range parts[1 : len(parts)-1] {
			i := strings.Index(rest, part)
			if i < 0 {
				return false
			}
			rest = rest[i+len(part):]
		}
		return strings.HasSuffix(rest, parts[len(parts)-1])
	}
}

// splitKind splits KIND, KIND.GROUP and PLURAL.GROUP, with an optional /VERSION, which is dropped.
func splitKind(s string) (kind, group string) {
	s, _, _ = strings.Cut(s, "/")
	kind, group, _ = strings.Cut(s, ".")
	return strings.ToLower(kind), strings.ToLower(group)
}

// matchesFilters reports whether a kind satisfies the parts of the query other than words and fields.
func (q *Query) matchesFilters(k *Kind, p *Package) bool {
	if q.Type != "" && !strings.EqualFold(q.Type, p.Type) {
		return false
	}
	if q.Group != "" && !matchesGroup(q.Group)(k.Group) {
		return false
	}
	if q.Kind != "" && !named(k, q.Kind) {
		return false
	}
	if q.Provides != "" {
		return k.Role != Input && named(k, q.Provides)
	}
	return true
}

// named reports whether KIND, KIND.GROUP or PLURAL.GROUP names the kind.
func named(k *Kind, name string) bool {
	kind, group := splitKind(name)
	return (group == "" || k.Group == group) && (strings.EqualFold(k.Kind, kind) || k.hasName(kind))
}
