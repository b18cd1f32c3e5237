package controlplane

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/inventory"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/runtime/sandbox/logs"
	"github.com/xpkg-dev/xpkg/internal/up"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// Codes for logs that cannot be read.
var (
	ErrLogsElsewhere = errcode.Code{
		Name: "LogsElsewhere", Class: errcode.Unsupported,
		Cause: "The runtime of the package does not run as a process of this machine, so its log is elsewhere.",
		Fix:   "Read the log where the runtime runs, in a cluster with kubectl logs.",
	}
	ErrNoLogs = errcode.Code{
		Name: "NoLogs", Class: errcode.NotFound,
		Cause: "The package has no runtime, or the runtime has not been started yet.",
		Fix:   "Check with `xpkg list` whether the package is installed and healthy.",
	}
)

// programsDir returns the directory in which the local control plane runs package runtimes.
func programsDir(dataDir string) string { return filepath.Join(dataDir, "runtime") }

// LogsCmd implements `xpkg logs`.
type LogsCmd struct {
	connection.ClusterFlags
	flags.DataDirFlag
	Name      string `arg:"" placeholder:"[KIND/]NAME" complete:"package" help:"Name of a package, such as hello or provider/hello, or of one of its revisions."`
	Follow    bool   `short:"f" help:"Follow the log until Ctrl-C."`
	Tail      int    `default:"-1" placeholder:"N" help:"Start with the last N lines. Default is all lines."`
	Namespace string `default:"crossplane-system" config:"" help:"Namespace of runtimes in a cluster."`
}

// Run prints the log of a package runtime.
func (c *LogsCmd) Run(env *terminal.Env) error {
	log, err := c.open(env.Context)
	if err != nil {
		return err
	}
	if terminal.IsTerminal(env.Stdout) {
		err = CopyText(env.Stdout, log)
	} else {
		_, err = io.Copy(env.Stdout, log)
	}
	return errors.Join(err, log.Close())
}

// open returns the log of a local revision, even if it was replaced or does not run, and otherwise the log of
// the package's runtime.
func (c *LogsCmd) open(ctx context.Context) (io.ReadCloser, error) {
	c.PlaneDir = c.DataDir
	dirs := c.Candidates(c.Kubeconfig)
	for _, dir := range dirs {
		log, err := logs.Open(ctx, programsDir(dir), c.Name, c.Follow, c.Tail)
		if err == nil || !errors.Is(err, logs.ErrNoLog) {
			return log, err
		}
	}
	revision, err := c.revision(ctx)
	if err != nil {
		return nil, err
	}
	local := slices.IndexFunc(dirs, func(dir string) bool { return c.isLocal(ctx, dir) })
	if local < 0 {
		return nil, c.elsewhere(revision)
	}
	log, err := logs.Open(ctx, programsDir(dirs[local]), revision, c.Follow, c.Tail)
	if errors.Is(err, logs.ErrNoLog) {
		return nil, ErrNoLogs.New(err, "%s has no log", c.Name)
	}
	return log, err
}

// revision returns the revision whose runtime runs: the active one, which is not the newest after a rollback
// or before a manual activation. While the active one waits for permissions, it returns the last healthy one.
func (c *LogsCmd) revision(ctx context.Context) (string, error) {
	_, all, err := inventory.Read(ctx, c.ClusterFlags, inventory.LoadPackages)
	if err != nil {
		return "", err
	}
	pkg, err := all.Find(inventory.Name(c.Name))
	if err != nil {
		return "", err
	}
	status := pkg.PackageStatus()
	revision := cmp.Or(status.LastHealthyRevision, status.CurrentRevision)
	if a := status.Activation; a != nil {
		revision = a.Revision
	}
	switch {
	case pkg.PackageKind() == v1.ConfigurationKind:
		return "", ErrNoLogs.New(nil, "%s is a Configuration, which has no runtime", c.Name)
	case revision == "":
		return "", ErrNoLogs.New(nil, "%s has no revision yet", c.Name)
	}
	return revision, nil
}

// isLocal reports whether the cluster is the control plane of the data directory. It returns false for a
// directory without a control plane.
func (c *LogsCmd) isLocal(ctx context.Context, dir string) bool {
	cfg, err := c.Config(ctx)
	if err != nil {
		return false
	}
	report, err := up.Status(dir)
	return err == nil && report.Ready && strings.TrimSuffix(cfg.Host, "/") == strings.TrimSuffix(report.State.Server, "/")
}

// elsewhere returns an error with the kubectl command for the log.
func (c *LogsCmd) elsewhere(revision string) error {
	words := []string{"kubectl", "logs", "deployment/" + revision, "--namespace", wording.ShellWord(c.Namespace), "--container", "package-runtime"}
	if c.Kubeconfig != "" {
		words = append(words, "--kubeconfig", wording.ShellWord(c.Kubeconfig))
	}
	if c.Context != "" {
		words = append(words, "--context", wording.ShellWord(c.Context))
	}
	if c.Follow {
		words = append(words, "--follow")
	}
	if c.Tail >= 0 {
		words = append(words, fmt.Sprintf("--tail=%d", c.Tail))
	}
	return ErrLogsElsewhere.New(nil, "the runtime of %s runs in its cluster, not on this machine", c.Name).
		WithDo("Run `%s`.", strings.Join(words, " "))
}

// CopyText copies lines to a terminal, and escapes the control characters of a runtime's
// output.
func CopyText(w io.Writer, r io.Reader) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		if _, err := io.WriteString(w, terminal.SafeText(line)); err != nil {
			return err
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
