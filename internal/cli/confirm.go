package cli

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/xpkg-dev/xpkg/internal/planner"
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

// interactive reports whether a person can be asked.
func (e *Env) interactive() bool {
	in, ok := e.Stdin.(*os.File)
	return ok && term.IsTerminal(int(in.Fd())) && isTerminal(e.Stderr)
}

// confirm asks a person, and fails with Declined unless the answer is yes.
func (e *Env) confirm() error {
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

// consentFlag lets a command go ahead without asking.
type consentFlag struct {
	Yes bool `short:"y" help:"Apply the changes without asking."`
}

// consentTo asks for consent to a plan. Where there is nobody to ask, it fails with
// what the plan breaks, if it breaks anything.
func (f consentFlag) consentTo(env *Env, p *planner.Plan, what string) error {
	if err := p.BreakageError(); err != nil && !f.Yes && !env.interactive() {
		return err
	}
	return f.consent(env, what)
}

// consent asks for it where there is somebody to ask. Without a terminal it fails
// with NotConfirmed.
func (f consentFlag) consent(env *Env, what string) error {
	switch {
	case f.Yes:
		return nil
	case env.interactive():
		return env.confirm()
	}
	return ErrNotConfirmed.New(nil, "cannot ask whether to %s", what)
}
