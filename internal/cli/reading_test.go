package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// readingCommands are the commands that print something and change nothing. The scripts, and for the ones that need a
// cluster the tests of the program, check that their lines fit on a terminal.
var readingCommands = map[string]bool{
	"list": true, "kinds": true, "describe": true, "history": true, "tree": true, "why": true, "outdated": true, "versions": true,
	"search": true, "show": true,
	"index show": true, "index verify": true, "inspect": true, "diff": true, "status": true, "doctor": true,
	"cache ls": true, "cache verify": true,
	"config view": true, "version": true, "registry token list": true, "check": true, "lint": true, "validate": true,
	"test": true, "verify": true,
	"resolve": true, "plan install": true, "plan update": true, "plan uninstall": true, "plan rollback": true,
	"plan autoremove": true, "plan sync": true,
}

// otherCommands are those that change something, and those whose output is for programs.
var otherCommands = []string{
	"init", "build", "render", "dependency add", "dependency remove", "dependency update", "push", "append", "convert",
	"pull", "sign", "attest", "copy", "extract", "login", "logout", "registry serve",
	"registry export",
	"registry token create", "registry token revoke", "registry mirror", "registry prune", "registry yank",
	"registry unyank",
	"registry deprecate", "registry delete", "install", "update", "sync", "uninstall", "autoremove", "approve", "activate",
	"deactivate", "apply",
	"rollback", "sbom", "index build", "index update", "bundle save", "bundle load", "cache add", "cache prune", "up", "down", "dev",
	"logs", "manager",
	"bootstrap", "migrate from-core", "migrate to-core", "migrate first-generation", "completion", "man",
}

// IsReading reports whether a command line is that of a command that changes nothing, and prints text.
func IsReading(args []string) bool {
	if slices.ContainsFunc(args, func(arg string) bool {
		return strings.HasPrefix(arg, "-o") || strings.HasPrefix(arg, "--output") || arg == "--watch" || arg == "-w" ||
			arg == "-" || arg == "--out" || arg == "--sarif"
	}) {
		return false
	}
	if len(args) > 0 && args[0] == "resolve" && (slices.Contains(args, "--lock") || slices.Contains(args, "--manifests")) {
		return false
	}
	for n := min(3, len(args)); n > 0; n-- {
		if readingCommands[strings.Join(args[:n], " ")] {
			return true
		}
	}
	return false
}

// A new command is one of those whose output is checked on terminals, or one that changes something.
func TestEveryCommandIsCheckedOnTerminals(t *testing.T) {
	parser, err := kong.New(&grammar{}, kong.Name("xpkg"))
	if err != nil {
		t.Fatal(err)
	}
	scripts := ""
	for _, pattern := range []string{
		filepath.Join("testdata", "script", "*.txtar"), filepath.Join("..", "..", "test", "program", "width_linux_test.go"),
	} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			scripts += string(text)
		}
	}
	for _, command := range parser.Model.Leaves(true) {
		name, _, _ := strings.Cut(strings.TrimPrefix(command.FullPath(), "xpkg "), " (") // Without its alias.
		isReading, isOther := readingCommands[name], slices.Contains(otherCommands, name)
		if isReading == isOther {
			t.Errorf("%s is in both lists of commands, or in none", name)
		}
		if isReading && !strings.Contains(scripts, "exec xpkg "+name+" ") && !strings.Contains(scripts, `"`+name+` `) {
			t.Errorf("no test runs %s on a terminal", name)
		}
	}
}
