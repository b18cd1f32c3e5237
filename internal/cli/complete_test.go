package cli

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/xpkg-dev/xpkg/internal/cli/completion"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/testing/race"
)

// TestCompletionCoversTheGrammar checks that every visible command, flag and enumerated value of the grammar is
// completed.
func TestCompletionCoversTheGrammar(t *testing.T) {
	race.SkipSequential(t)
	parser, err := kong.New(&grammar{}, kong.Name("xpkg"))
	if err != nil {
		t.Fatal(err)
	}
	values := 0
	for _, command := range parser.Model.Leaves(true) {
		words := strings.Fields(wordsOf(command))
		if names := completions(t, parser.Model, words...); !slices.Contains(names, words[len(words)-1]) {
			t.Errorf("%s is not completed: %q", wordsOf(command), names)
		}
		for _, f := range command.Flags {
			if f.Hidden || f.Name == "help" {
				continue
			}
			if names := completions(t, parser.Model, append(words, "--"+f.Name)...); !slices.Contains(names, "--"+f.Name) {
				t.Errorf("%s --%s is not completed: %q", wordsOf(command), f.Name, names)
			}
			if f.Enum == "" || f.IsBool() {
				continue
			}
			got := completions(t, parser.Model, append(words, "--"+f.Name, "")...)
			for _, value := range f.EnumSlice() {
				if values++; value != "" && !slices.Contains(got, value) {
					t.Errorf("%s --%s %s is not completed: %q", wordsOf(command), f.Name, value, got)
				}
			}
		}
	}
	if values < 50 {
		t.Errorf("the grammar has %d enumerated values", values)
	}
}

// TestFixedValuesAreCompleted checks that the flags and arguments with a fixed set of values that the parser does not
// know complete it, and that every completion of the grammar exists.
func TestFixedValuesAreCompleted(t *testing.T) {
	parser, err := kong.New(&grammar{}, kong.Name("xpkg"))
	if err != nil {
		t.Fatal(err)
	}
	known := completionValues(&terminal.Env{}, "")
	_ = kong.Visit(parser.Model, func(node kong.Visitable, next kong.Next) error {
		if v, ok := node.(*kong.Value); ok {
			if name := v.Tag.Get(completion.Tag); name != "" && known[name] == nil {
				t.Errorf("%s has the completion %s, which does not exist", v.Name, name)
			}
		}
		return next(nil)
	})
	for line, want := range map[string]string{
		"up --package-runtime":                   "Process External None",
		"manager --package-runtime":              "Deployment Process External None",
		"up --allow-runtime-privilege":           "HostNetwork HostPID HostIPC HostPath Privileged Capabilities ServiceAccount *",
		"manager --allow-runtime-privilege":      "HostNetwork HostPID HostIPC HostPath Privileged Capabilities ServiceAccount *",
		"registry token create --action":         "read publish publish-new yank delete",
		"list --color":                           "auto always never",
		"list -o":                                strings.Join(view.ListFormats(), " "),
		"install -o":                             strings.Join(view.ObjectFormats(), " "),
		"install":                                "provider configuration function",
		"init":                                   "provider configuration function",
		"completion":                             "bash zsh fish powershell",
		"plan install -o":                        "json yaml markdown",
		"up --dependency-upgrades":               "None Upgrade UpgradeOrDowngrade",
		"install provider --package-pull-policy": "IfNotPresent Always Never",
		"up --permission-increase":               "Allow Approve",
		"manager --package-permissions":          "Manage Ignore",
	} {
		got := completions(t, parser.Model, append(strings.Fields(line), "")...)
		for _, value := range strings.Fields(want) {
			if !slices.Contains(got, value) {
				t.Errorf("xpkg %s %s is not completed: %q", line, value, got)
			}
		}
	}
}

func completions(t *testing.T, app *kong.Application, words ...string) []string {
	t.Helper()
	var out, discarded bytes.Buffer
	env := &terminal.Env{Context: t.Context(), Stdout: &out, Stderr: &discarded}
	if err := completion.Complete(
		env, completion.Tree(app, completionValues(env, "")), append([]string{completion.Request}, words...),
	); err != nil {
		t.Fatalf("%q: %v", words, err)
	}
	var names []string
	for _, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		name, _, _ := strings.Cut(line, "\t")
		names = append(names, name)
	}
	return names
}

// TestCompletionAcceptsKindAndName checks that a name is completed after a kind, that the words after both are those
// after KIND/NAME, and that the word xpkg of the Crossplane CLI is not a part of the command.
func TestCompletionAcceptsKindAndName(t *testing.T) {
	parser, err := kong.New(&grammar{}, kong.Name("xpkg"))
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]struct{ words, kind string }{
		"update provider |":                {"update |", "Provider"},
		"update provider bo|":              {"update bo|", "Provider"},
		"update provider boats |":          {"update provider/boats |", ""},
		"update --wait 2m functions.pkg |": {"update --wait 2m |", "Function"},
		"update --context provider |":      {"update --context provider |", ""},
		"update boats provider|":           {"update boats provider|", ""},
		"update boats provider |":          {"update boats |", "Provider"},
		"describe boats provider |":        {"describe boats |", "Provider"},
		"plan uninstall configuration |":   {"plan uninstall |", "Configuration"},
		"install provider |":               {"install provider |", ""},
		"xpkg |":                           {"|", ""},
		"xpkg update provider bo|":         {"update bo|", "Provider"},
		"beta xpkg ins|":                   {"ins|", ""},
		"xpkg|":                            {"xpkg|", ""},
		"|":                                {"|", ""},
	} {
		words := strings.Split(strings.TrimSuffix(line, "|"), " ")
		got, kind := completionWords(parser.Model, words)
		if text := strings.Join(got, " ") + "|"; text != want.words || kind != want.kind {
			t.Errorf("%s: got %s of the kind %q, want %s of %q", line, text, kind, want.words, want.kind)
		}
	}
}
