package version

import (
	"cmp"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// Version is a tag that is parsed with the rules of Masterminds/semver, with or without the
// prefix v.
type Version struct {
	// Tag is the tag as written.
	Tag string

	major, minor, patch uint64
	prerelease          *semver.Version // nil for a release
	unusable            reason
}

// reason is the reason why no constraint can select a tag.
type reason uint8

const (
	usable reason = iota
	notSemantic
	partial
)

// Unusable returns the reason why no constraint can select the tag, or "". A requirement can
// still name the tag exactly.
func (v *Version) Unusable() string {
	switch v.unusable {
	case notSemantic:
		return "it is not a semantic version"
	case partial:
		return "it is a partial version, and moves"
	}
	return ""
}

// Usable reports whether a constraint can select the tag.
func (v *Version) Usable() bool { return v.unusable == usable }

// Major returns the major version.
func (v *Version) Major() uint64 { return v.major }

// Prerelease reports whether the version is a prerelease.
func (v *Version) Prerelease() bool { return v.prerelease != nil }

// Parse parses a tag. A partial version such as v1 is not a version, because the tag
// moves with every release. A tag with leading zeros, such as 2024.01.05, is not the
// spelling of a version.
func Parse(tag string) Version {
	v := ParseLenient(tag)
	if v.Usable() && hasLeadingZero(tag) {
		return Version{Tag: tag, unusable: notSemantic}
	}
	return v
}

// hasLeadingZero reports whether one of the three numbers of a version begins with a zero and has more digits.
func hasLeadingZero(tag string) bool {
	tag = strings.TrimPrefix(tag, "v")
	for range 3 {
		if len(tag) > 1 && tag[0] == '0' && tag[1] >= '0' && tag[1] <= '9' {
			return true
		}
		_, tag, _ = strings.Cut(tag, ".")
	}
	return false
}

// ParseLenient is like Parse, and reads a tag with leading zeros, such as v1.00.0, as the
// version that other clients can read it as.
func ParseLenient(tag string) Version {
	v := Version{Tag: tag}
	if n := (parts{}); n.parse(tag) && n.count == 3 {
		v.major, v.minor, v.patch = n.number[0], n.number[1], n.number[2]
		return v
	}
	full, err := semver.NewVersion(tag)
	if err != nil {
		v.unusable = notSemantic
		return v
	}
	core, _, _ := strings.Cut(tag, "+")
	core, _, _ = strings.Cut(core, "-")
	if strings.Count(core, ".") < 2 {
		v.unusable = partial
		return v
	}
	v.major, v.minor, v.patch = full.Major(), full.Minor(), full.Patch()
	if full.Prerelease() != "" {
		v.prerelease = full
	}
	return v
}

// Compare orders versions by precedence. Tags that are not versions come first.
func (v *Version) Compare(w *Version) int {
	switch {
	case v.Usable() != w.Usable():
		if v.Usable() {
			return 1
		}
		return -1
	case v.major != w.major:
		return cmp.Compare(v.major, w.major)
	case v.minor != w.minor:
		return cmp.Compare(v.minor, w.minor)
	case v.patch != w.patch:
		return cmp.Compare(v.patch, w.patch)
	case v.prerelease == w.prerelease:
		return 0
	case v.prerelease == nil:
		return 1
	case w.prerelease == nil:
		return -1
	}
	return v.prerelease.Compare(w.prerelease)
}

// The parts of a rank, the lowest last: whether the version is usable, and its numbers.
const (
	majorBits, minorBits, patchBits = 12, 15, 16
	usableBit                       = 1 << (majorBits + minorBits + patchBits)

	// RankBits is the number of bits of a rank.
	RankBits = 1 + majorBits + minorBits + patchBits
)

// Rank returns a number of RankBits bits that never decreases from a version to a higher one: versions with different
// ranks are ordered by their ranks. Different versions can have the same rank.
func (v *Version) Rank() uint64 {
	switch {
	case !v.Usable():
		return 0
	case v.major >= 1<<majorBits:
		return 2*usableBit - 1
	case v.minor >= 1<<minorBits:
		return usableBit | v.major<<(minorBits+patchBits) | (1<<(minorBits+patchBits) - 1)
	}
	return usableBit | v.major<<(minorBits+patchBits) | v.minor<<patchBits | min(v.patch, 1<<patchBits-1)
}

// Semver returns the version as a value of the semver library. It must not be called for a
// tag that is not a version.
func (v *Version) Semver() *semver.Version {
	if v.prerelease != nil {
		return v.prerelease
	}
	return semver.New(v.major, v.minor, v.patch, "", "")
}

// parts are the numbers of a version without a prerelease or metadata.
type parts struct {
	number [3]uint64
	count  int
}

// parse parses one to three numbers of at most 18 digits after an optional v. It rejects all
// other forms, which are left to the semver library.
func (p *parts) parse(s string) bool {
	s = strings.TrimPrefix(s, "v")
	for {
		digits := 0
		var n uint64
		for digits < len(s) && s[digits] >= '0' && s[digits] <= '9' {
			n = n*10 + uint64(s[digits]-'0')
			digits++
		}
		if digits == 0 || digits > 18 || digits > 1 && s[0] == '0' {
			return false
		}
		p.number[p.count] = n
		p.count++
		s = s[digits:]
		if s == "" {
			return true
		}
		if s[0] != '.' || p.count == 3 {
			return false
		}
		s = s[1:]
	}
}
