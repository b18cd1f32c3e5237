// Package command runs commands of xpkg in the process of a test.
package command

import (
	"bytes"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/cli"
)

// Run runs a command, which must succeed.
func Run(t testing.TB, args ...string) {
	t.Helper()
	if code, stdout, stderr := Output(t, args...); code != 0 {
		t.Fatalf("xpkg %q: exit code %d\n%s%s", args, code, stdout, stderr)
	}
}

// Output runs a command and returns its exit code and output.
func Output(t testing.TB, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, failed bytes.Buffer
	env := &cli.Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &failed}
	code = cli.Main(t.Context(), append([]string{"xpkg"}, args...), env)
	return code, out.String(), failed.String()
}
