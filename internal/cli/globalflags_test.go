package cli

import (
	"slices"
	"strings"
	"testing"
)

// TestGlobalFlagsPrecedeCommands proves that flags of every command are accepted before its name, too.
func TestGlobalFlagsPrecedeCommands(t *testing.T) {
	for line, want := range map[string]string{
		"-q update provider boats":   "update provider boats -q",
		"--color never --quiet list": "list --color never --quiet",
		"--color=never list -o json": "list -o json --color=never",
		"-v uninstall -- boats":      "uninstall -v -- boats",
		"-q -- list":                 "-q -- list",
		"--help":                     "--help",
		"--version":                  "--version",
		"list --quiet":               "list --quiet",
		"--pager less plan install provider a/b:v1": "plan install provider a/b:v1 --pager less",
		"--color": "--color",
	} {
		if got := globalsLast(strings.Fields(line)); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
	}
	if got := globalsLast(nil); got != nil {
		t.Errorf("no arguments: %q", got)
	}
}
