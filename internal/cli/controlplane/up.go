// Package controlplane contains the commands of the control plane on this machine: up, down,
// status and logs.
package controlplane

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/manager"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/leader"
	programs "github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
	"github.com/xpkg-dev/xpkg/internal/up"
	"github.com/xpkg-dev/xpkg/internal/up/datadir"
	"github.com/xpkg-dev/xpkg/internal/version"
	"github.com/xpkg-dev/xpkg/internal/webhooks"
	"github.com/xpkg-dev/xpkg/internal/wording"
)

// UpCmd implements `xpkg up`.
type UpCmd struct {
	flags.DataDirFlag
	flags.CacheLimitFlag
	manager.PermissionFlags
	manager.DependencyFlags
	manager.KindFlags
	Port           *int          `repeat:"never" placeholder:"PORT" help:"Port of the API server; 0 picks a free one. Default is the port of the last start, or 16443."`
	RegistryPort   *int          `repeat:"never" placeholder:"PORT" help:"Port of the registry; 0 picks a free one. Default is the port of the last start, or 15000."`
	StartTimeout   time.Duration `repeat:"never" default:"3m" help:"Deadline for the control plane to become ready."`
	CRDOpenAPI     bool          `name:"crd-openapi" help:"Publish the schemas of custom resources for kubectl explain. This uses more memory."`
	PackageRuntime string        `placeholder:"RUNTIME" complete:"local-runtime" help:"How runtimes run: Process, External or None, or pairs such as Provider=Process;Function=External. Default is Process on Linux, and External elsewhere."`
	WithCore       string        `placeholder:"IMAGE|FILE" help:"Run Crossplane core as a process, so that composite resources work: the reference of its image, an archive or OCI layout of it, or its executable. Requires Linux."`
	CoreArg        []string      `placeholder:"ARG" help:"With --with-core, further argument of core, such as --debug. Can be given more than once."`
	MaxUploadSize  flags.Amount  `default:"4GiB" placeholder:"N" help:"Largest blob that the registry accepts."`
	Unprotected    bool          `help:"Let users delete packages with custom resources, and CRDs of packages, without an answer in an annotation."`
	MetricsAddress string        `placeholder:"HOST:PORT" help:"Serve Prometheus metrics of the package manager at this loopback address."`
	Build          bool          `repeat:"never" help:"If the program of the control plane is missing, build it with Go from the module proxy. This takes several minutes once for each version."`
	Detach         bool          `short:"d" repeat:"never" help:"Run in the background, and return when the control plane is ready."`
}

// Parts are the parts of a control plane that the program adds.
type Parts struct {
	// FirstGeneration returns the API of the first generation, as the flags configure it.
	FirstGeneration func() controller.Extension
	// OpenCore opens the image of Crossplane core.
	OpenCore func(env *terminal.Env, where string, args []string) (manager.Core, error)
}

// Run starts a control plane. The command is the one of the command line that contains c, with all of its flags. Flags
// of the last start that are not given apply again.
func (c *UpCmd) Run(env *terminal.Env, command any, parts Parts) (err error) {
	dir, err := c.Dir()
	if err != nil {
		return err
	}
	parser, err := kong.New(command)
	if err != nil {
		return err
	}
	given := repeatedFlags(parser.Model.Flags, env.Args)
	kept, err := keepFlags(parser.Model.Flags, datadir.LastFlags(dir), given)
	if err != nil {
		return err
	}
	if len(kept) > 0 {
		fmt.Fprintf(env.Stderr, "note: as in the last start: %s\n", terminal.Safe(strings.Join(kept, " ")))
	}
	if err := c.checkPorts(); err != nil {
		return err
	}
	if err := c.checkMetricsAddress(env.Context); err != nil {
		return err
	}
	choice, err := manager.ParseRuntimeChoice(c.PackageRuntime, manager.LocalRuntime(), manager.LocalRuntimes)
	if err != nil {
		return err
	}
	privileges, err := c.Privileges()
	if err != nil {
		return err
	}
	if len(c.CoreArg) > 0 && c.WithCore == "" {
		return terminal.ErrUsage.New(nil, "--core-arg needs --with-core")
	}
	if err := c.ensureProgram(env); err != nil {
		return err
	}
	if c.Detach {
		return c.detach(env, dir)
	}
	var core manager.Core
	if c.WithCore != "" {
		if core, err = parts.OpenCore(env, c.WithCore, c.CoreArg); err != nil {
			return err
		}
		defer terminal.Close(&err, core)
	}
	progress := terminal.NewProgress(env.Stderr)
	defer progress.End()
	options := c.managerOptions(parts.FirstGeneration(), choice, privileges)
	return up.Run(env.Context, up.Options{
		Policies: options.StaticFences(up.ManagerName),
		Dir:      dir, Port: portOrLast(c.Port), RegistryPort: portOrLast(c.RegistryPort), StartTimeout: c.StartTimeout,
		MaxUpload: int64(c.MaxUploadSize), CRDOpenAPI: c.CRDOpenAPI, Version: version.Version,
		Flags:   slices.Concat(kept, given),
		Unblock: webhooks.Unblock,
		Manager: localManager(options, progress, c, dir, core),
		Progress: func(e up.Event) {
			c.reportEvent(env, progress, e)
		},
	})
}

// repeatable returns the flag with a name that the next start needs again, or nil: one without the struct tag
// repeat:"never", which is for flags that the data directory records and for flags of a single start.
func repeatable(flags []*kong.Flag, name string) *kong.Flag {
	i := slices.IndexFunc(flags, func(f *kong.Flag) bool { return name == "--"+f.Name })
	if i < 0 || flags[i].Tag.Get("repeat") == "never" {
		return nil
	}
	return flags[i]
}

// repeatedFlags returns the flags among the arguments of `xpkg up` that the next start needs again. Names of files are
// absolute, so that the flags work in any folder.
func repeatedFlags(of []*kong.Flag, args []string) []string {
	var out []string
	for i := 0; i < len(args); i++ {
		name, value, hasValue := strings.Cut(args[i], "=")
		flag := repeatable(of, name)
		if flag == nil {
			continue // Their values are no flags.
		}
		word := name
		if !hasValue && !flag.IsBool() && i+1 < len(args) {
			i++
			value, hasValue = args[i], true
		}
		if hasValue {
			if flags.TakesPath(flag) {
				value = absoluteFile(value)
			}
			word += "=" + value
		}
		out = append(out, word)
	}
	return out
}

// keepFlags sets those flags of the last start that are not given again, and returns them. It ignores flags that the
// command does not have.
func keepFlags(of []*kong.Flag, last, given []string) (kept []string, err error) {
	for _, word := range last {
		name, value, hasValue := strings.Cut(word, "=")
		flag := repeatable(of, name)
		isGiven := slices.ContainsFunc(given, func(w string) bool { return w == name || strings.HasPrefix(w, name+"=") })
		if flag == nil || isGiven {
			continue
		}
		if !hasValue && flag.IsBool() {
			value = "true"
		}
		if isList := flag.Target.Kind() == reflect.Slice; isList &&
			!slices.ContainsFunc(kept, func(w string) bool { return strings.HasPrefix(w, name+"=") }) {
			flag.Target.SetZero() // It has the values of the configuration of the user.
		}
		if err := flag.Parse(
			kong.ScanFromTokens(kong.Token{Type: kong.FlagValueToken, Value: value}), flag.Target,
		); err != nil {
			return nil,
				terminal.ErrUsage.New(err, "%s of the last start cannot be used", word).WithDo("Give %s with another value.", name)
		}
		kept = append(kept, word)
	}
	return kept, nil
}

// absoluteFile returns the absolute name of a file that exists, and other values, such as the reference of an image,
// unchanged.
func absoluteFile(value string) string {
	if _, err := os.Stat(value); err != nil || strings.HasPrefix(value, "configmap/") {
		return value
	}
	if path, err := filepath.Abs(value); err == nil {
		return path
	}
	return value
}

// checkPorts returns an error for invalid port numbers.
func (c *UpCmd) checkPorts() error {
	const highest = 1<<16 - 1
	for flag, port := range map[string]*int{"--port": c.Port, "--registry-port": c.RegistryPort} {
		if port != nil && (*port < 0 || *port > highest) {
			return terminal.ErrUsage.New(nil, "%s %d is not a port", flag, *port).
				WithDo("Choose a number from 1 to %d, or 0 for a free port.", highest)
		}
	}
	return nil
}

// checkMetricsAddress returns an error if the address of the metrics is not free, or not an address of the loopback
// interface, to which everything of a local control plane is confined.
func (c *UpCmd) checkMetricsAddress(ctx context.Context) error {
	if c.MetricsAddress == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(c.MetricsAddress)
	if err != nil || !net.ParseIP(host).IsLoopback() {
		return terminal.ErrUsage.New(err, "--metrics-address %s is not a loopback address with a port", c.MetricsAddress).
			WithDo("Choose an address such as --metrics-address 127.0.0.1:8080.")
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", c.MetricsAddress)
	if err != nil {
		return terminal.ErrUsage.New(err, "cannot serve metrics at %s", c.MetricsAddress).
			WithDo("Choose a free address, such as --metrics-address 127.0.0.1:8080.")
	}
	return listener.Close()
}

// portOrLast returns the port of a flag, or up.LastPort without the flag.
func portOrLast(flag *int) int {
	if flag == nil {
		return up.LastPort
	}
	return *flag
}

// localManager returns the manager of a local control plane. Its log lines are written above the progress
// line.
func localManager(
	options controller.Options, progress *terminal.Progress, c *UpCmd, dir string, core manager.Core,
) up.Manager {
	return func(ctx context.Context, e up.Env) error {
		options := options
		options.Ready = e.Ready
		if core != nil {
			core.Report(manager.CoreReports{
				Ready:  func(version, health string) { e.SetCore(up.Core{Version: version, Health: health}) },
				Failed: e.Warn, Refused: e.Fail,
			})
		}
		return manager.RunManager(ctx, manager.ManagerOptions{
			Config: e.Config, DataDir: dir, Core: core, CacheDir: filepath.Join(e.CacheDir, flags.PackagesDir),
			CacheLimit: c.CacheLimit, ProgramsDir: programsDir(dir),
			Dependencies: c.DependencyFlags, Indexes: c.Index, IndexKey: c.IndexKeyFlag,
			Log: slog.New(slog.NewTextHandler(progress, nil)), Options: options,
		})
	}
}

// managerOptions returns the options of the manager that do not depend on the control plane.
func (c *UpCmd) managerOptions(
	first controller.Extension, choice programs.Choice, privileges []manifests.Privilege,
) controller.Options {
	return controller.Options{
		MetricsAddress: c.MetricsAddress, MakeNamespace: true, LeaderElection: localElection(), Runtimes: choice,
		RuntimePrivileges: privileges, Permissions: c.Permissions(), FirstGeneration: first, Unprotected: c.Unprotected,
	}
}

// localElection is the leader election of a local control plane. The lock of the data directory excludes a
// second process with the same identity, so a restarted process immediately takes over the Lease of any
// holder. The Lease outlasts the suspension of writes on a busy machine.
func localElection() *leader.Election {
	return &leader.Election{Identity: leader.LocalIdentity, Duration: time.Minute, Exclusive: true, Preempt: true}
}

// detach starts the same command in the background.
func (c *UpCmd) detach(env *terminal.Env, dir string) error {
	progress := terminal.NewProgress(env.Stderr)
	progress.Set("starting a control plane in the background")
	var args []string
	for _, a := range env.Args {
		if a != "--detach" && a != "-d" {
			args = append(args, a)
		}
	}
	state, err := up.Detach(env.Context, dir, args)
	progress.End()
	if err != nil {
		return err
	}
	printReady(env, state, "", "To stop the control plane:\n  "+up.DownCommand(state))
	return nil
}

// reportEvent reports a step of the start.
func (c *UpCmd) reportEvent(env *terminal.Env, progress *terminal.Progress, e up.Event) {
	switch {
	case e.Err != nil:
		progress.End()
		fmt.Fprintf(env.Stderr, "the package manager exited and is restarted: %s\n", terminal.Safe(e.Err.Error()))
	case e.Warning != "":
		progress.End()
		fmt.Fprintf(env.Stderr, "warning: %s\n", terminal.Safe(e.Warning))
	case e.Stage == up.StageReady && e.State != nil:
		progress.End()
		printReady(env, *e.State, fmt.Sprintf(" after %s", e.Took.Round(100*time.Millisecond)), "Press Ctrl-C to stop it.")
	case e.Stage == up.StageStopping && !e.Done:
		progress.Set("stopping")
	case e.Stage == up.StageStopping:
		progress.End()
	case !e.Done:
		progress.Set("starting the %s", e.Stage)
	}
}

// printReady prints the addresses of the control plane and, unless --quiet is set, the next commands and how it is
// stopped.
func printReady(env *terminal.Env, s up.State, after, stop string) {
	text := fmt.Sprintf(`The control plane is ready%s.

  API server   %s (Kubernetes %s)
  registry     %s
  kubeconfig   %s
  data         %s
`, after, s.Server, s.Kubernetes, s.Registry, s.Kubeconfig, s.DataDir)
	if !terminal.IsQuiet(env.Stderr) {
		text += fmt.Sprintf(`
Next:
  export KUBECONFIG=%s
  xpkg install provider xpkg.crossplane.io/crossplane-contrib/provider-nop:v0.4.0 --wait 2m
  xpkg init provider provider-boats
  xpkg dev provider-boats/package --embed-go-program provider-boats

%s

Pushes to the registry require a token, which xpkg reads from the data directory. For docker, crane or skopeo:
  %s

%s
`, wording.ShellWord(s.Kubeconfig), composition(s), up.LoginCommand(s), stop)
	}
	_ = view.OutputFlag{}.Print(env.Stdout, nil, func(w io.Writer) { fmt.Fprint(w, text) })
}

// composition describes whether the control plane composes resources.
func composition(s up.State) string {
	switch {
	case s.Core == (up.Core{}):
		return "XRDs of Configurations are installed but not established: the control plane has no Crossplane core to compose resources.\n" +
			"With --with-core, it runs one."
	case s.Core.Version == "":
		return "Crossplane core composes resources. Its log: xpkg logs crossplane"
	}
	return "Crossplane core " + s.Core.Version + " composes resources. Its log: xpkg logs crossplane"
}

// DownCmd implements `xpkg down`.
type DownCmd struct {
	flags.DataDirFlag
}

// Run stops the control plane of a data directory.
func (c *DownCmd) Run(env *terminal.Env) error {
	dir, err := c.RunningDir()
	if err != nil {
		return err
	}
	if err := up.Stop(env.Context, dir); err != nil {
		return err
	}
	return env.Say(
		"The control plane is stopped. Its data is in %s.\nStart it again with `%s`.\n", terminal.Safe(dir),
		terminal.Safe(datadir.StartCommand(dir, "--detach")),
	)
}
