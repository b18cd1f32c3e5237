package cli

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/xpkg-dev/xpkg/internal/testing/race"
)

// runCommand runs a command line, and returns its exit code and both outputs.
func runCommand(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = Main(t.Context(), args, &Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs})
	return code, out.String(), errs.String()
}

// A command of another tool is a usage error that names its replacement, and each replacement that is a command of
// xpkg exists.
func TestCommandsOfOtherToolsNameTheirReplacements(t *testing.T) {
	race.SkipSequential(t)
	parser, err := kong.New(&grammar{})
	if err != nil {
		t.Fatal(err)
	}
	quoted := regexp.MustCompile("`xpkg ([a-z-]+)( [a-z-]+)?")
	for _, r := range replacements {
		t.Run(r.command, func(t *testing.T) {
			words := strings.Fields(r.command)
			if command, rest := commandOf(parser.Model, words); command != parser.Model.Node && len(rest) == 0 {
				t.Errorf("xpkg has the command %s", command.Name)
			}
			code, _, stderr := runCommand(t, append([]string{"kubectl-crossplane"}, append(words, "any", "--flag")...)...)
			if code != 3 || !strings.Contains(stderr, strings.ReplaceAll(r.fix, "`xpkg ", "`kubectl crossplane ")) {
				t.Errorf("exit code %d: %s", code, stderr)
			}
			for _, m := range quoted.FindAllStringSubmatch(r.fix, -1) {
				named := []string{m[1]}
				if m[1] == "deps" || m[1] == "plan" {
					named = append(named, strings.TrimSpace(m[2]))
				}
				if _, rest := commandOf(parser.Model, named); len(rest) > 0 {
					t.Errorf("xpkg has no command %s", strings.Join(named, " "))
				}
			}
		})
	}
	if !slices.IsSortedFunc(replacements, func(a, b replacement) int { return strings.Compare(a.command, b.command) }) {
		t.Error("the commands are not sorted")
	}
}

// The package commands of the Crossplane CLI work as written there, below `xpkg`.
func TestCommandsBelowXpkg(t *testing.T) {
	for _, program := range []string{"xpkg", "kubectl-crossplane"} {
		for _, command := range []string{
			"build", "push", "install", "update", "extract", "login", "logout", "append", "version",
		} {
			code, want, _ := runCommand(t, program, command, "--help")
			if code != 0 {
				t.Fatalf("%s --help: exit code %d", command, code)
			}
			if code, got, stderr := runCommand(t, program, "xpkg", command, "--help"); code != 0 || got != want {
				t.Errorf("%s xpkg %s: exit code %d: %s%s", program, command, code, got, stderr)
			}
		}
	}
}
