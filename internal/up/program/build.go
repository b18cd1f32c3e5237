// Package program builds the program of the control plane with the Go toolchain, from the source in the Go module
// proxy.
package program

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/lazyregexp"
	"github.com/xpkg-dev/xpkg/internal/up/child"
	"github.com/xpkg-dev/xpkg/internal/up/datadir"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// ErrBuild is the code for a control plane that cannot be built.
var ErrBuild = errcode.Code{
	Name: "ControlPlaneBuild", Class: errcode.Unavailable,
	Cause: "The Go toolchain is missing, cannot download the source of the control plane, or cannot build it.",
	Fix:   "Install Go from https://go.dev/dl and check GOPROXY, or put the program of the release archive of xpkg-controlplane beside xpkg.",
}

// Codes returns the error codes that this package defines.
func Codes() []errcode.Code { return []errcode.Code{ErrBuild} }

// Module is the Go module of the control plane.
const Module = "github.com/xpkg-dev/xpkg/controlplane"

// Folder returns the folder of the control planes that Build has built for a version of xpkg, or "" without a home
// folder.
func Folder(version string) string {
	data := datadir.Default()
	if data == "" || version == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(data), "bin", version)
}

// Options configures Build.
type Options struct {
	// Version is the version of the module, which is the version of xpkg.
	Version string
	// Folder is the folder of the program. It is created.
	Folder string
	// Progress is called with the number of packages that were compiled. It may be nil.
	Progress func(compiled int)
}

// Build downloads the source of the control plane with the go command and builds it. It returns the path of the
// program. The go command verifies the source with the checksum database, as GOSUMDB configures it. It fails with
// ErrBuild.
func Build(ctx context.Context, o Options) (_ string, err error) {
	toolchain, err := exec.LookPath("go")
	if err != nil {
		return "", ErrBuild.New(err, "cannot build the control plane")
	}
	work, err := os.MkdirTemp("", "xpkg-controlplane-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	source, err := download(ctx, toolchain, work, o.Version)
	if err != nil {
		return "", err
	}
	// The module cache is read-only, and the go command may not build in it.
	module := filepath.Join(work, "module")
	if err := os.CopyFS(module, os.DirFS(source)); err != nil {
		return "", fmt.Errorf("copy the source of the control plane: %w", err)
	}
	built := filepath.Join(work, child.Name())
	if err := compile(ctx, toolchain, module, built, o.Progress); err != nil {
		return "", err
	}
	return install(built, o.Folder)
}

// download returns the folder of a version of the module in the module cache.
func download(ctx context.Context, toolchain, work, version string) (string, error) {
	cmd := exec.CommandContext(ctx, toolchain, "mod", "download", "-json", Module+"@"+version)
	cmd.Dir, cmd.Env = work, environment()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	failed := cmd.Run()
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	var module struct{ Dir, Error string }
	if err := json.Unmarshal(out.Bytes(), &module); err != nil || module.Dir == "" {
		why := strings.TrimSpace(module.Error)
		if why == "" {
			why = strings.TrimSpace(lastLine(errs.String()))
		}
		return "", ErrBuild.New(errors.Join(errors.New(why), failed), "cannot download %s %s", Module, version)
	}
	return module.Dir, nil
}

// kubernetesVersion matches the requirement of Kubernetes in the go.mod of the module.
var kubernetesVersion = lazyregexp.New(`(?m)^\tk8s\.io/kubernetes (v1\.([0-9]+)\.[0-9]+)$`)

// compile builds the main package of a folder.
func compile(ctx context.Context, toolchain, folder, out string, progress func(int)) error {
	gomod, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	if err != nil {
		return fmt.Errorf("read the module of the control plane: %w", err)
	}
	// The linker sets the version that the API server reports. The linker drops debug information, so it is not written.
	cmd := exec.CommandContext(ctx, toolchain, "build", "-v", "-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false",
		"-ldflags=-s -w"+versionFlags(kubernetesVersion(), string(gomod)), "-o", out, ".")
	cmd.Dir, cmd.Env = folder, append(environment(), "CGO_ENABLED=0")
	messages, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return ErrBuild.New(err, "cannot start the Go toolchain")
	}
	last := count(messages, progress)
	if err := cmd.Wait(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return ErrBuild.New(errors.Join(errors.New(last), err), "cannot compile the control plane")
	}
	return nil
}

// versionFlags returns the linker flags with the version of Kubernetes in a go.mod, or "" if there is none.
func versionFlags(pattern *regexp.Regexp, gomod string) string {
	m := pattern.FindStringSubmatch(gomod)
	if m == nil {
		return ""
	}
	const variable = " -X k8s.io/component-base/version."
	return variable + "gitVersion=" + m[1] + variable + "gitMajor=1" + variable + "gitMinor=" + m[2] + variable +
		"gitTreeState=clean"
}

// count reports the number of lines, one for each compiled package, and returns the last one.
func count(messages io.Reader, progress func(int)) (last string) {
	lines := bufio.NewScanner(messages)
	for n := 1; lines.Scan(); n++ {
		if last = lines.Text(); progress != nil {
			progress(n)
		}
	}
	_, _ = io.Copy(io.Discard, messages) // After a line that is too long.
	return last
}

// install moves a program into a folder. Another process may do the same.
func install(built, folder string) (string, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", ErrBuild.New(err, "cannot create the folder of the control plane")
	}
	partial, err := os.MkdirTemp(folder, ".partial-")
	if err != nil {
		return "", ErrBuild.New(err, "cannot write the control plane")
	}
	defer os.RemoveAll(partial)
	content, err := os.ReadFile(built)
	if err != nil {
		return "", err
	}
	temporary, final := filepath.Join(partial, child.Name()), filepath.Join(folder, child.Name())
	if err := errors.Join(os.WriteFile(temporary, content, 0o755), os.Rename(temporary, final)); err != nil { //nolint:gosec // A program is executable for its users.
		return "", ErrBuild.New(err, "cannot write the control plane")
	}
	return final, nil
}

// environment returns the environment of the go command, without a workspace of the current folder.
func environment() []string { return append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly") }

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
