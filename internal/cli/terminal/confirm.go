package terminal

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// Codes for missing confirmations.
var (
	ErrNotConfirmed = errcode.Code{
		Name: "NotConfirmed", Class: errcode.Usage,
		Cause: "The command changes or deletes packages, and standard input is not a terminal.",
		Fix:   "Review the changes, for installed packages with `xpkg plan`, then pass --yes.",
	}
	ErrDeclined = errcode.Code{
		Name: "Declined", Class: errcode.Interrupted,
		Cause: "The changes were not confirmed.",
		Fix:   "Nothing was changed. To apply the changes, run the command again and answer y.",
	}
)

// Interactive reports whether the user can be prompted.
func (e *Env) Interactive() bool {
	in, ok := e.Stdin.(*os.File)
	return ok && term.IsTerminal(int(in.Fd())) && IsTerminal(e.Stderr)
}

// Confirm prompts the user, and fails with ErrDeclined unless the answer is yes.
func (e *Env) Confirm() error {
	fmt.Fprint(e.Stderr, "\nApply these changes? [y/N] ")
	line, _ := bufio.NewReader(e.Input()).ReadString('\n')
	if !strings.HasSuffix(line, "\n") {
		fmt.Fprintln(e.Stderr)
	}
	if e.context().Err() != nil {
		return errcode.ErrInterrupted.New(nil, "cancelled; nothing changed").WithDo("%s", ErrDeclined.Fix)
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return nil
	}
	return ErrDeclined.New(nil, "cancelled; nothing changed")
}

// ConsentFlag skips the confirmation of a command.
type ConsentFlag struct {
	Yes bool `short:"y" help:"Apply the changes without asking."`
}

// Asks reports whether Consent asks the user.
func (f ConsentFlag) Asks(env *Env) bool { return !f.Yes && env.Interactive() }

// Consent asks for confirmation on a terminal. Without a terminal it fails with
// ErrNotConfirmed.
func (f ConsentFlag) Consent(env *Env, what string) error {
	switch {
	case f.Yes:
		return nil
	case env.Interactive():
		return env.Confirm()
	}
	return ErrNotConfirmed.New(nil, "confirmation required to %s, but standard input is not a terminal", what)
}
