package cli

import (
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/xpkg-dev/xpkg/internal/cli/inventory"
)

// packageArgument is the value of the struct tag `complete` of arguments that name an installed package.
const packageArgument = "package"

// expandShorthand returns the arguments with the forms that users of other commands type: `xpkg` and
// `xpkg help COMMAND` show the help, and `xpkg --version` shows the version.
func expandShorthand(args []string) []string {
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

// normalize returns the arguments in the only form that the grammar accepts: with KIND/NAME for an installed package,
// and with a kind, possibly empty, before the reference of a package to install.
func normalize(app *kong.Application, args []string) []string {
	return addKind(app, joinKinds(app, args))
}

// addKind returns the arguments with an empty kind before the reference of a package, where a command accepts a kind
// before it and the user wrote none.
func addKind(app *kong.Application, args []string) []string {
	command, rest := commandOf(app, args)
	if len(command.Positional) < 2 || !command.Positional[0].Tag.Optional || command.Positional[0].Enum == "" {
		return args
	}
	for i := 0; i < len(rest); i++ {
		switch {
		case rest[i] == "--":
			return args
		case isFlag(rest[i]):
			if takesNext(command, rest[i]) {
				i++
			}
		case !strings.ContainsAny(rest[i], "/:@"):
			// It is a kind, possibly a misspelled one.
			return args
		default:
			return slices.Insert(slices.Clone(args), len(args)-len(rest)+i, "")
		}
	}
	return args
}

// joinKinds returns the arguments with each installed package in the form KIND/NAME, where a user wrote KIND NAME.
func joinKinds(app *kong.Application, args []string) []string {
	command, rest := commandOf(app, args)
	first := slices.IndexFunc(command.Positional, func(p *kong.Positional) bool { return p.Tag.Get("complete") == packageArgument })
	if first < 0 {
		return args
	}
	out := slices.Clone(args[:len(args)-len(rest)])
	count := 0
	for i := 0; i < len(rest); i++ {
		word := rest[i]
		switch {
		case word == "--":
			return append(out, rest[i:]...)
		case isFlag(word):
			if takesNext(command, word) && i+1 < len(rest) {
				out = append(out, word)
				i++
				word = rest[i]
			}
		case count == first || count > first && command.Positional[first].IsSlice():
			if i+1 < len(rest) && inventory.KindNamed(word) != "" && !isFlag(rest[i+1]) {
				i++
				word += "/" + rest[i]
			}
			count++
		default:
			count++
		}
		out = append(out, word)
	}
	return out
}

// commandOf returns the command at the beginning of arguments, and the arguments after it.
func commandOf(app *kong.Application, args []string) (*kong.Node, []string) {
	node := app.Node
	for len(args) > 0 {
		i := slices.IndexFunc(node.Children, func(c *kong.Node) bool { return c.Name == args[0] || slices.Contains(c.Aliases, args[0]) })
		if i < 0 {
			break
		}
		node, args = node.Children[i], args[1:]
	}
	return node, args
}

func isFlag(word string) bool { return len(word) > 1 && strings.HasPrefix(word, "-") }

// takesNext reports whether the value of a flag is the next argument.
func takesNext(command *kong.Node, word string) bool {
	return slices.ContainsFunc(command.Flags, func(f *kong.Flag) bool {
		// A short flag with a value is the last of a group, such as -yw 2m.
		named := word == "--"+f.Name || f.Short != 0 && !strings.HasPrefix(word, "--") && strings.HasSuffix(word, string(f.Short))
		return named && !f.IsBool() && !f.IsCounter()
	})
}
