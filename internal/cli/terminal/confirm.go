package terminal

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// Failures of consent.
var (
	ErrNotConfirmed = errcode.Code{
		Name: "NotConfirmed", Class: errcode.Usage,
		Cause: "The command changes or takes away what is in use, and there is no terminal to ask on.",
		Fix:   "Look at the changes with `xpkg plan`, and give --yes to make them.",
	}
	ErrDeclined = errcode.Code{
		Name: "Declined", Class: errcode.Interrupted,
		Cause: "The question whether to apply the changes was not answered with yes.",
		Fix:   "Nothing was changed. Run the command again and answer y to apply the changes.",
	}
)

// Interactive reports whether a person can be asked.
func (e *Env) Interactive() bool {
	in, ok := e.Stdin.(*os.File)
	return ok && term.IsTerminal(int(in.Fd())) && IsTerminal(e.Stderr)
}

// Confirm asks a person, and fails with Declined unless the answer is yes.
func (e *Env) Confirm() error {
	fmt.Fprint(e.Stderr, "\nApply these changes? [y/N] ")
	answer := make(chan string, 1)
	go func() {
		// A read of a terminal cannot be stopped; it ends with the process.
		line, _ := bufio.NewReader(e.Stdin).ReadString('\n')
		answer <- line
	}()
	select {
	case <-e.Context.Done():
		fmt.Fprintln(e.Stderr)
		return e.Context.Err()
	case line := <-answer:
		if !strings.HasSuffix(line, "\n") {
			fmt.Fprintln(e.Stderr)
		}
		switch strings.ToLower(strings.TrimSpace(line)) {
		case "y", "yes":
			return nil
		}
		return ErrDeclined.New(nil, "not applied")
	}
}

// ConsentFlag lets a command go ahead without asking.
type ConsentFlag struct {
	Yes bool `short:"y" help:"Apply the changes without asking."`
}

// Consent asks for it where there is somebody to ask. Without a terminal it fails
// with NotConfirmed.
func (f ConsentFlag) Consent(env *Env, what string) error {
	switch {
	case f.Yes:
		return nil
	case env.Interactive():
		return env.Confirm()
	}
	return ErrNotConfirmed.New(nil, "cannot ask whether to %s", what)
}
