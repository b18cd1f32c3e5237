package cli_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/cli"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// A command that panics ends with the exit code of an internal error, not with that of a plan with changes.
func TestAPanicIsAnInternalError(t *testing.T) {
	var errs bytes.Buffer
	code := cli.Main(t.Context(), []string{"xpkg", "version"}, &cli.Env{
		Stdin: strings.NewReader(""), Stdout: panicWriter{}, Stderr: &errs,
	})
	if code != errcode.Internal.Exit {
		t.Errorf("exit code %d, want %d", code, errcode.Internal.Exit)
	}
	for _, want := range []string{
		"panic: the writer is broken\n", "panic_test.go:", "\nerror: Unknown: a defect of xpkg ended the command\n",
	} {
		if !strings.Contains(errs.String(), want) {
			t.Errorf("standard error does not contain %q:\n%s", want, errs.String())
		}
	}
}

// panicWriter panics.
type panicWriter struct{}

func (panicWriter) Write([]byte) (int, error) { panic("the writer is broken") }
