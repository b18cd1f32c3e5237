package firstgeneration

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
)

// A file of --replace has lines OLD=NEW. Each other line is refused with its number, and no part of the file is used.
func TestReplacementsAreReadCompletelyOrRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want map[string]string
		// problem is the text of the error; empty for none.
		problem string
	}{
		"packages and kinds": {
			text: "# comment\n\nacme/boats:v1 = ghcr.io/acme/boats:v2\r\nthings.a.example.org/v1=ghcr.io/acme/things@sha256:1=\n",
			want: map[string]string{
				"acme/boats:v1": "ghcr.io/acme/boats:v2", "things.a.example.org/v1": "ghcr.io/acme/things@sha256:1=",
			},
		},
		"nothing":           {text: "", want: map[string]string{}},
		"no equals sign":    {text: "# comment\nacme/boats:v1\n", problem: "line 2 of "},
		"no former package": {text: "=ghcr.io/acme/boats:v2", problem: "line 1 of "},
		"no new package":    {text: "acme/boats:v1 = \n", problem: "line 1 of "},
		"twice":             {text: "a=b\na=c\n", problem: "replaces a again"},
		"too large":         {text: strings.Repeat("#\n", maxReplacements), problem: "cannot read --replace"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "replacements")
			if err := os.WriteFile(file, []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := readReplacements(&terminal.Env{}, file)
			if tc.problem != "" {
				if !errors.Is(err, terminal.ErrUsage) || !strings.Contains(err.Error(), tc.problem) || got != nil {
					t.Errorf("%v with %v, want %s", err, got, tc.problem)
				}
				return
			}
			if err != nil || !maps.Equal(got, tc.want) {
				t.Errorf("%v (%v), want %v", got, err, tc.want)
			}
		})
	}
	if got, err := readReplacements(&terminal.Env{}, filepath.Join(t.TempDir(), "missing")); err == nil || got != nil {
		t.Errorf("a missing file: %v", got)
	}
}
