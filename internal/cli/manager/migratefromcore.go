package manager

import (
	"cmp"

	"github.com/xpkg-dev/xpkg/internal/apiserver"
	"github.com/xpkg-dev/xpkg/internal/cli/content"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/migration/fromcore"
)

// MigrateCmd implements `xpkg migrate`.
type MigrateCmd struct {
	FromCore migrateFromCoreCmd `cmd:"" help:"Move the packages that Crossplane installed to the manager. Crossplane goes on composing resources."`
	ToCore   migrateToCoreCmd   `cmd:"" help:"Move the packages back to Crossplane, and remove the manager."`

	FirstGeneration migrateFirstGenerationCmd `cmd:"" help:"Move the packages of a package manager of the first generation, with the API packages.crossplane.io or stacks.crossplane.io, to the manager."`
}

// migrateFromCoreCmd implements `xpkg migrate from-core`.
type migrateFromCoreCmd struct {
	managerFlags
	migrateFlags
	content.ContentFlags
}

// Run moves the packages of the cluster to the manager.
func (c *migrateFromCoreCmd) Run(env *terminal.Env) (err error) {
	options, err := c.options(env.Context, nil)
	if err != nil {
		return err
	}
	cfg, err := c.Config(env.Context)
	if err != nil {
		return err
	}
	cluster, err := clusterClient(cfg)
	if err != nil {
		return apiserver.Classify(err, "reach the cluster")
	}
	source := &content.LazySource{Flags: c.ContentFlags}
	defer func() { err = cmp.Or(err, source.Close()) }()
	m := &fromcore.Migration{Config: cfg, Client: cluster, Content: source, Manager: options}
	plan, err := m.Plan(env.Context)
	if err != nil {
		return classify(err, "plan the migration")
	}
	return c.migrate(env, plan, commandLine(env))
}
