package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/xpkg-dev/xpkg/internal/testing/race"
)

// TestCommandsOfOtherToolsWorkOrNameTheReplacement types each command line of the table. One that works is accepted by
// the grammar; another one ends with a usage error that names the command in the table, which the grammar accepts.
func TestCommandsOfOtherToolsWorkOrNameTheReplacement(t *testing.T) {
	race.SkipSequential(t)
	checked := 0
	for _, tool := range otherTools() {
		for _, c := range tool.commands {
			checked++
			words := strings.Fields(c.theirs)
			if c.ours == "" {
				if err := accepted(t, words); err != nil {
					t.Errorf("%s: %s: %v", tool.name, c.theirs, err)
				}
				continue
			}
			if err := accepted(t, strings.Fields(c.ours)); c.ours != "kubectl" && err != nil {
				t.Errorf("%s: xpkg %s: %v", tool.name, c.ours, err)
			}
			code, _, stderr := runCommand(t, append([]string{"xpkg"}, words...)...)
			if code != 3 || c.ours != "kubectl" && !namesCommand(stderr, strings.Fields(c.ours)) {
				t.Errorf(
					"%s: %s: exit code %d, and the error does not name xpkg %s:\n%s", tool.name, c.theirs, code, c.ours, stderr,
				)
			}
		}
	}
	if checked < 120 {
		t.Errorf("%d command lines were checked", checked)
	}
}

// namesCommand reports whether the advice of an error names a command, or the flag of the same command in its place.
// The syntax of the typed command is no replacement.
func namesCommand(stderr string, command []string) bool {
	_, advice, _ := strings.Cut(stderr, "\n")
	if strings.Contains(advice, "See more with") || strings.Contains(advice, "See the commands with") {
		return false
	}
	flag := slices.IndexFunc(command, func(word string) bool { return strings.HasPrefix(word, "--") })
	return strings.Contains(advice, "`xpkg "+command[0]) || flag > 0 && strings.Contains(advice, command[flag]) ||
		strings.Contains(advice, "Omit the flag")
}

// accepted returns the error of the grammar for a command line.
func accepted(t *testing.T, words []string) error {
	t.Helper()
	words = expandShorthand(leadingLast(words))
	exited := false
	parser, err := kong.New(
		grammarOf(words), kong.Name("xpkg"), kong.Exit(func(int) { exited = true }), kong.Writers(discard{}, discard{}),
	)
	if err != nil {
		t.Fatal(err)
	}
	if err := replaced("xpkg", words); err != nil {
		return err
	}
	_, err = parser.Parse(normalize(parser.Model, words))
	if exited {
		return nil
	}
	return err
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }
