package controlplane

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/apiserver"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/frontend"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
	"github.com/xpkg-dev/xpkg/internal/runtime/sandbox/logs"
	"github.com/xpkg-dev/xpkg/internal/up"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/plan"
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
	Name      string `arg:"" placeholder:"[KIND/]NAME" complete:"package" help:"Name of a package, such as hello or provider/hello, of one of its revisions, or of an object of the first generation, such as packageinstall/team/hello."`
	Follow    bool   `short:"f" help:"Follow the log until Ctrl-C."`
	Tail      int    `default:"-1" placeholder:"N" help:"Start with the last N lines. Default is all lines."`
	Namespace string `default:"crossplane-system" config:"" help:"Namespace of runtimes in a cluster."`
}

// Run prints the log of a package runtime.
func (c *LogsCmd) Run(env *terminal.Env) error {
	log, err := c.open(env)
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
func (c *LogsCmd) open(env *terminal.Env) (io.ReadCloser, error) {
	ctx := env.Context
	c.PlaneDir = c.DataDir
	dirs := c.Candidates(c.Kubeconfig)
	for _, dir := range dirs {
		log, err := logs.Open(ctx, programsDir(dir), c.Name, c.Follow, c.Tail)
		if err == nil || !errors.Is(err, logs.ErrNoLog) {
			return log, err
		}
	}
	runs, err := c.find(env)
	if err != nil {
		return nil, err
	}
	local := slices.IndexFunc(dirs, func(dir string) bool { return c.isLocal(ctx, dir) })
	if local < 0 {
		if c.runtimeOf(ctx, runs) == runtime.Process {
			return nil, ErrLogsElsewhere.New(
				nil, "the runtime of %s is a process of a control plane whose data is not in %s", c.Name,
				strings.Join(dirs, " or "),
			).
				WithDo("Name the data directory of its control plane with --data-dir, on the machine on which it runs.")
		}
		return nil, c.elsewhere(runs)
	}
	log, err := logs.Open(ctx, programsDir(dirs[local]), runs.process, c.Follow, c.Tail)
	if !errors.Is(err, logs.ErrNoLog) {
		return log, err
	}
	if former := runs.former(); former != "" {
		if log, err := logs.Open(ctx, programsDir(dirs[local]), former, c.Follow, c.Tail); err == nil {
			fmt.Fprintf(
				env.Stderr, "note: %s has no log; this is the log of %s, the last healthy revision\n", runs.process, former,
			)
			return log, nil
		}
	}
	return nil, c.noLog(ctx, runs, err)
}

// noLog returns the error of a runtime without a log: that the manager runs no runtime for the package, if this is the
// reason.
func (c *LogsCmd) noLog(ctx context.Context, runs logged, err error) error {
	failed := ErrNoLogs.New(err, "%s has no log", c.Name)
	if c.runtimeOf(ctx, runs) != runtime.None {
		return failed
	}
	return ErrNoLogs.New(nil, "%s has no log, because the manager runs no runtime for it (package runtime None)", c.Name).
		WithDo("`xpkg describe %s` shows its state.", inventory.ShortName(runs.of))
}

// runtimeOf returns the runtime that the manager has announced for a package, or "": managers of former versions
// announce none.
func (c *LogsCmd) runtimeOf(ctx context.Context, runs logged) runtime.Name {
	cluster, err := c.Client(ctx)
	var lock v1beta1.Lock
	if err != nil || runs.of == nil || cluster.Get(ctx, client.ObjectKey{Name: v1beta1.LockName}, &lock) != nil ||
		lock.Annotations[runtime.AnnotationChoice] == "" {
		return ""
	}
	choice, err := runtime.ParseChoice(lock.Annotations[runtime.AnnotationChoice], runtime.Process)
	if err != nil {
		return ""
	}
	return choice.Of(runs.of.PackageKind(), runs.of.GetName())
}

// logged is a runtime with a log: the name of its process on this machine, and its Deployment in a cluster.
type logged struct {
	process, namespace, deployment string
	// of is the package with the runtime, or nil for an object of the first generation.
	of v1.Package
}

// former returns the last healthy revision if that is not the one whose runtime should run, or "". Its runtime runs
// until the other one can be started.
func (l logged) former() string {
	if l.of == nil || l.of.PackageStatus().LastHealthyRevision == l.process {
		return ""
	}
	return l.of.PackageStatus().LastHealthyRevision
}

// find returns the program of the package, or of the object of the first generation, with the name.
func (c *LogsCmd) find(env *terminal.Env) (logged, error) {
	ctx := env.Context
	cluster, err := c.Client(ctx)
	if err != nil {
		return logged{}, err
	}
	name := inventory.Name(c.Name)
	if inventory.IsObjectName(name) {
		return c.findOf(ctx, cluster, env.Frontend, name)
	}
	return c.findPackage(ctx, cluster, name)
}

// findPackage returns the program of the package with a name.
func (c *LogsCmd) findPackage(ctx context.Context, cluster client.Client, name inventory.Name) (logged, error) {
	all, err := inventory.LoadPackages(ctx, cluster)
	if err != nil {
		return logged{}, err
	}
	p, err := all.Find(name)
	if err != nil {
		return logged{}, err
	}
	return c.ofPackage(p)
}

// findOf returns the program of an object of the first generation: that of its Package, unless a Provider runs it.
// Without a Provider, permissions in the namespace of the object are sufficient.
func (c *LogsCmd) findOf(
	ctx context.Context, cluster client.Client, api *frontend.API, name inventory.Name,
) (logged, error) {
	o, err := inventory.ReadObject(ctx, cluster, api, name)
	if err != nil {
		return logged{}, err
	}
	record, err := api.RecordOf(ctx, cluster, o)
	if err != nil {
		return logged{}, apiserver.Classify(err, "read the record of %s", name)
	}
	if record == nil {
		record = o
	}
	switch by := record.Controller; {
	case by == nil && !record.IsInstall && !record.HasController:
		return logged{}, ErrNoLogs.New(nil, "%s has no controller", name)
	case by == nil:
		return logged{}, ErrNoLogs.New(errors.New(o.GetCondition(v1.TypeReady).Message), "%s runs no controller yet", name).
			WithDo("Check with `xpkg list` whether it is ready.")
	case by.Kind == v1.ProviderKind:
		return c.findPackage(ctx, cluster, inventory.Name(path.Join(v1.ProviderKind, by.Name)))
	}
	owner := plan.Owner{Namespace: record.GetNamespace(), Name: record.GetName()}
	return logged{runtime.ProcessName(owner), record.Controller.Namespace, record.Controller.Name, nil}, nil
}

// ofPackage returns the program of the revision whose runtime runs: the active one, which is not the newest after a
// rollback or before a manual activation. While the active one waits for permissions, it is the last healthy one.
func (c *LogsCmd) ofPackage(p v1.Package) (logged, error) {
	status := p.PackageStatus()
	revision := cmp.Or(status.LastHealthyRevision, status.CurrentRevision)
	if a := status.Activation; a != nil {
		revision = a.Revision
	}
	switch {
	case p.PackageKind() == v1.ConfigurationKind:
		return logged{}, ErrNoLogs.New(nil, "%s is a Configuration, which has no runtime", c.Name)
	case revision == "":
		return logged{}, ErrNoLogs.New(nil, "%s has no revision yet", c.Name)
	}
	return logged{revision, c.Namespace, revision, p}, nil
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
func (c *LogsCmd) elsewhere(runs logged) error {
	words := []string{"kubectl", "logs", "deployment/" +
		runs.deployment, "--namespace", wording.ShellWord(runs.namespace), "--container", manifests.Container}
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
