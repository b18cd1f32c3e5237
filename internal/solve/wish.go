package solve

import "slices"

// A Constraint is the constraint of a dependency, for those who prepare a problem
// or check a solution. See [Dependency].
type Constraint struct{ parsed constraint }

// ParseConstraint reads a constraint. Nothing is invalid: what is no constraint is
// a tag.
func ParseConstraint(s string) Constraint { return Constraint{parseConstraint(s)} }

// Named is the one version that the constraint names by its tag, its digest or
// both, and empty for a constraint that chooses among versions.
func (c Constraint) Named() string {
	if c.parsed.pin == nil {
		return ""
	}
	return c.parsed.pin.String()
}

// Accepts reports whether a version, named by its tag, its digest or both, will do.
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

// Order gives the tags that the constraint accepts, the highest version first: the
// order in which a search that knows nothing else tries them. Tags that are no
// versions are left out.
func (c Constraint) Order(tags []string) []string {
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
