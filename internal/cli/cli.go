// Package cli is the command line: the grammar, the dispatch to the commands, and the exit
// codes. The commands are in one package for each group of the help.
//
// Rules of the command line:
//   - Standard output carries only the result: a table, or objects as JSON or YAML with -o.
//     Messages and progress go to standard error.
//   - An operation that takes longer than a second reports its progress: a line that is
//     updated on a terminal, plain lines elsewhere.
//   - An error is one sentence with the failure and its reason, and one with the fix. Its
//     class is the exit code (docs/reference/errors.md).
//   - Text from a registry or a cluster reaches a terminal without control characters.
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

	"github.com/xpkg-dev/xpkg/internal/cli/artifact"
	"github.com/xpkg-dev/xpkg/internal/cli/author"
	"github.com/xpkg-dev/xpkg/internal/cli/controlplane"
	"github.com/xpkg-dev/xpkg/internal/cli/dependencies"
	"github.com/xpkg-dev/xpkg/internal/cli/manager"
	"github.com/xpkg-dev/xpkg/internal/cli/packagecache"
	"github.com/xpkg-dev/xpkg/internal/cli/packages"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// Env is the environment of a command.
type Env = terminal.Env

// System is the world of the real process.
func System() *terminal.Env {
	exe, err := os.Executable()
	if err != nil {
		exe = os.Args[0]
	}
	return &terminal.Env{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Executable: exe}
}

type grammar struct {
	Build      author.BuildCmd          `cmd:"" group:"author" help:"Build a package from a folder."`
	Lint       author.LintCmd           `cmd:"" group:"author" help:"Tell everything that is wrong with a package."`
	Push       author.PushCmd           `cmd:"" group:"author" help:"Push a package to a registry."`
	Append     author.AppendCmd         `cmd:"" group:"author" help:"Add extensions for third parties to a package."`
	Pull       artifact.PullCmd         `cmd:"" group:"move" help:"Pull a package into a file."`
	Copy       artifact.CopyCmd         `cmd:"" group:"move" aliases:"cp" help:"Copy a package between registries, files and OCI layouts."`
	Inspect    artifact.InspectCmd      `cmd:"" group:"move" help:"Show what a package is made of."`
	Extract    artifact.ExtractCmd      `cmd:"" group:"move" help:"Print the package.yaml of a package."`
	Login      artifact.LoginCmd        `cmd:"" group:"move" help:"Log in to a registry."`
	Logout     artifact.LogoutCmd       `cmd:"" group:"move" help:"Log out of a registry."`
	Resolve    dependencies.ResolveCmd  `cmd:"" group:"move" help:"Find one version, with its digest, of everything that packages need."`
	Deps       dependencies.DepsCmd     `cmd:"" group:"move" help:"Carry packages with everything that they need to another registry."`
	Install    packages.InstallCmd      `cmd:"" group:"use" help:"Install a package."`
	Update     packages.UpdateCmd       `cmd:"" group:"use" aliases:"upgrade" help:"Update a package that is installed."`
	Uninstall  packages.UninstallCmd    `cmd:"" group:"use" help:"Uninstall a package."`
	Autoremove packages.AutoremoveCmd   `cmd:"" group:"use" help:"Uninstall what was installed because others needed it, and that nobody needs any more."`
	Approve    packages.ApproveCmd      `cmd:"" group:"use" help:"Approve the permissions that a new version of a package asks for."`
	Plan       packages.PlanCmd         `cmd:"" group:"use" help:"Show what a command would change, before anything is written."`
	Apply      packages.ApplyCmd        `cmd:"" group:"use" help:"Apply a plan that was kept with xpkg plan --out."`
	List       packages.ListCmd         `cmd:"" group:"use" aliases:"ls" help:"List the installed packages."`
	Tree       dependencies.TreeCmd     `cmd:"" group:"use" help:"Show what a package needs and what it brought, as a tree."`
	Why        dependencies.WhyCmd      `cmd:"" group:"use" help:"Say who needs a package, and who needs those."`
	Outdated   dependencies.OutdatedCmd `cmd:"" group:"use" help:"Compare what is installed with the versions that there are."`
	Cache      packagecache.CacheCmd    `cmd:"" group:"use" help:"Look after the package cache of this machine."`
	Up         controlplane.UpCmd       `cmd:"" group:"plane" help:"Start a control plane on this machine."`
	Down       controlplane.DownCmd     `cmd:"" group:"plane" help:"Stop the control plane that runs in the background."`
	Status     controlplane.StatusCmd   `cmd:"" group:"plane" help:"Show the state of the control plane of this machine."`
	Logs       controlplane.LogsCmd     `cmd:"" group:"plane" help:"Print the log of a package's program."`
	Manager    manager.ManagerCmd       `cmd:"" group:"plane" help:"Run the package manager against a cluster."`
	Bootstrap  manager.BootstrapCmd     `cmd:"" group:"plane" help:"Print what a cluster needs to run the package manager in it."`
	Version    versionCmd               `cmd:"" group:"other" help:"Print the version."`

	RuntimeInit manager.RuntimeInitCmd `cmd:"" hidden:""`
}

// Main runs one command line and returns the exit code.
func Main(ctx context.Context, argv []string, env *terminal.Env) int {
	stdout := &terminal.CheckedWriter{Writer: env.Stdout}
	env = &terminal.Env{Context: ctx, Stdin: env.Stdin, Stdout: stdout, Stderr: env.Stderr, Executable: env.Executable, Args: argv[1:]}
	err := run(env, programName(argv[0]))
	if failed := stdout.Err(); failed != nil {
		err = failed
	}
	if err == nil {
		return 0
	}
	var exit terminal.ExitCode
	if errors.As(err, &exit) {
		return int(exit)
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = terminal.ErrInterrupted.New(nil, "stopped")
	}
	return report(env.Stderr, err)
}

// programName is how the user calls the program: kubectl runs a plug-in as
// "kubectl-crossplane" for "kubectl crossplane".
func programName(arg0 string) string {
	name := strings.TrimSuffix(filepath.Base(arg0), ".exe")
	if verb, ok := strings.CutPrefix(name, "kubectl-"); ok {
		return "kubectl " + strings.ReplaceAll(verb, "_", "-")
	}
	return name
}

func run(env *terminal.Env, name string) error {
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
		return usageError(err, name, args)
	}
	return command.Run(env)
}

func exitOrNil(code int) error {
	if code == 0 {
		return nil
	}
	return terminal.ExitCode(code)
}

// report prints a failure and returns its exit code.
func report(w io.Writer, err error) int {
	f := errcode.From(err)
	fmt.Fprintf(w, "error: %s: %s\n", f.Code.Name, terminal.Safe(f.Error()))
	if f.Do != "" {
		fmt.Fprintf(w, "  %s\n", terminal.Safe(f.Do))
	}
	return f.Code.Class.Exit
}
