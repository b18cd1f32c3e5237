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
	var out, failed bytes.Buffer
	env := &cli.Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &failed}
	if code := cli.Main(t.Context(), append([]string{"xpkg"}, args...), env); code != 0 {
		t.Fatalf("xpkg %q: exit code %d\n%s%s", args, code, out.String(), failed.String())
	}
}
