package version

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFilterOrdersVersions(t *testing.T) {
	tags := []string{"v1.0.0", "latest", "v2.0.0-rc.1", "v1.10.0", "v1", "v1.2.0", "v2.0.0"}
	for constraint, want := range map[string][]string{
		"":                {"v2.0.0", "v2.0.0-rc.1", "v1.10.0", "v1.2.0", "v1.0.0"},
		"*":               {"v2.0.0", "v1.10.0", "v1.2.0", "v1.0.0"},
		">=v1.1.0, <v2":   {"v1.10.0", "v1.2.0"},
		">=v2.0.0-0":      {"v2.0.0", "v2.0.0-rc.1"},
		"v1.2.0":          {"v1.2.0"},
		"latest":          nil,
		">=v9":            nil,
		"sha256:" + zeros: nil,
	} {
		if diff := cmp.Diff(want, ParseConstraint(constraint).Filter(tags)); diff != "" {
			t.Errorf("%q: %s", constraint, diff)
		}
	}
	for constraint, want := range map[string]string{
		"latest": "latest", "sha256:" + zeros: "sha256:" + zeros, "v1@sha256:" + zeros: "v1@sha256:" + zeros, "v1": "",
		">=v1": "", "": "",
	} {
		if got := ParseConstraint(constraint).Pinned(); got != want {
			t.Errorf("%q names %q", constraint, got)
		}
	}
}

const zeros = "0000000000000000000000000000000000000000000000000000000000000000"
