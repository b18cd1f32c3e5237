package cli

import (
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// TestReadingCommandsHaveTheFormatsOfKubectl checks that each command that only reads has the flag -o with the formats of
// kubectl, and that a format that is none of them is an error.
func TestReadingCommandsHaveTheFormatsOfKubectl(t *testing.T) {
	commands := []string{
		"list", "tree ghcr.io/acme/boats:v1.0.0", "status", "describe boats", "history boats", "outdated", "versions ghcr.io/acme/boats", "cache ls", "search boat", "show Boat", "config view",
	}
	for _, command := range commands {
		for _, format := range []string{"json", "yaml", "name", "wide", "jsonpath={.items[*].metadata.name}", "xml", "jsonpath={"} {
			parser, err := kong.New(&grammar{}, kong.Name("xpkg"), kong.Exit(func(int) {}), kong.Writers(discard{}, discard{}))
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
