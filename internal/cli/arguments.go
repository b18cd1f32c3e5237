package cli

import (
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/xpkg-dev/xpkg/internal/cli/completion"
	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/location"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/inventory"
)

// packageArgument is the value of the struct tag `complete` for arguments that name an installed package.
const packageArgument = "package"

// updateArgument is the value of the struct tag `complete` for arguments that name installed packages, or the version
// of one.
const updateArgument = "package-or-version"

// namesPackage reports whether an argument names an installed package.
func namesPackage(p *kong.Positional) bool {
	tag := p.Tag.Get(completion.Tag)
	return tag == packageArgument || tag == updateArgument
}

// installArgument is the value of the struct tag `complete` for arguments that are an optional kind of
// package before a reference.
const installArgument = "kind-or-reference"

// kindArgument is the value of the struct tag `complete` for arguments that are a kind of package.
const kindArgument = "kind"

// expandShorthand expands the shorthands of other command-line tools: `xpkg` and `xpkg help COMMAND` show the
// help, and `xpkg --version` shows the version. The Crossplane CLI has its package commands below `xpkg`, so that
// `kubectl crossplane xpkg build` is `kubectl crossplane build`, and has had its command render below others.
func expandShorthand(args []string) []string {
	args = withoutXpkg(args)
	if len(args) > 1 && args[1] == "render" && slices.Contains([]string{"alpha", "beta", "composition"}, args[0]) {
		args = renderOf(args)
	}
	if len(args) > 1 && args[0] == "test" && args[1] == "run" {
		args = slices.Delete(slices.Clone(args), 1, 2) // of `up test run`
	}
	switch {
	case len(args) == 0:
		return []string{"--help"}
	case args[0] == "help":
		return append(slices.Clone(args[1:]), "--help")
	case len(args) == 1 && args[0] == "--version":
		return []string{"version"}
	}
	return args
}

// withoutXpkg returns the arguments without the word `xpkg` of the Crossplane CLI before a package command.
func withoutXpkg(args []string) []string {
	if len(args) > 1 && args[1] == "xpkg" && slices.Contains([]string{"alpha", "beta"}, args[0]) {
		args = args[1:]
	}
	if len(args) > 0 && args[0] == "xpkg" {
		args = args[1:]
	}
	return args
}

// renderOf returns the arguments of `alpha render`, `beta render` or `composition render` as those of render. Rendering
// an Operation is a command of its own.
func renderOf(args []string) []string {
	if args[0] != "alpha" || len(args) < 3 || args[2] != "op" && args[2] != "xr" {
		return args[1:]
	}
	if args[2] == "op" {
		return args
	}
	return slices.Concat(args[1:2], args[3:])
}

// normalize returns the arguments in the only form that the grammar accepts: with KIND/NAME for an installed package,
// with the words of a list in one place, and with a kind, possibly empty, before the reference of a package to install.
func normalize(app *kong.Application, args []string) []string {
	return addKind(app, joinKinds(app, joinWords(app, withoutEquals(app, args))))
}

// joinWords returns the arguments of a command that accepts any number of words with all words in one place: kong ends
// such a list at the first flag.
func joinWords(app *kong.Application, args []string) []string {
	command, rest := commandOf(app, args)
	words := positionals(command, rest)
	if len(words) == 0 || !slices.ContainsFunc(command.Positional, func(p *kong.Positional) bool { return p.IsSlice() }) {
		return args
	}
	end := slices.Index(rest, "--")
	if end < 0 {
		end = len(rest)
	}
	start := len(args) - len(rest) + words[0]
	out := slices.Clone(args[:start])
	for _, at := range words {
		out = append(out, rest[at])
	}
	for at := words[0]; at < end; at++ {
		if !slices.Contains(words, at) {
			out = append(out, rest[at])
		}
	}
	return append(out, rest[end:]...)
}

// withoutEquals returns the arguments with the values of short flags in the form of the grammar: -ojson for -o=json.
func withoutEquals(app *kong.Application, args []string) []string {
	command, rest := commandOf(app, args)
	out := slices.Clone(args)
	for i, word := range rest {
		if word == "--" {
			break
		}
		at := shortWithValue(command, word)
		if at > 0 && at+2 < len(word) && word[at+1] == '=' {
			out[len(args)-len(rest)+i] = word[:at+1] + word[at+2:]
		}
	}
	return out
}

// shortWithValue returns the index of the short flag in a group of short flags whose value follows, such as 2 for
// -yw2m, or 0.
func shortWithValue(command *kong.Node, word string) int {
	if !isFlag(word) || strings.HasPrefix(word, "--") {
		return 0
	}
	all := flagsOf(command)
	for i := 1; i < len(word); i++ {
		at := slices.IndexFunc(all, func(f *kong.Flag) bool { return f.Short == rune(word[i]) })
		if at < 0 {
			return 0
		}
		if !all[at].IsBool() && !all[at].IsCounter() {
			return i
		}
	}
	return 0
}

// addKind returns the arguments with an empty kind before the reference of a package, if a command accepts a
// kind before it and there is none.
func addKind(app *kong.Application, args []string) []string {
	command, rest := commandOf(app, args)
	if len(command.Positional) < 2 || !command.Positional[0].Tag.Optional ||
		command.Positional[0].Tag.Get(completion.Tag) != installArgument {
		return args
	}
	words := positionals(command, rest)
	// A word without any of these characters is a kind (possibly misspelled) or the name of a file.
	if len(words) == 0 || !strings.ContainsAny(rest[words[0]], "/:@") && !location.IsPackageFile(rest[words[0]]) {
		return args
	}
	return slices.Insert(slices.Clone(args), len(args)-len(rest)+words[0], "")
}

// joinKinds returns the arguments with each installed package in the form KIND/NAME, if it was written as
// KIND NAME.
func joinKinds(app *kong.Application, args []string) []string {
	command, rest := commandOf(app, args)
	first := slices.IndexFunc(command.Positional, namesPackage)
	if first < 0 {
		return args
	}
	joined := slices.Clone(rest)
	var names []int
	words := positionals(command, rest)
	for i := 0; i < len(words); i++ {
		at := words[i]
		isPackage := i-len(names) == first || i-len(names) > first && command.Positional[first].IsSlice()
		if isPackage && inventory.KindNamed(rest[at]) != "" && i+1 < len(words) && words[i+1] == at+1 {
			i++
			joined[at] += "/" + rest[words[i]]
			names = append(names, words[i])
		}
	}
	for _, at := range slices.Backward(names) {
		joined = slices.Delete(joined, at, at+1)
	}
	return append(slices.Clone(args[:len(args)-len(rest)]), joined...)
}

// positionals returns the indexes of the arguments that are neither flags nor their values, up to "--".
func positionals(command *kong.Node, args []string) []int {
	var out []int
	for i := 0; i < len(args) && args[i] != "--"; i++ {
		switch {
		case !isFlag(args[i]):
			out = append(out, i)
		case takesNext(command, args[i]):
			i++
		}
	}
	return out
}

// commandOf returns the command at the beginning of arguments, and the arguments after it.
func commandOf(app *kong.Application, args []string) (*kong.Node, []string) {
	node := app.Node
	for len(args) > 0 {
		i := slices.IndexFunc(
			node.Children, func(c *kong.Node) bool { return c.Name == args[0] || slices.Contains(c.Aliases, args[0]) },
		)
		if i < 0 {
			break
		}
		node, args = node.Children[i], args[1:]
	}
	return node, args
}

// flagsOf returns the flags that a command accepts.
func flagsOf(command *kong.Node) []*kong.Flag {
	var out []*kong.Flag
	for _, group := range command.AllFlags(false) {
		out = append(out, group...)
	}
	return out
}

func isFlag(word string) bool { return len(word) > 1 && strings.HasPrefix(word, "-") }

// takesNext reports whether the value of a flag is the next argument.
func takesNext(command *kong.Node, word string) bool {
	// A short flag whose value is the next argument is the last of a group, such as -yw 2m.
	if at := shortWithValue(command, word); at > 0 {
		return at == len(word)-1
	}
	return slices.ContainsFunc(flagsOf(command), func(f *kong.Flag) bool {
		named := word == "--"+f.Name || slices.ContainsFunc(f.Aliases, func(alias string) bool { return word == "--"+alias })
		return named && !f.IsBool() && !f.IsCounter()
	})
}

// checkEmpty returns an error for an empty argument, or an empty path or address in a flag: an unset shell variable
// must not select a default, such as all packages, the current folder, another cluster or another registry.
func checkEmpty(app *kong.Application, args []string) error {
	command, rest := commandOf(app, args)
	for _, at := range positionals(command, rest) {
		if rest[at] == "" {
			return emptyValue("an argument of " + wordsOf(command))
		}
	}
	for i, word := range rest {
		name, value, joined := strings.Cut(word, "=")
		if !joined && takesNext(command, word) && i+1 < len(rest) {
			value, joined = rest[i+1], true
		}
		if word == "--" {
			break
		}
		if joined && value == "" && needsValue(command, name) {
			return emptyValue(name)
		}
	}
	return nil
}

func emptyValue(what string) error {
	return terminal.ErrUsage.New(nil, "%s is empty", what).
		WithDo("Pass a value, or omit it. An unset shell variable is empty.")
}

// needsValue reports whether an empty value of a flag is a mistake.
func needsValue(command *kong.Node, word string) bool {
	return slices.ContainsFunc(flagsOf(command), func(f *kong.Flag) bool {
		named := word == "--"+f.Name || f.Short != 0 && word == "-"+string(f.Short)
		return named && flags.NeedsValue(f)
	})
}
