// Package cli is the command line: one file for each command, each of them thin.
//
// Rules of this terminal interface:
//   - Standard output carries the result and nothing else: a table, or the
//     objects as JSON or YAML with -o. Everything said on the way goes to
//     standard error.
//   - What takes over a second says what it is doing: a line that moves on a
//     terminal, plain lines elsewhere.
//   - A failure is one sentence that says what failed and why, and one that says
//     what to do. Its class is the exit code (docs/reference/errors.md).
//   - Text that came from a registry or a cluster never reaches the terminal
//     with control characters in it.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// ErrUsage is the failure of a command line that cannot be understood.
var ErrUsage = errcode.Code{
	Name: "Usage", Class: errcode.Usage,
	Cause: "The command line cannot be understood.",
	Fix:   "Run the command with --help to see what it takes.",
}

// ErrInterrupted is the failure of a command that was stopped by a signal.
var ErrInterrupted = errcode.Code{
	Name: "Interrupted", Class: errcode.Interrupted,
	Cause: "The command was stopped by Ctrl-C or a signal.",
	Fix:   "Run the same command again: it continues where it stopped.",
}

// Env is the world of a command: its streams and what it may ask the system.
type Env struct {
	Context context.Context
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	// Executable is the path of the running program.
	Executable string
	// Args are the arguments of the command, without the program's name.
	Args []string
}

// System is the world of the real process.
func System() *Env {
	exe, err := os.Executable()
	if err != nil {
		exe = os.Args[0]
	}
	return &Env{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Executable: exe}
}

type grammar struct {
	Build      buildCmd      `cmd:"" group:"author" help:"Build a package from a folder."`
	Lint       lintCmd       `cmd:"" group:"author" help:"Tell everything that is wrong with a package."`
	Push       pushCmd       `cmd:"" group:"author" help:"Push a package to a registry."`
	Append     appendCmd     `cmd:"" group:"author" help:"Add extensions for third parties to a package."`
	Pull       pullCmd       `cmd:"" group:"move" help:"Pull a package into a file."`
	Copy       copyCmd       `cmd:"" group:"move" aliases:"cp" help:"Copy a package between registries, files and OCI layouts."`
	Inspect    inspectCmd    `cmd:"" group:"move" help:"Show what a package is made of."`
	Extract    extractCmd    `cmd:"" group:"move" help:"Print the package.yaml of a package."`
	Login      loginCmd      `cmd:"" group:"move" help:"Log in to a registry."`
	Logout     logoutCmd     `cmd:"" group:"move" help:"Log out of a registry."`
	Resolve    resolveCmd    `cmd:"" group:"move" help:"Find one version, with its digest, of everything that packages need."`
	Deps       depsCmd       `cmd:"" group:"move" help:"Carry packages with everything that they need to another registry."`
	Install    installCmd    `cmd:"" group:"use" help:"Install a package."`
	Update     updateCmd     `cmd:"" group:"use" aliases:"upgrade" help:"Update a package that is installed."`
	Uninstall  uninstallCmd  `cmd:"" group:"use" help:"Uninstall a package."`
	Autoremove autoremoveCmd `cmd:"" group:"use" help:"Uninstall what was installed because others needed it, and that nobody needs any more."`
	Approve    approveCmd    `cmd:"" group:"use" help:"Approve the permissions that a new version of a package asks for."`
	Plan       planCmd       `cmd:"" group:"use" help:"Show what a command would change, before anything is written."`
	Apply      applyCmd      `cmd:"" group:"use" help:"Apply a plan that was kept with xpkg plan --out."`
	List       listCmd       `cmd:"" group:"use" aliases:"ls" help:"List the installed packages."`
	Tree       treeCmd       `cmd:"" group:"use" help:"Show what a package needs and what it brought, as a tree."`
	Why        whyCmd        `cmd:"" group:"use" help:"Say who needs a package, and who needs those."`
	Outdated   outdatedCmd   `cmd:"" group:"use" help:"Compare what is installed with the versions that there are."`
	Cache      cacheCmd      `cmd:"" group:"use" help:"Look after the package cache of this machine."`
	Up         upCmd         `cmd:"" group:"plane" help:"Start a control plane on this machine."`
	Down       downCmd       `cmd:"" group:"plane" help:"Stop the control plane that runs in the background."`
	Status     statusCmd     `cmd:"" group:"plane" help:"Show the state of the control plane of this machine."`
	Logs       logsCmd       `cmd:"" group:"plane" help:"Print the log of a package's program."`
	Manager    managerCmd    `cmd:"" group:"plane" help:"Run the package manager against a cluster."`
	Bootstrap  bootstrapCmd  `cmd:"" group:"plane" help:"Print what a cluster needs to run the package manager in it."`
	Version    versionCmd    `cmd:"" group:"other" help:"Print the version."`

	RuntimeInit runtimeInitCmd `cmd:"" hidden:""`
}

// Main runs one command line and returns the exit code.
func Main(ctx context.Context, argv []string, env *Env) int {
	stdout := &checkedWriter{Writer: env.Stdout}
	env = &Env{Context: ctx, Stdin: env.Stdin, Stdout: stdout, Stderr: env.Stderr, Executable: env.Executable, Args: argv[1:]}
	err := run(env, programName(argv[0]))
	if failed := stdout.err(); failed != nil {
		err = failed
	}
	if err == nil {
		return 0
	}
	var exit exitCode
	if errors.As(err, &exit) {
		return int(exit)
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = ErrInterrupted.New(nil, "stopped")
	}
	return report(env.Stderr, err)
}

// exitCode ends a command with a code when there is nothing more to say.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// programName is how the user calls the program: kubectl runs a plug-in as
// "kubectl-crossplane" for "kubectl crossplane".
func programName(arg0 string) string {
	name := strings.TrimSuffix(filepath.Base(arg0), ".exe")
	if verb, ok := strings.CutPrefix(name, "kubectl-"); ok {
		return "kubectl " + strings.ReplaceAll(verb, "_", "-")
	}
	return name
}

func run(env *Env, name string) error {
	var g grammar
	exit := -1
	parser, err := kong.New(&g,
		kong.Name(name),
		kong.Description("The package manager for Crossplane control planes."),
		kong.Writers(env.Stdout, env.Stderr),
		kong.Exit(func(code int) { exit = code }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		kong.ExplicitGroups([]kong.Group{
			{Key: "author", Title: "Authors:"},
			{Key: "move", Title: "Registries and files:"},
			{Key: "use", Title: "Packages of a control plane:"},
			{Key: "plane", Title: "Control planes:"},
			{Key: "other", Title: "Other:"},
		}),
	)
	if err != nil {
		return err
	}
	showExamples(parser.Model)
	args := env.Args
	if len(args) == 0 {
		args = []string{"--help"}
	}
	command, err := parser.Parse(args)
	if exit >= 0 {
		return exitOrNil(exit)
	}
	if err != nil {
		return misused(err, name, args)
	}
	return command.Run(env)
}

func exitOrNil(code int) error {
	if code == 0 {
		return nil
	}
	return exitCode(code)
}

// report prints a failure and returns its exit code.
func report(w io.Writer, err error) int {
	f := errcode.From(err)
	fmt.Fprintf(w, "error: %s: %s\n", f.Code.Name, safe(f.Error()))
	if f.Do != "" {
		fmt.Fprintf(w, "  %s\n", safe(f.Do))
	}
	return f.Code.Class.Exit
}
