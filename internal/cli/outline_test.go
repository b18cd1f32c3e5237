package cli

import (
	"bytes"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
)

// The outline has all that the list of the commands shows: the list is the same as with the whole grammar, which
// further arguments select.
func TestTheOutlineListsTheSameCommands(t *testing.T) {
	help := func(args ...string) string {
		var out, errs bytes.Buffer
		if code := Main(t.Context(), append([]string{"xpkg"}, args...), &terminal.Env{
			Stdin: &bytes.Buffer{}, Stdout: &out, Stderr: &errs,
		}); code != 0 || errs.Len() > 0 {
			t.Fatalf("%q: exit code %d, %s", args, code, errs.String())
		}
		return out.String()
	}
	want := help("--help", "--quiet")
	for _, flag := range []string{"--help", "-h"} {
		if got := help(flag); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}
