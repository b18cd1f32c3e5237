// Package terminal implements the environment of commands: its streams, whose lines fit on a
// terminal, the progress line, the questions it asks, and the exit code.
package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/frontend"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// ErrUsage is the code for an invalid command line.
var ErrUsage = errcode.Code{
	Name: "Usage", Class: errcode.Usage,
	Cause: "The command line is invalid.",
	Fix:   "Run the command with --help to see its arguments and flags.",
}

// Env is the environment of a command: its streams and the system.
type Env struct {
	Context context.Context
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	// Executable is the path of the running program.
	Executable string
	// Verbose makes commands print each blob that they read or write, and the manager log every step.
	Verbose bool
	// Frontend is the API whose objects use packages, or nil.
	Frontend *frontend.API
	// Args are the arguments of the command, without the program's name.
	Args []string
}

// Command returns the command line of the user, for a shell.
func (e *Env) Command() string { return inShell(e.Args) }

// CommandWith returns the command line of the user with a further flag, for a shell.
func (e *Env) CommandWith(flag string) string {
	at := slices.Index(e.Args, "--") // No flags follow.
	if at < 0 {
		at = len(e.Args)
	}
	return inShell(slices.Insert(slices.Clone(e.Args), at, flag))
}

func inShell(args []string) string {
	words := []string{"xpkg"}
	for _, arg := range args {
		words = append(words, wording.ShellWord(arg))
	}
	return strings.Join(words, " ")
}

// Say writes a result on standard output, in lines that fit on a terminal and without control characters.
func (e *Env) Say(format string, args ...any) error {
	return Show(e.Stdout, false, func(w io.Writer) { fmt.Fprintf(w, format, args...) })
}

// ExitCode ends a command with an exit code and without a message.
type ExitCode int

// ChangesPending is the exit code of a command that compares and finds changes.
const ChangesPending = ExitCode(2)

func (e ExitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// Close joins the error of a Close with the error of a command.
func Close(err *error, c io.Closer) { *err = errors.Join(*err, c.Close()) }
