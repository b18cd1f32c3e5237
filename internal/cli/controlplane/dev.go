package controlplane

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/location"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/devloop"
	"github.com/xpkg-dev/xpkg/internal/up"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// DevCmd implements `xpkg dev`.
type DevCmd struct {
	Folder                   string        `arg:"" optional:"" name:"folder" help:"Folder of the package. Default is this folder."`
	EmbedGoProgram           string        `xor:"runtime" placeholder:"DIR" help:"Folder of the main package of a Go program to build and embed. The module of the program is watched."`
	EmbedRuntimeImageTarball string        `xor:"runtime" placeholder:"FILE" help:"Runtime image to embed, as a file that docker save or an OCI tool wrote. The file is watched."`
	Watch                    []string      `sep:"none" placeholder:"DIR" help:"Further folder whose changes start a build. Can be repeated."`
	Repository               string        `placeholder:"NAME" help:"Repository in the registry of the control plane. Default is dev/ and the name of the package."`
	Wait                     time.Duration `default:"2m" placeholder:"DURATION" help:"Time in which a new version must become healthy. Default is 2m."`
	flags.DataDirFlag
}

// devPause is the time between two looks at the folders.
const devPause = 500 * time.Millisecond

// Run builds, pushes and installs a package whenever its files change, and follows the log of its runtime, until it is
// interrupted. The package stays installed.
func (c *DevCmd) Run(env *terminal.Env) error {
	dir, err := c.RunningDir()
	if err != nil {
		return err
	}
	report, err := up.Status(dir)
	if err != nil {
		return err
	}
	if !report.Ready {
		return up.ErrNotRunning.New(nil, "no control plane runs in %s", dir)
	}
	if c.Folder == "" {
		c.Folder = "."
	}
	meta, err := c.metadata()
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "xpkg-dev-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if c.Repository == "" {
		c.Repository = "dev/" + meta.Name
	}
	d := &deployment{
		DevCmd: c, run: ownProgram(env), messages: env.Stderr, state: report.State, file: filepath.Join(work, "package.xpkg"),
		object: strings.ToLower(string(meta.Kind)) + "/" + oci.ToDNSLabel(c.Repository), hasLog: meta.Kind != xpkg.Configuration,
	}
	defer d.unfollow()
	watched := c.watched()
	fmt.Fprintf(env.Stderr, "watching %s; Ctrl-C ends\n", terminal.Safe(strings.Join(watched, ", ")))
	devloop.Loop{
		Snapshot: func() (string, error) { return devloop.Snapshot(watched) }, Deploy: d.deploy, Pause: pause,
		Failed: func(err error) { fmt.Fprintf(env.Stderr, "%s\n", terminal.Safe(d.failureText(err))) },
	}.Run(env.Context)
	d.unfollow()
	if d.installed {
		kind, name, _ := strings.Cut(d.object, "/")
		fmt.Fprintf(env.Stderr, "%s stays installed; remove it with `xpkg uninstall %s %s`\n", d.object, kind, name)
	}
	return nil
}

// failureText returns the line about a failed deployment. A command has reported its own error.
func (d *deployment) failureText(err error) string {
	var exited *exec.ExitError
	switch {
	case errors.As(err, &exited) && !d.installed:
		return "waiting for the next change"
	case errors.As(err, &exited):
		return "waiting for the next change; the installed version keeps running"
	}
	return "error: " + err.Error()
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

// metadata reads the metadata of the package.
func (c *DevCmd) metadata() (xpkg.Meta, error) {
	folder, err := location.FolderFlags{}.Read(c.Folder, xpkg.Limits{})
	if err != nil {
		return xpkg.Meta{}, err
	}
	meta, err := xpkg.ReadMeta(folder.Stream(), xpkg.ReadOptions{File: filepath.Join(c.Folder, "crossplane.yaml")})
	if err != nil {
		// A file that is no YAML is not in the stream.
		_, refused := folder.Package(xpkg.ReadOptions{})
		return meta, cmp.Or(refused, err)
	}
	return meta, nil
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

// ownProgram returns a runner in a process of its own, which prints its errors.
func ownProgram(env *terminal.Env) runner {
	return func(ctx context.Context, out io.Writer, args ...string) error {
		cmd := exec.CommandContext(ctx, env.Executable, args...)
		cmd.Stdout, cmd.Stderr = out, env.Stderr
		if out == nil {
			cmd.Stdout = env.Stdout
		}
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
		cmd.WaitDelay = 10 * time.Second
		return cmd.Run()
	}
}

// deployment deploys the versions of a package.
type deployment struct {
	*DevCmd
	run      runner
	messages io.Writer
	state    up.State
	// file is the package file, and object the installed package in the form of command arguments.
	file, object string
	// hasLog reports whether the package has a runtime.
	hasLog    bool
	installed bool
	digest    string
	// stop ends the command that follows the log, and following waits for it.
	stop      context.CancelFunc
	following sync.WaitGroup
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
	var built bytes.Buffer
	if err := d.run(ctx, &built, build...); err != nil {
		return err
	}
	_, digest, ok := strings.Cut(strings.TrimSpace(built.String()), "sha256:")
	if !ok || digest == d.digest {
		fmt.Fprintln(d.messages, "the content of the package is unchanged")
		return nil
	}
	// A tag for each content: an installed package keeps the content that its tag had.
	ref := fmt.Sprintf("%s/%s:v0.0.0-dev.%s", d.state.Registry, d.Repository, "x"+digest[:min(12, len(digest))])
	if err := d.run(ctx, io.Discard, "push", "-f", d.file, ref, "--data-dir", d.state.DataDir); err != nil {
		return err
	}
	if err := d.run(ctx, nil, "update", "--install", ref, "--yes", "--wait", d.Wait.String(), "--kubeconfig", d.state.Kubeconfig); err != nil {
		// A version that does not become healthy in time is installed, and one that was refused is not.
		d.installed = d.installed || d.isInstalled(context.WithoutCancel(ctx))
		return err
	}
	d.installed = true
	d.digest = digest
	d.follow(ctx)
	return nil
}

// isInstalled reports whether the package is installed.
func (d *deployment) isInstalled(ctx context.Context) bool {
	var names bytes.Buffer
	if err := d.run(ctx, &names, "list", "-o", "name", "--kubeconfig", d.state.Kubeconfig); err != nil {
		return false
	}
	kind, name, _ := strings.Cut(d.object, "/")
	return slices.Contains(strings.Fields(names.String()), kind+"."+v1.Group+"/"+name)
}

// follow follows the log of the active revision.
func (d *deployment) follow(ctx context.Context) {
	d.unfollow()
	if !d.hasLog {
		return
	}
	ctx, d.stop = context.WithCancel(ctx)
	d.following.Go(func() {
		// The command prints its own error.
		_ = d.run(ctx, nil, "logs", d.object, "--follow", "--tail", "0", "--kubeconfig", d.state.Kubeconfig, "--data-dir", d.state.DataDir)
	})
}

// unfollow ends the command that follows the log.
func (d *deployment) unfollow() {
	if d.stop != nil {
		d.stop()
		d.following.Wait()
		d.stop = nil
	}
}
