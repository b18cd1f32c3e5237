// Package report reports operations on the standard error of a command.
package report

import (
	"fmt"
	"io"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/operation"
)

// To returns a reporter that writes to standard error.
func To(stderr io.Writer) operation.Reporter { return reporter{stderr} }

type reporter struct{ stderr io.Writer }

func (r reporter) Progress() operation.Progress { return terminal.NewProgress(r.stderr) }

func (r reporter) Task(what string, args ...any) operation.Task {
	return terminal.StartTask(r.stderr, what, args...)
}

func (r reporter) Note(text string, args ...any) {
	fmt.Fprintf(r.stderr, "note: %s\n", terminal.Safe(fmt.Sprintf(text, args...)))
}

func (r reporter) PlanUnavailable(why error) {
	fmt.Fprintf(r.stderr, "the plan cannot be computed here: %s\n", terminal.Safe(why.Error()))
}
