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
	pre                 string
	full                *semver.Version // of versions with a prerelease
	unusable            string
}

// Unusable returns the reason why no constraint can select the tag, or "". A requirement can
// still name the tag exactly.
func (v Version) Unusable() string { return v.unusable }

// Major returns the major version.
func (v Version) Major() uint64 { return v.major }

// Prerelease reports whether the version is a prerelease.
func (v Version) Prerelease() bool { return v.pre != "" }

// Parse parses a tag. A partial version such as v1 is not a version, because the tag
// moves with every release.
func Parse(tag string) Version {
	v := Version{Tag: tag}
	if n := (parts{}); n.parse(tag) && n.count == 3 {
		v.major, v.minor, v.patch = n.number[0], n.number[1], n.number[2]
		return v
	}
	full, err := semver.NewVersion(tag)
	if err != nil {
		v.unusable = "it is not a semantic version"
		return v
	}
	core, _, _ := strings.Cut(tag, "+")
	core, _, _ = strings.Cut(core, "-")
	if strings.Count(core, ".") < 2 {
		v.unusable = "it is a partial version, and moves"
		return v
	}
	v.major, v.minor, v.patch, v.pre = full.Major(), full.Minor(), full.Patch(), full.Prerelease()
	if v.pre != "" {
		v.full = full
	}
	return v
}

// Compare orders versions by precedence. Tags that are not versions come first.
func (v *Version) Compare(w *Version) int {
	if (v.unusable == "") != (w.unusable == "") {
		if v.unusable != "" {
			return -1
		}
		return 1
	}
	switch {
	case v.major != w.major:
		return cmp.Compare(v.major, w.major)
	case v.minor != w.minor:
		return cmp.Compare(v.minor, w.minor)
	case v.patch != w.patch:
		return cmp.Compare(v.patch, w.patch)
	case v.pre == w.pre:
		return 0
	case v.pre == "":
		return 1
	case w.pre == "":
		return -1
	}
	return v.full.Compare(w.full)
}

// Semver returns the version as a value of the semver library. It must not be called for a
// tag that is not a version.
func (v *Version) Semver() *semver.Version {
	if v.full != nil {
		return v.full
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
