// Package completion implements shell completion from the grammar of the command line.
//
// The scripts, and the protocol between a shell and the program, come from github.com/spf13/cobra, which
// kubectl also uses: a script runs `xpkg __complete WORDS...` and shows its output.
package completion

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/spf13/cobra"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
)

// Values returns the values of an argument, with an optional description after a tab.
type Values func(ctx context.Context, line Line) []string

// Line is the part of a command line before the argument that is completed.
type Line struct {
	// Flags maps the names of the flags on which Values depend to their values.
	Flags map[string]string
	// Args are the arguments without the commands and flags.
	Args []string
	// Word is the beginning of the argument that is completed.
	Word string
}

// Tag is the key of the struct tag that names the [Values] of an argument or a flag.
const Tag = "complete"

// Tree returns the commands of a grammar with the completion of their arguments. The keys of values are the names in
// the struct tags of the grammar.
func Tree(app *kong.Application, values map[string]Values) *cobra.Command {
	root := command(app.Node, values)
	root.Use = app.Name
	root.CompletionOptions.DisableDefaultCmd = true
	return root
}

// Request is the first argument of a request for the completions of the last argument.
const Request = cobra.ShellCompRequestCmd

// IsRequest reports whether a completion script has passed the arguments.
func IsRequest(args []string) bool {
	return len(args) > 0 && (args[0] == Request || args[0] == cobra.ShellCompNoDescRequestCmd)
}

// Complete prints the completions that a script requests.
func Complete(env *terminal.Env, root *cobra.Command, args []string) error {
	root.SetArgs(args)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	return root.ExecuteContext(env.Context)
}

// WriteScript writes the completion script of a shell: bash, zsh, fish or powershell.
func WriteScript(w io.Writer, root *cobra.Command, shell string) error {
	switch shell {
	case "bash":
		return root.GenBashCompletionV2(w, true)
	case "zsh":
		return root.GenZshCompletion(w)
	case "fish":
		return root.GenFishCompletion(w, true)
	case "powershell":
		return root.GenPowerShellCompletionWithDesc(w)
	}
	return fmt.Errorf("the shell %s is not supported", shell)
}

// command returns the command of a node. Its aliases are completed like it, and not offered, as by kubectl and Helm.
func command(n *kong.Node, values map[string]Values) *cobra.Command {
	c := &cobra.Command{Use: n.Name, Aliases: n.Aliases, Short: n.Help, Hidden: n.Hidden}
	for _, f := range n.Flags {
		addFlag(c, n.Type == kong.ApplicationNode, f, values)
	}
	for _, child := range n.Children {
		c.AddCommand(command(child, values))
	}
	if n.Leaf() {
		c.Run = func(*cobra.Command, []string) {}
		c.ValidArgsFunction = func(c *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
			if len(n.Positional) == 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			at := min(len(args), len(n.Positional)-1)
			if at < len(args) && !n.Positional[at].IsSlice() {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return complete(c, args, word, n.Positional[at], values)
		}
	}
	return c
}

// addFlag adds a flag to a command and, if it is persistent, to the commands below it.
func addFlag(c *cobra.Command, persistent bool, f *kong.Flag, values map[string]Values) {
	if f.Name == "help" {
		return
	}
	short := ""
	if f.Short != 0 {
		short = string(f.Short)
	}
	flags := c.Flags()
	if persistent {
		flags = c.PersistentFlags()
	}
	switch {
	case f.IsCounter():
		flags.CountP(f.Name, short, f.Help)
	case f.IsBool():
		flags.BoolP(f.Name, short, false, f.Help)
		if f.Tag.Negatable != "" {
			flags.Bool("no-"+f.Name, false, f.Help)
			flags.Lookup("no-" + f.Name).Hidden = true
		}
	case f.IsSlice():
		flags.StringArrayP(f.Name, short, nil, f.Help)
	default:
		flags.StringP(f.Name, short, "", f.Help)
	}
	flags.Lookup(f.Name).Hidden = f.Hidden
	if f.IsBool() || f.IsCounter() {
		return
	}
	err := c.RegisterFlagCompletionFunc(f.Name,
		func(c *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
			return complete(c, args, word, f.Value, values)
		})
	// The flag was added above.
	cobra.CheckErr(err)
}

// complete returns the completions of an argument or the value of a flag.
func complete(
	c *cobra.Command, args []string, word string, v *kong.Value, values map[string]Values,
) ([]string, cobra.ShellCompDirective) {
	if v.Enum != "" {
		var out []string
		for _, value := range v.EnumSlice() {
			if value != "" {
				out = append(out, value)
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
	if of, ok := values[v.Tag.Get(Tag)]; ok {
		return of(c.Context(), Line{Flags: flagsOf(c), Args: args, Word: word}), cobra.ShellCompDirectiveNoFileComp
	}
	placeholder := strings.ToUpper(v.Tag.PlaceHolder)
	switch {
	case placeholder == "DIR":
		return nil, cobra.ShellCompDirectiveFilterDirs
	case v.Flag == nil, strings.Contains(placeholder, "FILE"):
		return nil, cobra.ShellCompDirectiveDefault
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// flagsOf returns the values of the flags that [Values] depend on.
func flagsOf(c *cobra.Command) map[string]string {
	out := map[string]string{}
	for _, name := range []string{"kubeconfig", "context"} {
		if f := c.Flags().Lookup(name); f != nil {
			out[name] = f.Value.String()
		}
	}
	return out
}
