package manager

import (
	"context"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/migration"
	"github.com/xpkg-dev/xpkg/internal/migration/tocore"
)

// migrateToCoreCmd implements `xpkg migrate to-core`.
type migrateToCoreCmd struct {
	Namespace string `default:"crossplane-system" help:"Namespace of the manager and of Crossplane."`
	MigrateFlags
}

// Run moves the packages of the cluster back to Crossplane core, and removes the manager.
func (c *migrateToCoreCmd) Run(env *terminal.Env) error {
	_, cluster, err := c.Connect(env.Context)
	if err != nil {
		return err
	}
	return c.Migrate(env, func(ctx context.Context) (*migration.Plan, error) {
		return tocore.Plan(ctx, tocore.Options{Client: cluster, Namespace: c.Namespace})
	})
}
