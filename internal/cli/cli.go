// Package cli implements the command line: the grammar, the dispatch to the commands, and the exit codes. The
// commands are in one package for each group of the help.
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
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"unicode"

	"github.com/alecthomas/kong"
	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/xpkg-dev/xpkg/internal/cli/artifact"
	"github.com/xpkg-dev/xpkg/internal/cli/author"
	"github.com/xpkg-dev/xpkg/internal/cli/completion"
	"github.com/xpkg-dev/xpkg/internal/cli/compose"
	"github.com/xpkg-dev/xpkg/internal/cli/controlplane"
	"github.com/xpkg-dev/xpkg/internal/cli/dependencies"
	"github.com/xpkg-dev/xpkg/internal/cli/dependency"
	"github.com/xpkg-dev/xpkg/internal/cli/indexes"
	"github.com/xpkg-dev/xpkg/internal/cli/manager"
	"github.com/xpkg-dev/xpkg/internal/cli/packagecache"
	"github.com/xpkg-dev/xpkg/internal/cli/packages"
	"github.com/xpkg-dev/xpkg/internal/cli/registry"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/trust"
	"github.com/xpkg-dev/xpkg/internal/controller/firstgen"
	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci/archive"
)

// Env is the environment of a command.
type Env = terminal.Env

// System returns the environment of the process.
func System() *terminal.Env {
	exe, err := os.Executable()
	if err != nil {
		exe = os.Args[0]
	}
	return &terminal.Env{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Executable: exe}
}

type grammar struct {
	Global GlobalFlags `embed:""`

	Init       author.InitCmd      `cmd:"" group:"author" help:"Create the files of a new package."`
	Build      author.BuildCmd     `cmd:"" group:"author" help:"Build a package from a folder."`
	Check      compose.CheckCmd    `cmd:"" group:"author" help:"Check a package with its dependencies: lint, the compositions against all kinds, and the examples, which are rendered."`
	Lint       author.LintCmd      `cmd:"" group:"author" help:"Check a package without its dependencies, and report every problem."`
	Validate   compose.ValidateCmd `cmd:"" group:"author" help:"Check resources against the schemas of packages and their dependencies, without a cluster."`
	Render     compose.RenderCmd   `cmd:"" group:"author" help:"Show the resources that Crossplane would compose for a composite resource, without a cluster."`
	Test       compose.TestCmd     `cmd:"" group:"author" help:"Run the tests of compositions: render composite resources with the real functions, and compare the results."`
	Push       author.PushCmd      `cmd:"" group:"author" help:"Push a package to a registry."`
	Append     author.AppendCmd    `cmd:"" group:"author" help:"Add extension layers for other tools to a package."`
	Dependency dependency.Cmd      `cmd:"" group:"author" help:"Change the dependencies in the metadata of a package or a Project."`
	Convert    author.ConvertCmd   `cmd:"" group:"author" help:"Convert a package of the first generation to a package of today."`

	Pull    artifact.PullCmd    `cmd:"" group:"artifact" help:"Pull a package into a file."`
	Sign    trust.SignCmd       `cmd:"" group:"artifact" help:"Sign images with a key."`
	Attest  trust.AttestCmd     `cmd:"" group:"artifact" help:"Add a signed attestation, such as a bill of materials, to images."`
	Verify  trust.VerifyCmd     `cmd:"" group:"artifact" help:"Verify who has signed images, or all installed packages."`
	Copy    artifact.CopyCmd    `cmd:"" group:"artifact" aliases:"cp" help:"Copy a package between registries, files and OCI layouts."`
	Inspect artifact.InspectCmd `cmd:"" group:"artifact" help:"Show the manifests, layers, dependencies and objects of a package."`
	Extract artifact.ExtractCmd `cmd:"" group:"artifact" help:"Print the package.yaml of a package."`
	Diff    artifact.DiffCmd    `cmd:"" group:"artifact" help:"Compare two versions of a package by meaning."`
	Login   artifact.LoginCmd   `cmd:"" group:"artifact" help:"Log in to a registry."`
	Logout  artifact.LogoutCmd  `cmd:"" group:"artifact" help:"Log out of a registry."`

	Registry registry.RegistryCmd `cmd:"" group:"artifact" help:"Serve a registry of packages, and set the status of versions in any registry."`

	Install    packages.InstallCmd    `cmd:"" group:"packages" help:"Install a package."`
	Update     packages.UpdateCmd     `cmd:"" group:"packages" aliases:"upgrade" help:"Update an installed package, or all of them."`
	Sync       packages.SyncCmd       `cmd:"" group:"packages" help:"Install, update and uninstall packages until they are those of a lock file."`
	Uninstall  packages.UninstallCmd  `cmd:"" group:"packages" help:"Uninstall packages."`
	Autoremove packages.AutoremoveCmd `cmd:"" group:"packages" help:"Uninstall dependencies that no package needs any more."`
	Approve    packages.ApproveCmd    `cmd:"" group:"packages" help:"Approve the permissions and webhooks that a new version of a package requests, or a transaction."`
	Plan       packages.PlanCmd       `cmd:"" group:"packages" help:"Show the changes of a command without making them."`
	Apply      packages.ApplyCmd      `cmd:"" group:"packages" help:"Apply a plan that was saved with xpkg plan --out."`
	History    packages.HistoryCmd    `cmd:"" group:"packages" help:"Show the revisions of a package."`
	Rollback   packages.RollbackCmd   `cmd:"" group:"packages" help:"Return a package to the content of a former revision."`
	Describe   packages.DescribeCmd   `cmd:"" group:"packages" help:"Show everything about installed packages: version, conditions, objects, permissions, dependencies, revisions and events."`
	Kinds      packages.KindsCmd      `cmd:"" group:"packages" help:"Show which kinds of providers are active, and why."`
	Activate   packages.ActivateCmd   `cmd:"" group:"packages" help:"Activate kinds of installed providers."`
	Deactivate packages.DeactivateCmd `cmd:"" group:"packages" help:"Deactivate kinds that nothing needs and that have no custom resources."`
	List       packages.ListCmd       `cmd:"" group:"packages" aliases:"ls" help:"List the installed packages."`

	Search indexes.SearchCmd  `cmd:"" group:"indexes" help:"Find kinds and packages in an index, offline after one small download."`
	Show   indexes.ExplainCmd `cmd:"" group:"indexes" help:"Show a kind, its providers and its fields, or a package."`
	Index  indexes.IndexCmd   `cmd:"" group:"indexes" help:"Build, update, verify and show the index of a registry."`

	Resolve  dependencies.ResolveCmd  `cmd:"" group:"dependencies" help:"Resolve packages and their dependencies to versions and digests."`
	Bundle   dependencies.BundleCmd   `cmd:"" group:"dependencies" help:"Carry packages with their dependencies and signatures to another registry, in one file."`
	Tree     dependencies.TreeCmd     `cmd:"" group:"dependencies" help:"Show the dependencies and objects of packages as a tree."`
	SBOM     dependencies.SBOMCmd     `cmd:"" name:"sbom" group:"dependencies" help:"Print a bill of materials of packages and their dependencies, in CycloneDX or SPDX."`
	Why      dependencies.WhyCmd      `cmd:"" group:"dependencies" help:"Show why a package is installed: what depends on it, directly and indirectly."`
	Versions dependencies.VersionsCmd `cmd:"" group:"dependencies" help:"Show the versions of a package in its registry."`
	Outdated dependencies.OutdatedCmd `cmd:"" group:"dependencies" help:"Show newer versions of installed packages."`

	Cache packagecache.CacheCmd `cmd:"" group:"packagecache" help:"Manage the package cache of this machine."`

	Up     upCmd                  `cmd:"" group:"controlplane" help:"Start a control plane on this machine."`
	Down   controlplane.DownCmd   `cmd:"" group:"controlplane" help:"Stop the control plane that runs in the background."`
	Status controlplane.StatusCmd `cmd:"" group:"controlplane" help:"Show the state of the control plane of this machine."`
	Dev    controlplane.DevCmd    `cmd:"" group:"controlplane" help:"Install a package on the control plane of this machine, and again whenever its files change."`
	Logs   controlplane.LogsCmd   `cmd:"" group:"controlplane" help:"Print the log of a package's runtime."`

	Manager   managerCmd           `cmd:"" group:"manager" help:"Run the manager for a cluster."`
	Bootstrap manager.BootstrapCmd `cmd:"" group:"manager" help:"Print or apply the manifests of the manager for a cluster."`
	Migrate   migrateCmd           `cmd:"" group:"manager" help:"Move the packages of a cluster from Crossplane core to the manager, or back."`
	Doctor    manager.DoctorCmd    `cmd:"" group:"manager" help:"Check a cluster before and after the installation of the manager."`

	Config configCmd `cmd:"" group:"other" help:"Show the configuration of the user."`

	Completion completionCmd `cmd:"" group:"other" help:"Print the completion script of a shell."`

	Man manCmd `cmd:"" group:"other" help:"Write the manual pages of all commands into a folder."`

	Version versionCmd `cmd:"" group:"other" help:"Show the version."`

	RuntimeInit manager.RuntimeInitCmd `cmd:"" hidden:""`
}

// grammarOf returns the part of the grammar that a command line needs: the first command, the outline for the list of
// all commands, or everything if the first argument is neither. Reading the whole grammar takes as long as all other
// work of a short command.
func grammarOf(args []string) any {
	if len(args) == 0 || args[0] == "" {
		return &grammar{}
	}
	all := reflect.TypeFor[grammar]()
	global := all.Field(0)
	if len(args) == 1 && (args[0] == "--help" || args[0] == "-h") {
		return reflect.New(reflect.StructOf(append([]reflect.StructField{global}, outline(all)...))).Interface()
	}
	for i := 1; i < all.NumField(); i++ {
		field := all.Field(i)
		if args[0] == commandName(field) || slices.Contains(strings.Split(field.Tag.Get("aliases"), ","), args[0]) {
			return reflect.New(reflect.StructOf([]reflect.StructField{global, field})).Interface()
		}
	}
	return &grammar{}
}

// outline returns the commands of a grammar without their flags and arguments.
func outline(of reflect.Type) []reflect.StructField {
	var out []reflect.StructField
	for i := range of.NumField() {
		field := of.Field(i)
		_, isCommand := field.Tag.Lookup("cmd")
		switch {
		case isCommand:
			field.Type = reflect.StructOf(outline(field.Type))
			out = append(out, field)
		case field.Anonymous && field.Type.Kind() == reflect.Struct:
			out = append(out, outline(field.Type)...)
		}
	}
	return out
}

// commandName returns the name of the command of a field: that in its tag, or as kong derives it, such as from-core of
// FromCore.
func commandName(field reflect.StructField) string {
	if name := field.Tag.Get("name"); name != "" {
		return name
	}
	var name strings.Builder
	for i, r := range field.Name {
		if i > 0 && unicode.IsUpper(r) {
			name.WriteByte('-')
		}
		name.WriteRune(unicode.ToLower(r))
	}
	return name.String()
}

// Main runs one command line and returns the exit code.
func Main(ctx context.Context, argv []string, env *terminal.Env) (exit int) {
	defer func() {
		if p := recover(); p != nil {
			// The exit code of Go for a panic is that of a plan with changes.
			fmt.Fprintf(env.Stderr, "panic: %v\n%s", p, debug.Stack())
			exit = report(env.Stderr, errcode.Unknown.New(nil, "a defect of xpkg ended the command"))
		}
	}()
	program := programName(argv[0])
	stdout := &terminal.CheckedWriter{Writer: env.Stdout, Program: program}
	stderr := &terminal.MessageWriter{Writer: env.Stderr, Program: program}
	// client-go logs failed requests to the standard error of the process. A command reports its errors itself.
	ctx = klog.NewContext(ctx, logr.Discard())
	args := argv[1:]
	if program == kubectlCompletion {
		args = append([]string{completion.Request}, args...)
	}
	env = &terminal.Env{
		Context: ctx, Stdin: env.Stdin, Stdout: stdout, Stderr: stderr, Executable: env.Executable,
		Frontend: firstgen.Frontend(), Args: args,
	}
	colorBeforeParsing(env)
	err := run(env, program)
	err = commandError(ctx, err, stdout.Err())
	if err == nil {
		return 0
	}
	var code terminal.ExitCode
	if errors.As(err, &code) {
		return int(code)
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = errcode.ErrInterrupted.New(nil, "stopped")
	}
	return report(env.Stderr, err)
}

// commandError returns the error of a command that returned err and whose output failed. A closed terminal fails the
// output and ends the context: this is no failure, because the command ended in order and nothing can read its output.
func commandError(ctx context.Context, err, failed error) error {
	hangup := ctx.Err() != nil && errors.Is(failed, syscall.EIO)
	switch {
	case failed == nil || hangup && !errors.Is(err, failed):
		return err
	case hangup:
		return nil
	}
	return failed
}

// kubectlCompletion is the name under which kubectl runs the completion of the plug-in `kubectl crossplane`.
const kubectlCompletion = "kubectl_complete-crossplane"

// programName returns the name by which the user runs the program: kubectl runs a plug-in as
// "kubectl-crossplane" for "kubectl crossplane".
func programName(arg0 string) string {
	name := strings.TrimSuffix(filepath.Base(arg0), ".exe")
	if verb, ok := strings.CutPrefix(name, "kubectl-"); ok {
		return "kubectl " + strings.ReplaceAll(verb, "_", "-")
	}
	return name
}

// commandGroups returns the groups of commands in the help.
func commandGroups() kong.Option {
	return kong.ExplicitGroups([]kong.Group{
		{Key: "author", Title: "Authors:"},
		{Key: "artifact", Title: "Registries and files:"},
		{Key: "packages", Title: "Packages of a cluster:"},
		{Key: "indexes", Title: "Search:"},
		{Key: "dependencies", Title: "Dependencies:"},
		{Key: "packagecache", Title: "Package cache:"},
		{Key: "controlplane", Title: "Control plane on this machine:"},
		{Key: "manager", Title: "Manager:"},
		{Key: "other", Title: "Other:"},
	})
}

func run(env *terminal.Env, name string) error {
	exit := -1
	args := expandShorthand(leadingLast(env.Args))
	file, err := configOf(env, args)
	if err != nil {
		return err
	}
	commands := grammarOf(args)
	parser, err := kong.New(commands,
		kong.Resolvers(file),
		kong.Name(name),
		kong.Description("The package manager for Crossplane control planes."),
		kong.Writers(env.Stdout, env.Stderr),
		kong.Exit(func(code int) { exit = code }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: min(100, terminal.ColumnsOf(env.Stdout))}),
		commandGroups(),
	)
	if err != nil {
		return err
	}
	showExamples(parser.Model)
	if completion.IsRequest(args) {
		words, kind := completionWords(parser.Model, args[1:])
		return completion.Complete(
			env, completion.Tree(parser.Model, completionValues(env, kind)), append([]string{args[0]}, words...),
		)
	}
	if err := checkEmpty(parser.Model, args); err != nil {
		return err
	}
	if err := replaced(name, args); err != nil {
		return err
	}
	command, err := parser.Parse(normalize(parser.Model, args))
	if exit >= 0 {
		return exitOrNil(exit)
	}
	if err != nil {
		return usageError(err, name, args)
	}
	global, _ := reflect.ValueOf(commands).Elem().FieldByName("Global").Interface().(GlobalFlags)
	global.apply(env)
	return command.Run(env)
}

func exitOrNil(code int) error {
	if code == 0 {
		return nil
	}
	return terminal.ExitCode(code)
}

// classified returns a failure with its code. A full device has its own code where a failure has none, or one that
// blames the command line.
func classified(err error) *errcode.Error {
	f := errcode.From(err)
	if !fileutil.IsFull(err) || f.Code.Name != errcode.Unknown.Name && f.Code.Class.Name != errcode.Usage.Name {
		return f
	}
	advice := f.Do
	if f.Code.Name == errcode.Unknown.Name {
		advice = "Free space on the device."
	}
	return &errcode.Error{Code: archive.ErrCannotWrite, What: f.What, Why: f.Why, Do: advice}
}

// report prints a failure and returns its exit code.
func report(w io.Writer, err error) int {
	f := classified(err)
	fmt.Fprintf(w, "error: %s: %s\n", f.Code.Name, terminal.Safe(f.Error()))
	if f.Do != "" {
		fmt.Fprintf(w, "  %s\n", terminal.Safe(f.Do))
	}
	return f.Code.Class.Exit
}
