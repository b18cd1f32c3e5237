package cli

import (
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/xpkg-dev/xpkg/internal/testing/race"
)

// TestCommandsWithTextHaveTheFormatsOfObjects checks the formats of commands that print an object or a report, and that
// the error of another one is worded as that of lists.
func TestCommandsWithTextHaveTheFormatsOfObjects(t *testing.T) {
	race.SkipSequential(t)
	for _, command := range []string{
		"why boats", "doctor", "version", "inspect ghcr.io/acme/boats:v1.0.0", "cache verify", "resolve",
	} {
		for _, format := range []string{"json", "yaml", "jsonpath={.name}", "xml", "name", "jsonpath={"} {
			parser, err := kong.New(
				grammarOf(strings.Fields(command)), kong.Name("xpkg"), kong.Exit(func(int) {}), kong.Writers(discard{}, discard{}),
			)
			if err != nil {
				t.Fatal(err)
			}
			_, err = parser.Parse(normalize(parser.Model, append(strings.Fields(command), "-o", format)))
			if isFormat := format != "xml" && format != "name" && format != "jsonpath={"; isFormat != (err == nil) {
				t.Errorf("xpkg %s -o %s: %v", command, format, err)
			}
			if err != nil && !strings.HasPrefix(format, "jsonpath") &&
				!strings.Contains(err.Error(), `"`+format+`" is not json, yaml, or jsonpath= and a template`) {
				t.Errorf("xpkg %s -o %s: %v", command, format, err)
			}
		}
	}
}

// A value from a variable is reported with the variable.
func TestErrorsNameTheVariableOfAFlag(t *testing.T) {
	t.Setenv("XPKG_COLOR", "foo")
	for line, want := range map[string]string{
		"list":             `XPKG_COLOR must be one of "auto","always","never" but got "foo"`,
		"list --color=bar": `--color must be one of "auto","always","never" but got "bar"`,
		"list --color bar": `--color must be one of "auto","always","never" but got "bar"`,
	} {
		got := withOrigin(`--color must be one of "auto","always","never" but got "`+
			map[bool]string{true: "foo", false: "bar"}[line == "list"]+`"`, strings.Fields(line))
		if got != want {
			t.Errorf("%s: got %s", line, got)
		}
	}
}

// TestReadingCommandsHaveTheFormatsOfKubectl checks that each command that only reads has the flag -o with the formats
// of kubectl, and that a format that is none of them is an error.
func TestReadingCommandsHaveTheFormatsOfKubectl(t *testing.T) {
	race.SkipSequential(t)
	commands := []string{
		"list", "tree ghcr.io/acme/boats:v1.0.0", "status", "describe boats", "history boats", "outdated",
		"versions ghcr.io/acme/boats", "cache ls", "search boat", "show Boat", "config view",
	}
	for _, command := range commands {
		for _, format := range []string{
			"json", "yaml", "name", "wide", "jsonpath={.items[*].metadata.name}", "xml", "jsonpath={",
		} {
			parser, err := kong.New(
				grammarOf(strings.Fields(command)), kong.Name("xpkg"), kong.Exit(func(int) {}), kong.Writers(discard{}, discard{}),
			)
			if err != nil {
				t.Fatal(err)
			}
			_, err = parser.Parse(normalize(parser.Model, append(strings.Fields(command), "-o", format)))
			if isFormat := format != "xml" && format != "jsonpath={"; isFormat != (err == nil) {
				t.Errorf("xpkg %s -o %s: %v", command, format, err)
			}
		}
	}
}
