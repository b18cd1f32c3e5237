package activation

import (
	"path/filepath"
	"slices"
	"strings"
)

// An index finds the reasons whose patterns match a name. Names, and patterns with one * at their start or end, cost no
// comparison each. Other patterns are compared with the names that end as they do.
type index struct {
	names, suffixes, prefixes map[string][]Reason
	// rest are the other patterns, by what follows their last special character.
	rest map[string][]reasonedPattern
}

type reasonedPattern struct {
	pattern string
	reason  Reason
}

func newIndex() *index {
	return &index{map[string][]Reason{}, map[string][]Reason{}, map[string][]Reason{}, map[string][]reasonedPattern{}}
}

const special = `*?[\`

func (x *index) add(reason Reason, patterns ...string) {
	for _, p := range patterns {
		suffix, isSuffix := strings.CutPrefix(p, "*")
		prefix, isPrefix := strings.CutSuffix(p, "*")
		switch {
		case !strings.ContainsAny(p, special):
			x.names[p] = append(x.names[p], reason)
		case isSuffix && !strings.ContainsAny(suffix, special):
			x.suffixes[suffix] = append(x.suffixes[suffix], reason)
		case isPrefix && !strings.ContainsAny(prefix, special):
			x.prefixes[prefix] = append(x.prefixes[prefix], reason)
		default:
			end := p[strings.LastIndexAny(p, special+"]")+1:]
			x.rest[end] = append(x.rest[end], reasonedPattern{p, reason})
		}
	}
}

// match returns the reasons whose patterns match a name, ordered.
func (x *index) match(name string) []Reason {
	out := slices.Clone(x.names[name])
	for i := 0; i <= len(name) && len(x.suffixes)+len(x.prefixes)+len(x.rest) > 0; i++ {
		out = append(append(out, x.suffixes[name[i:]]...), x.prefixes[name[:i]]...)
		for _, r := range x.rest[name[i:]] {
			if ok, err := filepath.Match(r.pattern, name); ok && err == nil {
				out = append(out, r.reason)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Matching returns the names of CRDs that match one of some patterns, in their order. A malformed pattern matches
// nothing.
func Matching(patterns, names []string) []string {
	x := newIndex()
	x.add("", patterns...)
	var out []string
	for _, name := range names {
		if len(x.match(name)) > 0 {
			out = append(out, name)
		}
	}
	return out
}

// Unmatched returns the patterns that match none of some names of CRDs, in their order.
func Unmatched(patterns, names []string) []string {
	x := newIndex()
	for _, p := range patterns {
		x.add(Reason(p), p)
	}
	matched := map[Reason]bool{}
	for _, name := range names {
		for _, p := range x.match(name) {
			matched[p] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(patterns), func(p string) bool { return matched[Reason(p)] })
}

// Match reports whether a name of a CRD matches one of some patterns, as of a ManagedResourceActivationPolicy: * stands
// for any characters, dots included. A malformed pattern matches nothing.
func Match(patterns []string, name string) bool {
	x := newIndex()
	x.add("", patterns...)
	return len(x.match(name)) > 0
}
