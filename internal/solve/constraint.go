package solve

import (
	"regexp"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// A constraint is parsed once for each text of a dependency.
type constraint struct {
	any   bool
	pin   *pin
	plain [][]comparison      // when it compares with numbers only
	full  *semver.Constraints // otherwise
}

// A pin names one version: by a tag, a digest, or both.
type pin struct{ tag, digest string }

var digestPattern = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// parsePin reads what is installed or listed: a tag, a digest, or both.
func parsePin(s string) pin {
	if tag, digest, ok := strings.Cut(s, "@"); ok && digestPattern.MatchString(digest) {
		return pin{tag, digest}
	}
	if digestPattern.MatchString(s) {
		return pin{digest: s}
	}
	return pin{tag: s}
}

// String is what a Source is asked for.
func (p pin) String() string {
	switch {
	case p.digest == "":
		return p.tag
	case p.tag == "":
		return p.digest
	}
	return p.tag + "@" + p.digest
}

// names reports whether the pin is satisfied by another one, of which more may
// be known.
func (p pin) names(q pin) bool {
	return (p.tag == "" || p.tag == q.tag) && (p.digest == "" || p.digest == q.digest)
}

// parseConstraint reads the constraint of a dependency. Nothing is invalid: what
// is no constraint is a tag.
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

// accepts reports whether a version satisfies the constraint, which is no pin.
func (c *constraint) accepts(v *Version) bool {
	switch {
	case v.unfit != "":
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
