package manager

import (
	"github.com/xpkg-dev/xpkg/internal/apiserver"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/migration/tocore"
)

// migrateToCoreCmd implements `xpkg migrate to-core`.
type migrateToCoreCmd struct {
	Namespace string `default:"crossplane-system" help:"Namespace of the manager and of Crossplane."`
	migrateFlags
}

// Run moves the packages of the cluster back to Crossplane core, and removes the manager.
func (c *migrateToCoreCmd) Run(env *terminal.Env) error {
	cfg, err := c.Config(env.Context)
	if err != nil {
		return err
	}
	cluster, err := clusterClient(cfg)
	if err != nil {
		return apiserver.Classify(err, "reach the cluster")
	}
	plan, err := tocore.Plan(env.Context, tocore.Options{Client: cluster, Namespace: c.Namespace})
	if err != nil {
		return classify(err, "plan the migration")
	}
	return c.migrate(env, plan, commandLine(env))
}
