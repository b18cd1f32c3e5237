package version

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"
	"pgregory.net/rapid"
)

// Masterminds/semver decides which versions a constraint accepts.
func checkAgainstLibrary(t interface{ Fatalf(string, ...any) }, text, tag string) {
	v := Parse(tag)
	full, err := semver.NewVersion(tag)
	if err != nil && v.Unusable() == "" {
		t.Fatalf("%q is no version: %v", tag, err)
	}
	if v.Unusable() != "" {
		return
	}
	if v.Prerelease() != (full.Prerelease() != "") || v.Semver().Compare(full) != 0 {
		t.Fatalf("%q was read as %v", tag, v)
	}
	c := ParseConstraint(text)
	library, err := semver.NewConstraint(strings.TrimSpace(text))
	if c.any || c.pin != nil && c.pin.Digest != "" {
		return
	}
	if (err != nil) != (c.pin != nil) {
		t.Fatalf("%q: read as %+v where the library says %v", text, c, err)
	}
	if err == nil && c.selects(&v) != library.Check(full) {
		t.Fatalf("%q accepts %q: %v where the library says %v", text, tag, c.selects(&v), library.Check(full))
	}
}

func TestConstraintsAreThoseOfTheLibrary(t *testing.T) {
	number := rapid.SampledFrom([]string{"0", "1", "2", "3", "10", "01", "99999999999999999999"})
	pre := rapid.SampledFrom([]string{"", "", "", "-0", "-rc.1", "-alpha", "-12.b53bcdc", "+meta", "-rc.1+meta"})
	version := rapid.Custom(func(t *rapid.T) string {
		parts := rapid.SliceOfN(number, 1, 4).Draw(t, "numbers")
		return rapid.SampledFrom([]string{"", "v"}).Draw(t, "v") + strings.Join(parts, ".") + pre.Draw(t, "prerelease")
	})
	constraint := rapid.Custom(func(t *rapid.T) string {
		var b strings.Builder
		for i := range rapid.IntRange(1, 3).Draw(t, "parts") {
			if i > 0 {
				b.WriteString(rapid.SampledFrom([]string{" ", ",", ", ", " , ", "||", " || ", " - "}).Draw(t, "between"))
			}
			b.WriteString(rapid.SampledFrom([]string{
				"", "=", "!=", ">", "<", ">=", "=>", "<=", "=<", "~", "~>", "^", "==", ">= ",
			}).Draw(t, "operator"))
			b.WriteString(rapid.OneOf(version, rapid.SampledFrom([]string{"1.x", "*", "2.3.*", "v1.X", ""})).Draw(t, "version"))
		}
		return b.String()
	})
	rapid.Check(t, func(rt *rapid.T) {
		checkAgainstLibrary(rt, constraint.Draw(rt, "constraint"), version.Draw(rt, "tag"))
	})
}

// hardening: F7
func TestVersionsAreOrderedAsByTheLibrary(t *testing.T) {
	tags := []string{
		"v1.0.0", "1.0.0", "1.0.1", "v1.1.0", "v2.0.0-0", "v2.0.0-rc.1", "v2.0.0-rc.2", "v2.0.0-rc.10", "v2.0.0", "v10.0.0",
		"v2.0.0+meta",
	}
	for _, a := range tags {
		for _, b := range tags {
			v, w := Parse(a), Parse(b)
			want := semver.MustParse(a).Compare(semver.MustParse(b))
			if got := v.Compare(&w); cmp.Compare(got, 0) != want {
				t.Errorf("%s and %s: got %d, want %d", a, b, got, want)
			}
		}
	}
}

// hardening: F7
func TestUnfitTags(t *testing.T) {
	for tag, unfit := range map[string]bool{
		"v1": true, "v1.2": true, "1": true, "latest": true, "": true, "v1.2.3.4": true, "v1-rc.1": true, "v1.2+x": true,
		"v1.2.3": false, "1.2.3": false, "v1.2.3-rc.1": false, "v1.2.3+meta": false, "v0.0.0-25.g59b8955-main": false,
		"2024.01.05": true, "v2024.01.05": true, "2024.1.05": true, "02024.1.5": true, "v1.00.0": true, "v01.0.0-rc.1": true,
		"1.0.00+meta": true,
		"2024.1.5":    false, "v0.0.0": false, "v10.0.20": false, "v1.0.0-rc.1.00a": false,
	} {
		if v := Parse(tag); (v.Unusable() != "") != unfit {
			t.Errorf("%q: %q", tag, v.Unusable())
		}
	}
}

// A tag with leading zeros is no version that a constraint selects. A requirement can name it, and other clients can
// read it as a version.
func TestTagsWithLeadingZeros(t *testing.T) {
	tags := []string{"v0.14.36", "2024.01.05", "v0.15.00", "v00.16.0"}
	for _, constraint := range []string{"*", ">=v0.14.0", ">=v0.0.0-0", "<v9999", "!=v1.0.0"} {
		if got := ParseConstraint(constraint).Filter(tags); !slices.Equal(got, []string{"v0.14.36"}) {
			t.Errorf("%s selects %v", constraint, got)
		}
	}
	for _, tag := range tags[1:] {
		if c := ParseConstraint(tag); !c.Accepts(tag) || c.Pinned() != tag || c.Accepts("2024.1.5") {
			t.Errorf("%s names %q", tag, c.Pinned())
		}
		v, plain := ParseLenient(tag), Parse("2024.1.5")
		if !v.Usable() || (v.Compare(&plain) == 0) != (tag == "2024.01.05") {
			t.Errorf("%s is read as another version", tag)
		}
	}
}

func TestAcceptingPrereleases(t *testing.T) {
	for _, c := range []struct{ constraint, tag, want string }{
		{">=v0.14.36", "v0.16.0-feat-something.0", ">=v0.14.36-0"},
		{">=v1.0.0, <v2", "v1.5.0-rc.1", ">=v1.0.0-0, <v2-0"},
		{"v1 || >=3.0.0", "v3.1.0-rc.1", "v1-0 || >=3.0.0-0"},
		{">=v1.0.0-0 <v2.0.0", "v1.5.0-rc.1", ""}, // It accepts the prerelease.
		{">=v2.0.0", "v1.5.0-rc.1", ""},
		{">=v1.0.0", "v1.5.0", ""},
		{">=v1.0.0", "latest", ""},
		{"latest", "v1.0.0-rc.1", ""},
		{"", "v1.0.0-rc.1", ""},
	} {
		if got := AcceptingPrereleases(c.constraint, c.tag); got != c.want {
			t.Errorf("%s for %s: got %q, want %q", c.constraint, c.tag, got, c.want)
		}
	}
}

func FuzzConstraint(f *testing.F) {
	for _, text := range []string{
		"v0.7.0", "v1", ">=v2", ">= 0.0.0", ">=v0.18.0-0", ">=v0.6.5,<v0.7.0", "=v0.0.0-12.b53bcdc", "1.2 - 2.3.4", "^0.0",
		"~0.0.0", ">1 ,<2",
	} {
		f.Add(text, "v1.2.3")
		f.Add(text, "0.7.0-rc.1")
	}
	f.Fuzz(func(t *testing.T, text, tag string) { checkAgainstLibrary(t, text, tag) })
}
