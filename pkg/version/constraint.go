package version

import (
	"cmp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/xpkg-dev/xpkg/internal/lazyregexp"
)

// A Pin names one version: by a tag, a digest, or both.
type Pin struct{ Tag, Digest string }

var digestPattern = lazyregexp.New(`^sha256:[0-9a-f]{64}$`)

// digestLength is the length of a text that digestPattern matches.
const digestLength = len("sha256:") + 64

// ParsePin parses an installed or listed version: a tag, a digest, or both. It never fails: a
// text without a digest is a tag.
func ParsePin(s string) Pin {
	if len(s) < digestLength {
		return Pin{Tag: s}
	}
	if tag, digest, ok := strings.Cut(s, "@"); ok && digestPattern().MatchString(digest) {
		return Pin{tag, digest}
	}
	if digestPattern().MatchString(s) {
		return Pin{Digest: s}
	}
	return Pin{Tag: s}
}

// String returns the tag, the digest, or both, separated by "@".
func (p Pin) String() string {
	switch {
	case p.Digest == "":
		return p.Tag
	case p.Tag == "":
		return p.Digest
	}
	return p.Tag + "@" + p.Digest
}

// Matches reports whether another pin, which can have more parts, satisfies the pin.
func (p Pin) Matches(q Pin) bool {
	return (p.Tag == "" || p.Tag == q.Tag) && (p.Digest == "" || p.Digest == q.Digest)
}

// A Constraint selects versions of a package. The zero value accepts no version.
type Constraint struct {
	any   bool
	pin   *Pin
	plain [][]Comparison      // for comparisons with numbers only
	full  *semver.Constraints // otherwise
}

// ParseConstraint parses the constraint of a dependency: alternatives of comparisons as in
// Masterminds/semver, or a version by its tag, its digest, or both. It never fails: a text
// that is not a constraint is a tag. An empty text accepts every version.
func ParseConstraint(s string) Constraint {
	s = strings.TrimSpace(s)
	if s == "" {
		return Constraint{any: true}
	}
	if p := ParsePin(s); p.Digest != "" {
		return Constraint{pin: &p}
	}
	if plain, ok := parseRange(s); ok {
		return Constraint{plain: plain}
	}
	full, err := semver.NewConstraint(s)
	if lenient := ParseLenient(s); err != nil || lenient.Usable() && hasLeadingZero(s) {
		return Constraint{pin: &Pin{Tag: s}}
	}
	return Constraint{full: full}
}

// ExactTag returns a constraint that accepts one tag, even if the tag reads as a constraint:
// "v1" is then the tag v1, not every version 1. The tag can include its digest.
func ExactTag(tag string) Constraint {
	p := ParsePin(tag)
	return Constraint{pin: &p}
}

// Pin returns the version that the constraint names, and nil for a constraint that selects
// among versions.
func (c Constraint) Pin() *Pin { return c.pin }

// Pinned returns the version that the constraint names by its tag, its digest, or both. It
// returns "" for a constraint that selects among versions.
func (c Constraint) Pinned() string {
	if c.pin == nil {
		return ""
	}
	return c.pin.String()
}

// Comparisons returns the alternatives of a constraint that compares releases with numbers
// only, each of which is a list of comparisons that must all hold. It returns nil for any
// other constraint.
func (c Constraint) Comparisons() [][]Comparison { return c.plain }

// Accepts reports whether a version, which is a tag, a digest, or both, satisfies the
// constraint.
func (c Constraint) Accepts(version string) bool {
	p := ParsePin(version)
	v := Parse(p.Tag)
	return c.AcceptsVersion(p, &v)
}

// AcceptsVersion is like Accepts for a parsed version.
func (c Constraint) AcceptsVersion(p Pin, v *Version) bool {
	switch {
	case c.pin != nil:
		return c.pin.Matches(p)
	case c.any:
		return true
	}
	return c.selects(v)
}

// selects reports whether a version satisfies the constraint, which is not a pin.
func (c *Constraint) selects(v *Version) bool {
	switch {
	case !v.Usable():
		return false
	case c.full != nil:
		return c.full.Check(v.Semver())
	case v.Prerelease():
		return false // a prerelease requires a constraint that names one
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

func acceptAll(all []Comparison, v *Version) bool {
	for i := range all {
		if !all[i].Accepts(v) {
			return false
		}
	}
	return true
}

// Filter returns the tags that the constraint accepts, highest version first, and without
// duplicates. It omits tags that are not versions. A tag can include its digest.
func (c Constraint) Filter(tags []string) []string {
	type candidate struct {
		text    string
		pin     Pin
		version Version
	}
	var found []candidate
	for _, tag := range tags {
		p := ParsePin(tag)
		if v := Parse(p.Tag); v.Usable() && c.AcceptsVersion(p, &v) {
			found = append(found, candidate{p.Tag, p, v})
		}
	}
	slices.SortFunc(found, func(a, b candidate) int {
		return -cmp.Or(a.version.Compare(&b.version), ComparePins(a.pin, b.pin))
	})
	var out []string
	for _, x := range found {
		out = append(out, x.text)
	}
	return slices.Compact(out)
}

// ComparePins orders pins of equal versions: by tag, and a tag with a digest before the tag
// alone.
func ComparePins(a, b Pin) int {
	return cmp.Or(cmp.Compare(a.Tag, b.Tag), cmp.Compare(b.Digest, a.Digest))
}
