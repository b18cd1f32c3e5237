package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/cli"
	"github.com/xpkg-dev/xpkg/internal/testing/pty"
)

func init() { repeatOnTerminals = linesWiderThanTerminals }

// linesWiderThanTerminals repeats a command that only reads on terminals of 80 and 120 columns, and returns the lines
// that do not fit.
func linesWiderThanTerminals(args []string) []string {
	if !cli.IsReading(args[1:]) {
		return nil
	}
	for name, value := range map[string]string{"TERM": "xterm", "NO_COLOR": "1"} {
		if err := os.Setenv(name, value); err != nil {
			return []string{err.Error()}
		}
	}
	var wide []string
	for _, columns := range []int{80, 120} {
		output, err := pty.Output(columns, func(slave *os.File) {
			env := cli.System()
			env.Stdin, env.Stdout, env.Stderr = &bytes.Buffer{}, slave, slave
			cli.Main(context.Background(), args, env)
		})
		if err != nil {
			return []string{err.Error()}
		}
		for _, line := range pty.WideLines(output, columns) {
			wide = append(wide, fmt.Sprintf("%d columns: %s", columns, strings.TrimSpace(line)))
		}
	}
	return wide
}
