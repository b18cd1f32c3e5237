package terminal

import (
	"context"
	"errors"
	"io"
	"os"

	"golang.org/x/term"

	"github.com/xpkg-dev/xpkg/internal/fileutil"
)

// Input returns standard input. A read ends with the error of the context when the command
// is interrupted, also while a pipe has no data.
func (e *Env) Input() io.Reader { return fileutil.Reader(e.context(), e.Stdin) }

// OpenInput opens a file, or standard input if the name is "-". Opening and reading end with
// the error of the context when the command is interrupted, also while a named pipe has no
// writer or no data. Commands must open files that users name with OpenInput.
func (e *Env) OpenInput(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(e.Input()), nil
	}
	return fileutil.Open(e.context(), name)
}

// ReadInput reads a whole file, or standard input if the name is "-", as OpenInput does.
func (e *Env) ReadInput(name string) (_ []byte, err error) {
	in, err := e.OpenInput(name)
	if err != nil {
		return nil, err
	}
	defer Close(&err, in)
	return io.ReadAll(in)
}

// context returns the context of the command, or the background context if none is set, as
// in tests.
func (e *Env) context() context.Context {
	if e.Context == nil {
		return context.Background()
	}
	return e.Context
}

// ReadPassword reads a line from a terminal without showing it. It ends with the error of the context when the command
// is interrupted, and the terminal shows its input again.
func (e *Env) ReadPassword(console *os.File) (string, error) {
	ctx, fd := e.context(), int(console.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return "", err
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	typed, err := fileutil.Await(ctx, func() ([]byte, error) { return term.ReadPassword(fd) })
	if ctx.Err() != nil {
		return "", errors.Join(ctx.Err(), term.Restore(fd, before))
	}
	return string(typed), err
}
