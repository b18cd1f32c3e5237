package cli

import (
	"bytes"
	"maps"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
)

// Every command shows how it is typed, in lines that it takes and that a terminal of 80
// columns shows whole.
func TestExamplesParse(t *testing.T) {
	lines := maps.Clone(examples)
	parser, err := kong.New(&grammar{}, kong.Name("xpkg"))
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range parser.Model.Leaves(true) {
		name := wordsOf(command)
		if len(lines[name]) == 0 {
			t.Errorf("there is no example of xpkg %s", name)
		}
		for _, line := range lines[name] {
			if len("    xpkg "+line) > 80 {
				t.Errorf("too long: %s", line)
			}
			args := strings.Fields(line)
			// A parser keeps the flags of the line before.
			fresh, err := kong.New(grammarOf(args), kong.Name("xpkg"))
			if err != nil {
				t.Fatal(err)
			}
			parsed, err := fresh.Parse(normalize(fresh.Model, args))
			if err != nil || wordsOf(parsed.Selected()) != name {
				t.Errorf("xpkg %s: %v", line, err)
			}
		}
		delete(lines, name)
	}
	for name := range lines {
		t.Errorf("there is no command %q", name)
	}
}

// The error of an invalid command contains the syntax under the name that was used.
func TestUsageErrorContainsTheSyntax(t *testing.T) {
	for line, want := range map[string]string{
		"uninstall": "Write `xpkg uninstall [<name> ...] [flags]`, such as `xpkg uninstall provider boats --wait 2m`. See more with `xpkg uninstall --help`.\n",
		"uninstall provider": "error: Usage: xpkg uninstall provider: the name of the provider is missing\n" +
			"  Write `xpkg uninstall [<name> ...] [flags]`, such as `xpkg uninstall provider boats --wait 2m`. See more with `xpkg uninstall --help`.\n",
		"uninstall provder/x":                 "error: Usage: xpkg uninstall provder/x: the kind of provder/x is not provider, configuration or function\n",
		"uninstall packageinstall/a/b":        "packageinstall/a/b is an object of the first generation, and not a package: change or delete it with kubectl, or name the package that it uses, which `xpkg describe packageinstall/a/b` shows\n",
		"update ClusterPackageInstall/a/b v2": "ClusterPackageInstall/a/b is an object of the first generation, and not a package: ",
		"tree -o yml":                         "error: Usage: xpkg tree -o yml: --output: \"yml\" is not json, yaml, name, wide, or jsonpath= and a template\n",
		"update":                              "error: Usage: xpkg update: no package is given\n  Name packages, or use `xpkg update --all`.\n",
		"list --wait":                         "unknown flag --wait",
		"install r.test/a:v1 r.test/b:v1":     "Install each with a command of its own: `xpkg install r.test/a:v1`, then `xpkg install r.test/b:v1`.\n",
		"install provider r.test/a r.test/b":  "then `xpkg install provider r.test/b`.\n",
		"plan install r.test/a:v1 r.test/b":   "r.test/a:v1 and r.test/b are two references",
		"install provider boats r.test/b:v1":  "Write the reference before the name: `xpkg install provider r.test/b:v1 boats`.\n",
		"push boats.xpkg r.test/boats:v1":     "Push it with `xpkg push -f boats.xpkg r.test/boats:v1`.\n",
		"install provider b --wait":           "--wait: expected duration value but nothing is given\n",
		"plan":                                "  Write `xpkg plan <command> [flags]`. See more with `xpkg plan --help`.\n",
		"remove":                              "error: Usage: xpkg has no command remove\n  Use `xpkg uninstall NAME`.\n",
		"frobnicate":                          "error: Usage: xpkg frobnicate: unknown command frobnicate\n  See the commands with `xpkg --help`.\n",
		"lisst":                               "error: Usage: xpkg lisst: unknown command lisst, did you mean list?\n  See the commands with `xpkg --help`.\n",
		"plan instal x":                       "error: Usage: xpkg plan instal x: unknown command instal, did you mean install?\n  Write `xpkg plan <command> [flags]`. See more with `xpkg plan --help`.\n",
		"exlpain Boat":                        "error: Usage: xpkg exlpain Boat: unknown command exlpain, did you mean explain?\n  Use `xpkg show KIND`",
		"history package/a/b":                 "package/a/b is an object of the first generation, and not a package: ",
		"history a b":                         "error: Usage: xpkg history a b: unexpected argument b\n",
	} {
		var errs bytes.Buffer
		code := Main(t.Context(), append([]string{"xpkg"}, strings.Fields(line)...), &terminal.Env{
			Stdin: strings.NewReader(""), Stdout: &errs, Stderr: &errs,
		})
		if code != terminal.ErrUsage.Class.Exit || !strings.Contains(errs.String(), want) {
			t.Errorf("xpkg %s: exit code %d\n%s", line, code, &errs)
		}
	}
}
