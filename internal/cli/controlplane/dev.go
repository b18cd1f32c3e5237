package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/location"
	"github.com/xpkg-dev/xpkg/internal/cli/selection"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/devloop"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/up"
	"github.com/xpkg-dev/xpkg/internal/versions"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// DevCmd implements `xpkg dev`.
type DevCmd struct {
	Folder                   string        `arg:"" optional:"" name:"folder" help:"Folder of the package. Default is this folder."`
	EmbedGoProgram           string        `xor:"runtime" placeholder:"DIR" help:"Folder of the main package of a Go program to build and embed. The module of the program is watched."`
	EmbedRuntimeImageTarball string        `xor:"runtime" placeholder:"FILE" help:"Runtime image to embed, as a file that docker save or an OCI tool wrote. The file is watched."`
	Watch                    []string      `sep:"none" placeholder:"DIR" help:"Further folder whose changes start a build. Can be repeated."`
	Repository               string        `placeholder:"NAME" help:"Repository in the registry of the control plane. Default is dev/ and the name of the package, or for a Project with functions the path of its repository."`
	Wait                     time.Duration `default:"2m" placeholder:"DURATION" help:"Time in which a new version must become healthy. Default is 2m."`
	flags.DataDirFlag
}

const (
	// devPause is the time between two looks at the folders, and at the log of the runtime.
	devPause = 500 * time.Millisecond
	// lastRead is the time in which the control plane must report whether the package is installed, after an interrupt.
	lastRead = 5 * time.Second
)

// Run builds, pushes and installs a package whenever its files change, and follows the log of its runtime, until it is
// interrupted. The package stays installed.
func (c *DevCmd) Run(env *terminal.Env) error {
	dir, err := c.RunningDir()
	if err != nil {
		return err
	}
	report, err := up.AwaitStart(env.Context, dir)
	if err != nil {
		return err
	}
	if !report.Ready {
		return up.NotRunning(dir)
	}
	if c.Folder == "" {
		c.Folder = "."
	}
	meta, err := location.ReadMeta(env.Context, c.Folder)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "xpkg-dev-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if c.Repository == "" {
		if c.Repository, err = c.defaultRepository(meta.Name); err != nil {
			return err
		}
	}
	d := &deployment{
		DevCmd: c, run: ownProgram(env), messages: env.Stderr, state: report.State, file: filepath.Join(work, "package.xpkg"),
		kind: string(meta.Kind), name: oci.ToDNSLabel(c.Repository),
	}
	if d.read, err = d.reader(env.Context); err != nil {
		return err
	}
	if err := d.selectInstalled(env, meta.Name); err != nil {
		return err
	}
	stop, err := d.follow(env)
	if err != nil {
		return err
	}
	defer stop()
	watched := c.watched()
	fmt.Fprintf(env.Stderr, "watching %s; Ctrl-C ends\n", terminal.Safe(strings.Join(watched, ", ")))
	devloop.Loop{
		Snapshot: func() (string, error) { return devloop.Snapshot(watched) }, Deploy: d.deploy, Pause: pause,
		Failed: func(err error) { fmt.Fprintf(env.Stderr, "%s\n", terminal.Safe(d.failureText(env.Context, err))) },
	}.Run(env.Context)
	stop()
	last, cancel := context.WithTimeout(context.WithoutCancel(env.Context), lastRead)
	defer cancel()
	if i, err := d.read(last); err == nil && i.exists {
		fmt.Fprintf(
			env.Stderr, "%s stays installed; remove it with `xpkg uninstall %s %s`\n", d.object(), strings.ToLower(d.kind),
			d.name,
		)
	}
	return nil
}

// defaultRepository returns the repository of a package that is developed. That of a Project with functions has the
// path that the Project names, from which its compositions derive the names of the functions.
func (c *DevCmd) defaultRepository(name string) (string, error) {
	p, functions, err := location.FolderFlags{}.Project(c.Folder, xpkg.Limits{})
	if err != nil {
		return "", err
	}
	if len(functions) > 0 {
		ref, err := oci.ParseReference(p.Repository, oci.ParseOptions{AllowUntagged: true})
		return ref.Repository, err
	}
	return "dev/" + name, nil
}

// selectInstalled selects the installed package of the repository. If there is none, it prints how a package with the
// same name from another repository is developed in place: two packages cannot own the same objects.
func (d *deployment) selectInstalled(env *terminal.Env, name string) error {
	_, all, err := selection.Read(
		env.Context, connection.ClusterFlags{Kubeconfig: d.state.Kubeconfig}, inventory.LoadPackages,
	)
	if err != nil {
		return err
	}
	other := d.findInstalled(all.Packages, name)
	if other == nil {
		return nil
	}
	advice := fmt.Sprintf(
		"uninstall it first with `xpkg uninstall %s`, which deletes its custom resources", inventory.ShortName(other),
	)
	if repository, local := strings.CutPrefix(inventory.RepositoryOf(other), d.state.Registry+"/"); local {
		advice = fmt.Sprintf("to develop the installed package, use `%s`", env.CommandWith("--repository="+repository))
	}
	fmt.Fprintf(env.Stderr, "note: %s is installed from %s, and %s cannot have the same objects; %s\n",
		inventory.ShortName(other), terminal.Safe(inventory.RepositoryOf(other)), d.object(), terminal.Safe(advice))
	return nil
}

// findInstalled selects the installed package of the repository, or returns one of another repository with the name of
// the folder's package.
func (d *deployment) findInstalled(all []v1.Package, name string) (other v1.Package) {
	for _, p := range all {
		repository := inventory.RepositoryOf(p)
		switch {
		case p.PackageKind() != d.kind:
		case repository == d.state.Registry+"/"+d.Repository:
			d.name = p.GetName()
			return nil
		case p.GetName() == name || path.Base(repository) == name:
			other = p
		}
	}
	return other
}

// failureText returns the line about a failed deployment: which version is active now. A command has reported its own
// error.
func (d *deployment) failureText(ctx context.Context, err error) string {
	var exited *exec.ExitError
	const waiting = "waiting for the next change"
	if !errors.As(err, &exited) {
		return "error: " + err.Error() + "\n" + waiting
	}
	i, err := d.read(ctx)
	switch {
	case err != nil || i.active == "":
		return waiting
	case !i.isHealthy && d.hasRuntime():
		return fmt.Sprintf(
			"%s; %s is installed and not healthy, and `%s` prints the log of its runtime", waiting, i.version, d.logsCommand(),
		)
	case !i.isHealthy:
		return fmt.Sprintf("%s; %s is installed and not healthy", waiting, i.version)
	}
	return fmt.Sprintf("%s; the installed version %s keeps running", waiting, i.version)
}

// logsCommand returns the command that prints the log of the runtime.
func (d *deployment) logsCommand() string {
	command := "xpkg logs " + d.object()
	if d.DataDir != "" {
		command += " --data-dir " + wording.ShellWord(d.DataDir)
	}
	return command
}

func pause(ctx context.Context) error {
	timer := time.NewTimer(devPause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// watched returns the folders whose changes start a build.
func (c *DevCmd) watched() []string {
	out := append([]string{c.Folder}, c.Watch...)
	if c.EmbedRuntimeImageTarball != "" {
		out = append(out, c.EmbedRuntimeImageTarball)
	}
	if c.EmbedGoProgram != "" {
		out = append(out, moduleOf(c.EmbedGoProgram))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// moduleOf returns the folder of the Go module of a folder, or the folder itself if there is none.
func moduleOf(dir string) string {
	at, err := filepath.Abs(dir)
	if err != nil {
		return dir
	}
	for {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
			return at
		}
		above := filepath.Dir(at)
		if above == at {
			return dir
		}
		at = above
	}
}

// runner runs a command of xpkg, and writes its standard output to out.
type runner func(ctx context.Context, out io.Writer, args ...string) error

// ownProgram returns a runner in a process of its own, which prints its errors, except that it was interrupted: an
// interrupt is the usual end of `xpkg dev`, and reaches all of its processes.
func ownProgram(env *terminal.Env) runner {
	return func(ctx context.Context, out io.Writer, args ...string) error {
		cmd := exec.CommandContext(ctx, env.Executable, args...)
		// A command whose messages are not for a terminal prints complete lines, between those of the runtime.
		messages := &heldError{to: env.Stderr}
		cmd.Stdout, cmd.Stderr = out, messages
		if out == nil {
			cmd.Stdout = env.Stdout
		}
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
		cmd.WaitDelay = 10 * time.Second
		err := cmd.Run()
		if exited := (*exec.ExitError)(nil); errors.As(err, &exited) && exited.ExitCode() == errcode.Interrupted.Exit {
			return context.Canceled
		}
		return errors.Join(err, messages.release())
	}
}

// heldError writes the messages of a command, and holds back its error, which is the last message.
type heldError struct {
	to   io.Writer
	held []byte
}

// Write writes the complete lines before the error.
func (h *heldError) Write(p []byte) (int, error) {
	h.held = append(h.held, p...)
	for {
		end := bytes.IndexByte(h.held, '\n') + 1
		if end == 0 || bytes.HasPrefix(h.held, []byte("error: ")) {
			return len(p), nil
		}
		if _, err := h.to.Write(h.held[:end]); err != nil {
			return 0, err
		}
		h.held = h.held[end:]
	}
}

// release writes what is held back.
func (h *heldError) release() error {
	_, err := h.to.Write(h.held)
	h.held = nil
	return err
}

// deployment deploys the versions of a package.
type deployment struct {
	*DevCmd
	run      runner
	messages io.Writer
	state    up.State
	// file is the package file, and kind and name the installed package.
	file, kind, name string
	// functions are the names of the functions of a Project.
	functions []string
	// read reads what is installed of the package.
	read func(context.Context) (installation, error)
	// digest is that of the content that is known to be installed, or "".
	digest string
}

// object returns the installed package in the form of command arguments.
func (d *deployment) object() string { return v1.ObjectName(d.kind, d.name) }

// hasRuntime reports whether the package has a runtime.
func (d *deployment) hasRuntime() bool { return d.kind != string(xpkg.Configuration) }

// installation is the installed state of a package.
type installation struct {
	exists    bool
	revisions []string
	// active is the active revision, and version the tag of its package.
	active, version string
	isHealthy       bool
	// functions are the installed functions of the Project.
	functions []string
}

// reader returns a function that reads the installed state of the package from the control plane.
func (d *deployment) reader(ctx context.Context) (func(context.Context) (installation, error), error) {
	cluster, err := connection.ClusterFlags{Kubeconfig: d.state.Kubeconfig}.Client(ctx)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (installation, error) {
		p, err := inventory.Get(ctx, cluster, d.kind, d.name)
		if err != nil || p == nil {
			return installation{}, err
		}
		i := installation{exists: true}
		for _, f := range d.functions {
			installed, err := inventory.Get(ctx, cluster, v1.FunctionKind, oci.ToDNSLabel(d.Repository+"_"+f))
			if err != nil {
				return installation{}, err
			}
			if installed != nil {
				i.functions = append(i.functions, f)
			}
		}
		revisions, err := inventory.ReadRevisions(ctx, cluster, p)
		for _, rev := range revisions {
			i.revisions = append(i.revisions, rev.GetName())
			if spec := rev.RevisionSpec(); spec.DesiredState == v1.RevisionActive {
				i.active, i.isHealthy = rev.GetName(), revision.HealthOf(rev) == corev1.ConditionTrue
				_, i.version, _ = strings.Cut(strings.TrimPrefix(spec.Image, d.state.Registry), ":")
			}
		}
		return i, err
	}, nil
}

// deploy builds, pushes and installs the package. It changes nothing if the new content is that of the last deployment.
func (d *deployment) deploy(ctx context.Context) error {
	build := []string{"build", "-f", d.Folder, "-o", d.file}
	if d.EmbedGoProgram != "" {
		build = append(build, "--embed-go-program", d.EmbedGoProgram)
	}
	if d.EmbedRuntimeImageTarball != "" {
		build = append(build, "--embed-runtime-image-tarball", d.EmbedRuntimeImageTarball)
	}
	_, functions, err := location.FolderFlags{}.Project(d.Folder, xpkg.Limits{})
	if err != nil {
		return err
	}
	d.functions = nil
	for _, f := range functions {
		d.functions = append(d.functions, f.Name)
	}
	if len(functions) > 0 {
		build = append(
			build, "--repository", d.state.Registry+"/"+d.Repository, "--platform", "linux/"+runtime.GOARCH,
		)
	}
	var built bytes.Buffer
	if err := d.run(ctx, &built, build...); err != nil {
		return err
	}
	files, digest := readBuilt(built.String())
	if digest == "" || digest == d.digest {
		fmt.Fprintln(d.messages, "the content of the package is unchanged")
		return nil
	}
	// A tag for each content: an installed package keeps the content that its tag had.
	repository, tag := d.state.Registry+"/"+d.Repository, versions.DevelopmentPrefix+digest[:min(12, len(digest))]
	ref := repository + ":" + tag
	push := []string{"push"}
	for _, file := range files {
		push = append(push, "-f", file)
	}
	if err := d.run(ctx, io.Discard, append(push, ref, "--data-dir", d.state.DataDir)...); err != nil {
		return err
	}
	// A version that does not become healthy in time, or that a change ends, is installed, and one that was refused is
	// not. Until the update has succeeded, the former content can be what has to be deployed.
	d.digest = ""
	update := []string{"update", "--install", ref}
	if len(functions) > 0 {
		i, err := d.read(ctx)
		if err != nil {
			return err
		}
		// The Configuration depends on the digests of its functions, so these are updated with it.
		for _, f := range i.functions {
			update = append(update, repository+"_"+f+":"+tag)
		}
	}
	if err := d.run(
		ctx, nil, append(update, "--yes", "--wait", d.Wait.String(), "--kubeconfig", d.state.Kubeconfig)...,
	); err != nil {
		return err
	}
	d.digest = digest
	return nil
}

// readBuilt returns the files in the output of a build, and the digest of the last one: a Project is several packages,
// and its Configuration comes last.
func readBuilt(output string) (files []string, digest string) {
	for line := range strings.Lines(output) {
		file, _, isFile := strings.Cut(line, ".xpkg: ")
		_, d, ok := strings.Cut(strings.TrimSpace(line), "sha256:")
		if isFile && ok {
			files, digest = append(files, file+".xpkg"), d
		}
	}
	return files, digest
}

// follow prints the logs of the revisions that are activated, each from its start, until the returned function is
// called. The lines of a runtime that ends at once are the reason why its version does not become healthy.
func (d *deployment) follow(env *terminal.Env) (stop func(), err error) {
	if !d.hasRuntime() {
		return func() {}, nil
	}
	ctx, cancel := context.WithCancel(env.Context)
	before, err := d.read(ctx)
	if err == nil {
		log := &revisionLogs{dir: programsDir(d.state.DataDir), out: env.Stdout, opened: map[string]io.ReadCloser{}}
		if err = log.skip(ctx, before.revisions); err == nil {
			var following sync.WaitGroup
			following.Go(func() { d.printLogs(ctx, log) })
			return func() { cancel(); following.Wait() }, nil
		}
	}
	cancel()
	return nil, err
}

// printLogs prints the lines of runtimes until ctx ends. A failure ends it: the versions are deployed nevertheless.
func (d *deployment) printLogs(ctx context.Context, log *revisionLogs) {
	var failed error
	for failed == nil && pause(ctx) == nil {
		// A control plane that does not respond is reported by the next deployment.
		if i, err := d.read(ctx); err == nil {
			failed = log.print(ctx, i.active)
		}
	}
	if err := errors.Join(failed, log.close()); err != nil {
		fmt.Fprintf(d.messages, "note: the log of the runtime is no longer printed: %s\n", terminal.Safe(err.Error()))
	}
}
