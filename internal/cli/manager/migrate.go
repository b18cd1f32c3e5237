package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/apiserver"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/migration"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// MigrateFlags are the flags of both directions of a migration.
type MigrateFlags struct {
	Wait   time.Duration `short:"w" default:"10m" placeholder:"DURATION" help:"Time limit of each step. Default is 10m."`
	DryRun bool          `help:"Show the plan without carrying it out. Exits with code 2 if there are steps to carry out."`
	terminal.ConsentFlag
	connection.ClusterFlags
	view.OutputFlag
}

// Connect returns the configuration and a client of the cluster.
func (f MigrateFlags) Connect(ctx context.Context) (*rest.Config, client.Client, error) {
	cfg, err := f.Config(ctx)
	if err != nil {
		return nil, nil, err
	}
	cluster, err := clusterClient(cfg)
	return cfg, cluster, apiserver.Classify(err, "reach the cluster")
}

// Migrate prints a plan, asks for consent, and carries out the steps that are not done.
func (f MigrateFlags) Migrate(env *terminal.Env, planned func(context.Context) (*migration.Plan, error)) error {
	plan, err := planned(env.Context)
	if err != nil {
		return classify(err, "plan the migration")
	}
	command := commandLine(env) // It continues after a failure.
	switch pending := plan.Pending(); {
	case f.DryRun || pending == 0:
		if err := f.Print(env.Stdout, plan, plan.WriteText); err != nil || pending == 0 {
			return err
		}
		return terminal.ChangesPending
	case f.Yes:
	default:
		plan.WriteText(env.Stderr)
		err := f.Consent(env, "carry out "+wording.Count(pending, "step"))
		if errors.Is(err, terminal.ErrNotConfirmed) {
			return errcode.From(err).WithDo("Review the plan above, then run `%s --yes`.", command)
		}
		if err != nil {
			return err
		}
	}
	if err := f.run(env, plan, command); err != nil {
		return err
	}
	return f.Print(env.Stdout, plan, func(w io.Writer) { view.Notes(w, plan.Notes...) })
}

// run carries out the steps, and prints each when it is done.
func (f MigrateFlags) run(env *terminal.Env, plan *migration.Plan, command string) error {
	progress := terminal.NewProgress(env.Stderr)
	defer progress.End()
	err := plan.Run(env.Context, f.Wait, progress.Set, func(s *migration.Step) error {
		progress.End()
		if f.Output != "" {
			return nil
		}
		if _, err := fmt.Fprintf(env.Stdout, "done: %s\n", terminal.Safe(s.Title)); err != nil {
			return err
		}
		for _, d := range s.Details {
			if _, err := fmt.Fprintf(env.Stdout, "   - %s\n", terminal.Safe(d)); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil || errors.Is(err, context.Canceled) {
		return cmp.Or(err, env.Context.Err())
	}
	failure := errcode.From(classify(err, "migrate"))
	return failure.Also("Then run `%s` again: it continues with this step.", command)
}

// classify returns an error with a code for an error of the cluster.
func classify(err error, what string) error {
	if errcode.Known(err) {
		return err
	}
	return apiserver.Classify(err, "%s", what)
}

// commandLine returns the command line of a command without the flags that choose between a plan and its execution.
func commandLine(env *terminal.Env) string {
	words := []string{"xpkg"}
	for i, arg := range env.Args {
		if i == 0 && arg == "xpkg" {
			continue // The Crossplane CLI has its package commands below `xpkg`.
		}
		if arg != "--dry-run" && arg != "--yes" && arg != "-y" {
			words = append(words, wording.ShellWord(arg))
		}
	}
	return strings.Join(words, " ")
}
