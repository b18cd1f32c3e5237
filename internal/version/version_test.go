package version

import (
	"runtime/debug"
	"testing"
)

// TestVersionOfAnInstalledModule checks that `go install MODULE@VERSION` yields a program with that version, and
// that other builds are not mistaken for a release.
func TestVersionOfAnInstalledModule(t *testing.T) {
	for recordedVersion, want := range map[string]string{
		"v1.2.3": "v1.2.3", "v0.0.0-20260102030405-abcdefabcdef": "v0.0.0-20260102030405-abcdefabcdef",
		"(devel)": unreleased, "": unreleased,
	} {
		if got := recorded(&debug.BuildInfo{Main: debug.Module{Version: recordedVersion}}); got != want {
			t.Errorf("recorded version %q: got %q, want %q", recordedVersion, got, want)
		}
	}
	if got := recorded(nil); got != unreleased {
		t.Errorf("without build information: got %q, want %q", got, unreleased)
	}
}
