package packages

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/selection"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// ErrStorageNotMigrated is the code for a migration that some CRDs did not complete.
var ErrStorageNotMigrated = errcode.Code{
	Name: "StorageNotMigrated", Class: errcode.Conflict,
	Cause: "Custom resources could not be rewritten in the storage version of their CRD.",
	Fix:   "Correct the errors in the output, and run the command again: it continues with the CRDs that remain.",
}

// migrationsAtOnce is the maximum number of concurrent migrations.
const migrationsAtOnce = 8

// MigrateStorageCmd implements `xpkg migrate-storage`.
type MigrateStorageCmd struct {
	Package []string `arg:"" optional:"" complete:"package" help:"Packages whose CRDs are migrated, as NAME, KIND/NAME or KIND NAME."`
	CRD     []string `name:"crd" placeholder:"NAME" help:"Migrate this CRD. Can be given more than once."`
	All     bool     `help:"Migrate the CRDs of all packages."`
	DryRun  bool     `help:"Count the custom resources without rewriting them."`
	// DropFields is the consent to the loss of fields.
	DropFields bool `help:"Also rewrite custom resources with fields that the storage version does not describe. The API server drops these fields."`
	connection.ClusterFlags
	view.OutputFlag
}

// migration is the result for one CRD.
type migration struct {
	apply.Migration
	Error string `json:"error,omitempty"`
}

// Run rewrites the custom resources of CRDs in their storage versions. A failure of one CRD does not stop the others.
func (c *MigrateStorageCmd) Run(env *terminal.Env) error {
	if c.All == (len(c.Package)+len(c.CRD) > 0) {
		return terminal.ErrUsage.New(nil, "no CRDs to migrate are given").
			WithDo("Name packages, or CRDs with --crd, or pass --all.")
	}
	cfg, err := c.Config(env.Context)
	if err != nil {
		return err
	}
	cluster, err := apply.NewCluster(cfg)
	if err != nil {
		return err
	}
	names, err := c.selectCRDs(env.Context, cluster)
	if err != nil {
		return err
	}
	results := c.migrate(env, cluster, names)
	failed := 0
	for _, r := range results {
		if r.Error != "" {
			failed++
		}
	}
	if failed > 0 && env.Context.Err() != nil {
		return errcode.ErrInterrupted.New(
			nil, "stopped after %d of %s", len(results)-failed, wording.Count(len(results), "CRD"),
		).
			WithDo("Run the same command again: it continues with the CRDs that remain.")
	}
	if err := c.Print(env.Stdout, results, func(w io.Writer) { c.writeMigrations(w, results) }); err != nil {
		return err
	}
	if failed > 0 {
		return ErrStorageNotMigrated.New(nil, "%s of %d not migrated", wording.Count(failed, "CRD"), len(results))
	}
	return nil
}

// migrate migrates CRDs, and returns the results in their order. It starts no further migrations if the API
// server does not respond.
func (c *MigrateStorageCmd) migrate(env *terminal.Env, cluster *apply.Cluster, names []string) []migration {
	results := make([]migration, len(names))
	task := terminal.StartTask(env.Stderr, "migrating CRDs to their storage versions")
	defer task.End()
	var done, rewritten atomic.Int64
	step := func() {
		details := ""
		if n := rewritten.Load(); n > 0 {
			details = ", " + wording.Count(int(n), "custom resource") + " rewritten"
		}
		task.Step(int(done.Load()), len(names), details)
	}
	o := apply.MigrationOptions{DryRun: c.DryRun, DropFields: c.DropFields, OnRewrite: func() { rewritten.Add(1); step() }}
	var unreachable atomic.Bool
	var group errgroup.Group
	group.SetLimit(migrationsAtOnce)
	for i, name := range names {
		group.Go(func() error {
			if unreachable.Load() {
				results[i] = migration{apply.Migration{CRD: name}, "not tried, because the API server did not respond"}
				return nil
			}
			m, err := cluster.MigrateStorage(env.Context, name, o)
			results[i] = migration{Migration: m}
			if err != nil {
				results[i].Error = errcode.Message(err)
				unreachable.Store(unreachable.Load() || apply.IsUnreachable(err))
			}
			if env.Context.Err() == nil {
				done.Add(1)
				step()
			}
			return nil
		})
	}
	_ = group.Wait() // The functions return no error.
	return results
}

// selectCRDs returns the names of the CRDs to migrate.
func (c *MigrateStorageCmd) selectCRDs(ctx context.Context, cluster *apply.Cluster) ([]string, error) {
	names := slices.Clone(c.CRD)
	if c.All || len(c.Package) > 0 {
		_, all, err := selection.Read(ctx, c.ClusterFlags, inventory.LoadPackages)
		if err != nil {
			return nil, err
		}
		var selected []v1.Package
		for _, name := range c.Package {
			p, err := all.Find(inventory.Name(name))
			if err != nil {
				return nil, err
			}
			selected = append(selected, p)
		}
		owned, err := cluster.CRDs(ctx, func(o metav1.OwnerReference) bool {
			group, _, _ := strings.Cut(o.APIVersion, "/")
			return group == v1.Group && (c.All && v1.KindNamed(o.Kind) != "" ||
				slices.ContainsFunc(
					selected, func(p v1.Package) bool { return o.Kind == p.PackageKind() && o.Name == p.GetName() },
				))
		})
		if err != nil {
			return nil, err
		}
		names = append(names, owned...)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// writeMigrations writes a table of the CRDs that need a migration or failed.
func (c *MigrateStorageCmd) writeMigrations(w io.Writer, results []migration) {
	var rows [][]string
	for _, m := range results {
		if len(m.Former) == 0 && m.Error == "" {
			continue
		}
		state := "migrated"
		switch {
		case m.Error != "":
			state = m.Error
		case c.DryRun:
			state = "would be migrated"
		}
		rows = append(rows, []string{m.CRD, strings.Join(m.Former, ","), m.Storage, fmt.Sprint(m.Resources), state})
	}
	if len(rows) > 0 {
		view.WriteTable(w, []string{"CRD", "FROM", "TO", "CUSTOM RESOURCES", "STATE"}, rows)
	}
	if left := len(results) - len(rows); left > 0 {
		fmt.Fprintf(w, "%s up to date\n", wording.Count(left, "CRD"))
	}
}
