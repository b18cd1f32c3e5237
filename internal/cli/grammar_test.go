package cli

import (
	"bytes"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/xpkg-dev/xpkg/internal/testing/race"
)

// TestGrammarOfOneCommand checks that a command line is read with the grammar of its command only, and that the help of
// the command does not depend on that.
func TestGrammarOfOneCommand(t *testing.T) {
	race.SkipSequential(t)
	model := func(grammar any) (*kong.Kong, *bytes.Buffer) {
		var out bytes.Buffer
		parser, err := kong.New(grammar, kong.Name("xpkg"), kong.Writers(&out, &out), kong.Exit(func(int) {}))
		if err != nil {
			t.Fatal(err)
		}
		return parser, &out
	}
	help := func(grammar any, name string) string {
		parser, out := model(grammar)
		_, _ = parser.Parse([]string{name, "--help"}) // The help ends the program, which continues here.
		return out.String()
	}
	all, _ := model(&grammar{})
	for _, command := range all.Model.Children {
		for _, name := range append(command.Aliases, command.Name) {
			part, _ := model(grammarOf([]string{name, "--help"}))
			if n := part.Model.Children; len(n) != 1 || n[0].Name != command.Name {
				t.Errorf("%s: the grammar has %d commands, want only %s", name, len(n), command.Name)
			}
		}
		if got, want := help(grammarOf([]string{command.Name}), command.Name), help(&grammar{}, command.Name); got != want ||
			got == "" {
			t.Errorf("help of %s: got\n%s\nwant\n%s", command.Name, got, want)
		}
	}
	for _, args := range [][]string{nil, {"--help"}, {"--version"}, {"lst"}, {""}} {
		if part, _ := model(grammarOf(args)); len(part.Model.Children) != len(all.Model.Children) {
			t.Errorf("%q: the grammar has %d of %d commands", args, len(part.Model.Children), len(all.Model.Children))
		}
	}
}
