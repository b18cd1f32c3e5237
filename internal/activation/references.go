package activation

import (
	"regexp"
	"slices"
	"strings"
)

// The forms in which the schema of a managed resource names the kind to which a field refers: the descriptions of
// generated providers, with the kind and the first label of its group, and the name of the field, such as bucketRef or
// vpcIdSelector, whose first submatch is the kind or ends with the name of one of its fields.
var (
	describedReference = regexp.MustCompile(
		`(?:References? to|Selector for) (?:an? )?(?:list of )?([A-Z][A-Za-z0-9]*) in ([a-z0-9-]+) to populate`)
	namedReference = regexp.MustCompile(`"([a-zA-Z0-9]+?)(?:IDs?|Ids?|ARNs?|Arns?|Names?)?(?:Refs?|Selector)":\{`)
)

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
	for _, m := range describedReference.FindAllSubmatch(crd, -1) {
		add(reference{strings.ToLower(string(m[1])), string(m[2])})
	}
	for _, m := range namedReference.FindAllSubmatch(crd, -1) {
		add(reference{strings.ToLower(string(m[1])), ""})
	}
	return out
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
