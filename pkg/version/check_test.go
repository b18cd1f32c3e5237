package version

import (
	"errors"
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"
)

// hardening: E5
func TestCheckConstraint(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0123456789abcdef", 4)
	for _, good := range []string{
		"v0.7.0", "v1", ">=v2", ">= 0.0.0", ">=v0.18.0-0", ">=v0.6.5,<v0.7.0", "=v0.0.0-12.b53bcdc",
		"v0.0.0-25.g59b8955-main",
		"*", "1.x", "~1.2", "^1.2.3", ">1 <2", ">=1, <2 || >=3", "1.2 - 1.4.5", "!=1.2.3", "=>1", "  v1  ", digest,
		"v1.0.0@" + digest, "latest@" + digest,
	} {
		if err := CheckConstraint(good, true); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for bad, want := range map[string]string{
		"":                       "\"\"\n ^",
		" ":                      "\" \"\n  ^",
		"latest":                 "\"latest\"\n ^",
		">=v1 <v2 ||":            "\">=v1 <v2 ||\"\n            ^",
		"|| v1":                  "\"|| v1\"\n ^",
		">=v1 || || v2":          "\">=v1 || || v2\"\n         ^",
		">=v1, latest":           "\">=v1, latest\"\n       ^",
		">=v1 <v2.x.y.z":         "\">=v1 <v2.x.y.z\"\n      ^",
		">=":                     "\">=\"\n ^",
		"v1 | v2":                "\"v1 | v2\"\n    ^",
		">=v1," + digest:         "\">=v1," + digest + "\"\n      ^",
		">=v1@" + digest:         "\">=v1@" + digest + "\"\n ^",
		digest + "0":             "\"" + digest + "0\"\n ^",
		strings.ToUpper("é"):     "\"É\"\n ^",
		"v1 é\x1b[2J":            "\"v1 é\\x1b[2J\"\n    ^",
		"\x1b v1 foo":            "\"\\x1b v1 foo\"\n ^",
		strings.Repeat("1", 999): "",
	} {
		err := CheckConstraint(bad, true)
		var c *ConstraintError
		if !errors.As(err, &c) {
			t.Errorf("%q is accepted", bad)
			continue
		}
		if got := c.Caret(); want != "" && got != want {
			t.Errorf("%q:\n%s\nwant\n%s", bad, got, want)
		}
	}
	if err := CheckConstraint(
		">=v1.0.0 <<2", true,
	); !strings.Contains(err.Error(), `"<<" is not an operator at character 10`) {
		t.Errorf("an operator that is none: %v", err)
	}
	if CheckConstraint(digest, false) == nil {
		t.Error("a digest is accepted for a Crossplane version")
	}
	for _, text := range []string{"sha512:" + strings.Repeat("0123456789abcdef", 8), "v1.0.0@sha512:" +
		strings.Repeat("0", 128)} {
		if err := CheckConstraint(text, true); err == nil ||
			!strings.Contains(err.Error(), "sha512 digests are not supported, only sha256") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// FuzzCheckConstraint proves that nothing is refused that the library of the field
// accepts, but for the empty constraint, and nothing accepted that it refuses.
func FuzzCheckConstraint(f *testing.F) {
	for _, seed := range []string{">=v1 <v2 ||", "latest", "1.2 - 3", "*", ">=v0.6.5,<v0.7.0", "sha256:00", "é |"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		_, err := semver.NewConstraint(s)
		got := CheckConstraint(s, false)
		if want := err == nil && strings.TrimSpace(s) != ""; want != (got == nil) {
			t.Fatalf("%q: got %v, the library says %v", s, got, err)
		}
		var c *ConstraintError
		if errors.As(got, &c) && (c.Offset < 0 || c.Offset > len(s) || c.Caret() == "" || c.Why == "") {
			t.Fatalf("%q: %+v", s, c)
		}
	})
}
