package solver

import "slices"

// Constraint is the parsed constraint of a Dependency, for callers that prepare a problem or
// verify a solution.
type Constraint struct{ parsed constraint }

// ParseConstraint parses a constraint. It never fails: a text that is not a constraint is a
// tag.
func ParseConstraint(s string) Constraint { return Constraint{parseConstraint(s)} }

// Pinned returns the version that the constraint names by its tag, its digest, or both. It
// returns "" for a constraint that selects among versions.
func (c Constraint) Pinned() string {
	if c.parsed.pin == nil {
		return ""
	}
	return c.parsed.pin.String()
}

// Accepts reports whether a version, which is a tag, a digest, or both, satisfies the
// constraint.
func (c Constraint) Accepts(version string) bool {
	p := parsePin(version)
	return c.fits(&candidate{p, ParseVersion(p.tag)})
}

func (c Constraint) fits(x *candidate) bool {
	switch {
	case c.parsed.pin != nil:
		return c.parsed.pin.names(x.pin)
	case c.parsed.any:
		return true
	}
	return c.parsed.accepts(&x.version)
}

// Filter returns the tags that the constraint accepts, highest version first, which is the
// order in which a search tries them. It omits tags that are not versions.
func (c Constraint) Filter(tags []string) []string {
	var l listing
	l.read(tags)
	var out []string
	for i := len(l.candidates) - 1; i > 0; i-- {
		if x := &l.candidates[i]; c.fits(x) {
			out = append(out, x.tag)
		}
	}
	return slices.Compact(out)
}
