package cli

import (
	"slices"
	"strings"
	"testing"
)

// TestLeadingFlags proves that the flags that users write before the command are those of the command.
func TestLeadingFlags(t *testing.T) {
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
		"--color":                        "--color",
		"--context prod list":            "list --context prod",
		"--kubeconfig=a -q list -o json": "list -o json --kubeconfig=a -q",
		"-n crossplane-system list":      "list -n crossplane-system",
		"--as ann --as-group ships --as-group rafts list -w": "list -w --as ann --as-group ships --as-group rafts",
		"-o json list":   "list -o json",
		"-ojson list":    "-ojson list",
		"--unknown list": "--unknown list",
	} {
		if got := leadingLast(strings.Fields(line)); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
	}
	if got := leadingLast(nil); got != nil {
		t.Errorf("no arguments: %q", got)
	}
}
