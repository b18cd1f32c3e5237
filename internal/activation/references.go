package activation

import (
	"bytes"
	"iter"
	"regexp"
	"slices"
	"strings"
)

// The schema of a managed resource names the kind to which a field refers in two forms. The descriptions of generated
// providers name it with the first label of its group, and describedReference matches what precedes the text populates.
// The name of a field, such as bucketRef or vpcIdSelector, begins with the kind, and may have the name of one of its
// fields before its end.
var (
	describedReference = regexp.MustCompile(
		`(?:References? to|Selector for) (?:an? )?(?:list of )?([A-Z][A-Za-z0-9]*) in ([a-z0-9-]+)$`)
	populates     = []byte(" to populate")
	referenceEnds = []string{"Ref", "Refs", "Selector"}
	referredField = []string{"ID", "IDs", "Id", "Ids", "ARN", "ARNs", "Arn", "Arns", "Name", "Names"}
)

// mostDescribed is the maximum length of a description up to its text populates.
const mostDescribed = 300

// MayNeed returns the inactive kinds to which fields of the active managed resources refer, by the names of their CRDs,
// each with the CRDs of the kinds that refer to it, ordered. A resource can name the other one in such a field without
// it, so the reference alone activates no kind. It reads the schemas of the active kinds.
func (s *Selection) MayNeed() (map[string][]string, error) {
	out := map[string][]string{}
	if s == nil || !s.Selective {
		return out, nil
	}
	inactive := map[string][]Kind{} // By the kind in lower case.
	for _, k := range s.Offered {
		if !s.IsActive(k.Name) {
			name := strings.ToLower(k.Kind)
			inactive[name] = append(inactive[name], k)
		}
	}
	for _, k := range s.Offered {
		if len(inactive) == 0 || !k.Managed || !s.IsActive(k.Name) {
			continue
		}
		text, err := k.object.JSON()
		if err != nil {
			return nil, err
		}
		for _, to := range k.references(text) {
			for _, candidate := range inactive[to.kind] {
				if by := out[candidate.Name]; to.isIn(candidate.Group, k.Group) && !slices.Contains(by, k.Name) {
					out[candidate.Name] = append(by, k.Name)
				}
			}
		}
	}
	for _, by := range out {
		slices.Sort(by)
	}
	return out, nil
}

// A reference names a kind in lower case, and the first label of its group; empty means the group of the kind that
// refers to it.
type reference struct{ kind, label string }

// references returns the references in the JSON of the CRD of a kind.
func (k Kind) references(crd []byte) []reference {
	found := map[reference]bool{}
	var out []reference
	add := func(r reference) {
		if !found[r] {
			found[r] = true
			out = append(out, r)
		}
	}
	for at := range occurrences(crd, populates) {
		if m := describedReference.FindSubmatch(crd[max(0, at-mostDescribed):at]); m != nil {
			add(reference{strings.ToLower(string(m[1])), string(m[2])})
		}
	}
	for _, end := range referenceEnds {
		for at := range occurrences(crd, []byte(end+`":{`)) {
			if kind := namedBefore(crd[:at]); kind != "" {
				add(reference{strings.ToLower(kind), ""})
			}
		}
	}
	return out
}

// occurrences yields where text contains part.
func occurrences(text, part []byte) iter.Seq[int] {
	return func(yield func(int) bool) {
		for at := 0; ; at += len(part) {
			next := bytes.Index(text[at:], part)
			if next < 0 {
				return
			}
			if at += next; !yield(at) {
				return
			}
		}
	}
}

// namedBefore returns the kind that begins the name of the field at the end of a text, or "".
func namedBefore(text []byte) string {
	start := bytes.LastIndexByte(text, '"') + 1
	name := string(text[start:])
	if start == 0 || strings.ContainsFunc(name, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9')
	}) {
		return ""
	}
	for _, field := range referredField {
		if kind, ok := strings.CutSuffix(name, field); ok && kind != "" {
			return kind
		}
	}
	return name
}

// isIn reports whether a reference from a kind in a group can be to a kind in another one. A provider has the groups of
// its services below one domain, and may have further kinds in the domain itself.
func (r reference) isIn(group, from string) bool {
	label, domain, _ := strings.Cut(group, ".")
	_, ours, _ := strings.Cut(from, ".")
	if r.label == "" {
		return group == from
	}
	return label == r.label && (domain == ours || group == ours)
}
