package packages

import (
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// A command that needs a confirmation and cannot ask names the command that shows its changes, with the words of the
// user.
func TestMissingConfirmationNamesTheDryRun(t *testing.T) {
	env := &terminal.Env{Stdin: strings.NewReader(""), Stderr: &strings.Builder{}, Args: []string{
		"uninstall", "-l", "team=core",
	}}
	err := review{}.ask(env, "uninstall 2 packages")
	want := "Review the changes with `xpkg uninstall -l team=core --dry-run`, then run the command with --yes."
	if got := errcode.From(err).Do; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := (review{ConsentFlag: terminal.ConsentFlag{Yes: true}}).ask(env, "uninstall 2 packages"); err != nil {
		t.Errorf("with --yes: %v", err)
	}
}
