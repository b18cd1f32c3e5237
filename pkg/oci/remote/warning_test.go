package remote

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWarningsOfRegistries(t *testing.T) {
	h := http.Header{"Warning": {
		`299 - "the tag moved: \"v1\" (C:\\x)"`, `110 cache "Response is Stale"`, `299 - unquoted`, `299 - ""`,
		"299 - \"bell \\a and escape \x1b\"",
	}}
	want := []string{`the tag moved: "v1" (C:\x)`, "bell  and escape "}
	if diff := cmp.Diff(want, warnings(h)); diff != "" {
		t.Error(diff)
	}
	h = http.Header{}
	for range 2 * maxWarnings {
		h.Add("Warning", `299 - "`+strings.Repeat("x", 10)+`"`)
	}
	if got := len(warnings(h)); got != maxWarnings {
		t.Errorf("got %d warnings, want at most %d", got, maxWarnings)
	}
}
