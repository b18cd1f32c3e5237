package manager

import (
	"cmp"

	"github.com/xpkg-dev/xpkg/internal/cli/content"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/migration/fromcore"
)

// MigrateCmd implements `xpkg migrate`.
type MigrateCmd struct {
	FromCore migrateFromCoreCmd `cmd:"" help:"Move the packages that Crossplane installed to the manager. Crossplane goes on composing resources."`
	ToCore   migrateToCoreCmd   `cmd:"" help:"Move the packages back to Crossplane, and remove the manager."`
}

// migrateFromCoreCmd implements `xpkg migrate from-core`.
type migrateFromCoreCmd struct {
	ManagerFlags
	MigrateFlags
	content.ContentFlags
}

// Run moves the packages of the cluster to the manager.
func (c *migrateFromCoreCmd) Run(env *terminal.Env) (err error) {
	options, err := c.Options(env.Context, nil)
	if err != nil {
		return err
	}
	cfg, cluster, err := c.Connect(env.Context)
	if err != nil {
		return err
	}
	source := &content.LazySource{Flags: c.ContentFlags}
	defer func() { err = cmp.Or(err, source.Close()) }()
	m := &fromcore.Migration{Config: cfg, Client: cluster, Content: source, Manager: options}
	return c.Migrate(env, m.Plan)
}
