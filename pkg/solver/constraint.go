package solver

import (
	"regexp"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// constraint is a parsed constraint.
type constraint struct {
	any   bool
	pin   *pin
	plain [][]comparison      // when it compares with numbers only
	full  *semver.Constraints // otherwise
}

// pin names one version: by a tag, a digest, or both.
type pin struct{ tag, digest string }

var digestPattern = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// parsePin parses an installed or listed version: a tag, a digest, or both.
func parsePin(s string) pin {
	if tag, digest, ok := strings.Cut(s, "@"); ok && digestPattern.MatchString(digest) {
		return pin{tag, digest}
	}
	if digestPattern.MatchString(s) {
		return pin{digest: s}
	}
	return pin{tag: s}
}

// String returns the version as a Source expects it.
func (p pin) String() string {
	switch {
	case p.digest == "":
		return p.tag
	case p.tag == "":
		return p.digest
	}
	return p.tag + "@" + p.digest
}

// names reports whether another pin, which can have more parts, satisfies the pin.
func (p pin) names(q pin) bool {
	return (p.tag == "" || p.tag == q.tag) && (p.digest == "" || p.digest == q.digest)
}

// parseConstraint parses the constraint of a dependency. It never fails: a text that is not a
// constraint is a tag.
func parseConstraint(s string) constraint {
	s = strings.TrimSpace(s)
	if s == "" {
		return constraint{any: true}
	}
	if p := parsePin(s); p.digest != "" {
		return constraint{pin: &p}
	}
	if plain, ok := parseRange(s); ok {
		return constraint{plain: plain}
	}
	full, err := semver.NewConstraint(s)
	if err != nil {
		return constraint{pin: &pin{tag: s}}
	}
	return constraint{full: full}
}

// accepts reports whether a version satisfies the constraint, which must not be a pin.
func (c *constraint) accepts(v *Version) bool {
	switch {
	case v.unusable != "":
		return false
	case c.full != nil:
		return c.full.Check(v.semver())
	case v.pre != "":
		return false // prereleases only where the constraint names one
	case c.any:
		return true
	}
	for _, all := range c.plain {
		if acceptAll(all, v) {
			return true
		}
	}
	return false
}

func acceptAll(all []comparison, v *Version) bool {
	for i := range all {
		if !all[i].accepts(v) {
			return false
		}
	}
	return true
}
