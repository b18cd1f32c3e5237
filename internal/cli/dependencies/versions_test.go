package dependencies

import (
	"slices"
	"testing"
)

// TestVersionsAreSortedByPrecedence checks the order of versions, and which tags are shown by default.
func TestVersionsAreSortedByPrecedence(t *testing.T) {
	tags := []string{"latest", "v1.10.0", "v1.2.0", "v1.9.0-rc.1", "v1.9.0", "2.0.0", "sha256-abc.sig"}
	for _, tc := range []struct {
		all  bool
		want []string
	}{
		{false, []string{"2.0.0", "v1.10.0", "v1.9.0", "v1.2.0"}},
		{true, []string{"2.0.0", "v1.10.0", "v1.9.0", "v1.9.0-rc.1", "v1.2.0", "latest", "sha256-abc.sig"}},
	} {
		var got []string
		for _, v := range versionViews(tags, tc.all) {
			got = append(got, v.Tag)
			if want := v.Tag == "v1.9.0-rc.1"; v.Prerelease != want {
				t.Errorf("%s: prerelease %t, want %t", v.Tag, v.Prerelease, want)
			}
			if want := v.Tag == "latest" || v.Tag == "sha256-abc.sig"; (v.Unusable != "") != want {
				t.Errorf("%s: unusable %q", v.Tag, v.Unusable)
			}
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("all %t: got %q, want %q", tc.all, got, tc.want)
		}
	}
}
