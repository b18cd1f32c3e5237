package cli

import (
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
)

// GlobalFlags are the flags of every command.
type GlobalFlags struct {
	Color   terminal.ColorMode `enum:"auto,always,never" default:"auto" config:"" help:"Color the output: auto colors it on a terminal unless NO_COLOR is set; always; never."`
	Pager   string             `placeholder:"COMMAND" config:"" help:"Command that shows output that is longer than the terminal, such as less. Default is none."`
	Quiet   bool               `short:"q" config:"" help:"Print results and errors, but no progress and no notes."`
	Verbose bool               `short:"v" help:"Print each blob that is read or written. The manager logs every step."`
}

// apply sets the properties of the streams of a command.
func (g GlobalFlags) apply(env *terminal.Env) {
	env.Verbose = g.Verbose
	if stdout, ok := env.Stdout.(*terminal.CheckedWriter); ok {
		stdout.Color, stdout.Pager = g.Color.Enabled(stdout), g.Pager
	}
	if stderr, ok := env.Stderr.(*terminal.MessageWriter); ok {
		stderr.Color, stderr.Quiet = g.Color.Enabled(stderr), g.Quiet
	}
}

// leadingFlags are the flags that may precede the command: those of every command, those that select a cluster or a
// format, and flags that users of kubectl and Helm write there, for which the command reports the replacement.
type leadingFlags struct {
	GlobalFlags
	connection.ClusterFlags
	Output        string `short:"o"`
	NoHeaders     bool
	Yes           bool `short:"y"`
	DataDir       string
	Namespace     string `short:"n"`
	AllNamespaces bool   `short:"A"`
	KubeContext   string
	Debug         bool
}

// leadingLast returns the arguments with the leading flags at the end, or before "--".
func leadingLast(args []string) []string {
	if len(args) == 0 || !isFlag(args[0]) {
		return args
	}
	app, err := kong.New(&leadingFlags{})
	if err != nil {
		return args
	}
	n := 0
	for n < len(args) && isFlag(args[n]) {
		name, _, joined := strings.Cut(args[n], "=")
		i := slices.IndexFunc(app.Model.Flags, func(f *kong.Flag) bool {
			return f.Name != "help" && (name == "--"+f.Name || f.Short != 0 && name == "-"+string(f.Short))
		})
		if i < 0 {
			break
		}
		n++
		if !joined && !app.Model.Flags[i].IsBool() && n < len(args) {
			n++
		}
	}
	rest := args[n:]
	end := slices.Index(rest, "--")
	if end < 0 {
		end = len(rest)
	}
	return slices.Concat(rest[:end], args[:n], rest[end:])
}

// isGlobal reports whether a flag is one of [GlobalFlags].
func isGlobal(app *kong.Application, f *kong.Flag) bool { return slices.Contains(app.Flags, f) }

// colorBeforeParsing is the color of errors before the flags are known.
func colorBeforeParsing(env *terminal.Env) {
	mode := terminal.ColorMode(os.Getenv("XPKG_COLOR"))
	GlobalFlags{Color: mode}.apply(env)
}
