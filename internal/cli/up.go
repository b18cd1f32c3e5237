package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/xpkg-dev/xpkg/internal/manager"
	programs "github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/up"
)

// dataDirFlag names the data directory of a control plane.
type dataDirFlag struct {
	DataDir string `placeholder:"DIR" env:"XPKG_DATA_DIR" help:"Data directory of the control plane. Default is ~/.local/share/xpkg/default."`
}

func (f dataDirFlag) dir() (string, error) {
	if f.DataDir != "" {
		return f.DataDir, nil
	}
	if dir := up.DefaultDataDir(); dir != "" {
		return dir, nil
	}
	return "", ErrUsage.New(nil, "there is no home folder to keep the control plane in").WithDo("Name a folder with --data-dir.")
}

type upCmd struct {
	dataDirFlag
	cacheLimitFlag
	permissionFlags
	dependencyFlags
	Port           int    `default:"16443" help:"Port of the API server. 0 takes a free one, and the same again next time."`
	RegistryPort   int    `default:"15000" help:"Port of the registry. 0 takes a free one, and the same again next time."`
	CRDOpenAPI     bool   `name:"crd-openapi" help:"Publish the schemas of custom resources for kubectl explain, which costs memory."`
	PackageRuntime string `placeholder:"RUNTIME" help:"Who runs the programs of packages: Process, External or None, or pairs such as Provider=Process;Function=External. Default is Process on Linux, and External elsewhere."`
	Detach         bool   `short:"d" help:"Run in the background, and return when it is ready."`
}

// Run starts a control plane.
func (c *upCmd) Run(env *Env) error {
	dir, err := c.dir()
	if err != nil {
		return err
	}
	choice, err := choose(c.PackageRuntime, localRuntime())
	if err != nil {
		return err
	}
	if c.Detach {
		return c.detach(env, dir)
	}
	progress := newProgress(env.Stderr)
	defer progress.end()
	return up.Run(env.Context, up.Options{
		Dir: dir, Port: c.Port, RegistryPort: c.RegistryPort, CRDOpenAPI: c.CRDOpenAPI, Version: Version,
		Manager: localManager(progress, c, programsDir(dir), choice),
		Progress: func(e up.Event) {
			c.tell(env, progress, e)
		},
	})
}

// localManager is the package manager of a control plane on this machine. What
// it has to say goes above the progress, as lines of their own.
func localManager(progress *progress, c *upCmd, programsDir string, choice programs.Choice) up.Manager {
	return func(ctx context.Context, e up.Env) error {
		return runManager(ctx, managerOptions{
			config: e.Config, cacheDir: filepath.Join(e.CacheDir, packagesDir), cacheLimit: c.CacheLimit, programsDir: programsDir,
			dependencies: c.dependencyFlags,
			log:          slog.New(slog.NewTextHandler(progress, nil)),
			options:      manager.Options{Ready: e.Ready, MakeNamespace: true, Runtimes: choice, Permissions: c.permissions()},
		})
	}
}

// detach runs the same command in the background.
func (c *upCmd) detach(env *Env, dir string) error {
	progress := newProgress(env.Stderr)
	progress.say("starting a control plane in the background")
	var args []string
	for _, a := range env.Args {
		if a != "--detach" && a != "-d" {
			args = append(args, a)
		}
	}
	state, err := up.Detach(env.Context, dir, args)
	progress.end()
	if err != nil {
		return err
	}
	printReady(env.Stdout, state, "")
	return nil
}

// tell shows one step of the start.
func (c *upCmd) tell(env *Env, progress *progress, e up.Event) {
	switch {
	case e.Err != nil:
		progress.end()
		fmt.Fprintf(env.Stderr, "the package manager ended and is started again: %s\n", safe(e.Err.Error()))
	case e.Stage == up.StageReady && e.State != nil:
		progress.end()
		printReady(env.Stdout, *e.State, fmt.Sprintf(" after %s", e.Took.Round(100*time.Millisecond)))
		fmt.Fprintln(env.Stdout, "\nPress Ctrl-C to stop it.")
	case e.Stage == up.StageStopping && !e.Done:
		progress.say("stopping")
	case e.Stage == up.StageStopping:
		progress.end()
	case !e.Done:
		progress.say("starting the %s", e.Stage)
	}
}

// printReady says what runs where, and what to type next.
func printReady(w io.Writer, s up.State, after string) {
	fmt.Fprintf(w, `The control plane is ready%s.

  API server   %s (Kubernetes %s)
  registry     %s
  kubeconfig   %s
  data         %s

Next:
  export KUBECONFIG=%s
  xpkg build -f FOLDER -o my.xpkg
  xpkg push -f my.xpkg %s/my/package:v0.1.0
  xpkg install provider %s/my/package:v0.1.0 --wait 2m
`, after, s.Server, s.Kubernetes, s.Registry, s.Kubeconfig, s.DataDir, quote(s.Kubeconfig), s.Registry, s.Registry)
}

// quote makes a path fit for a shell.
func quote(s string) string {
	if strings.ContainsAny(s, " '\"$\\`") {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}

type downCmd struct {
	dataDirFlag
}

// Run stops the control plane of a data directory.
func (c *downCmd) Run(env *Env) error {
	dir, err := c.dir()
	if err != nil {
		return err
	}
	if err := up.Stop(env.Context, dir); err != nil {
		return err
	}
	_, err = fmt.Fprintf(env.Stdout, "The control plane is stopped. Its data stays in %s.\n", dir)
	return err
}
