package cli

import (
	"github.com/xpkg-dev/xpkg/internal/cli/compose"
	"github.com/xpkg-dev/xpkg/internal/cli/controlplane"
	"github.com/xpkg-dev/xpkg/internal/cli/firstgeneration"
	"github.com/xpkg-dev/xpkg/internal/cli/manager"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
)

// managerCmd implements `xpkg manager`.
type managerCmd struct {
	manager.ManagerCmd
	firstgeneration.Flags
}

// Run runs the manager until it is stopped.
func (c *managerCmd) Run(env *terminal.Env) error { return c.ManagerCmd.Run(env, c.Extension()) }

// upCmd implements `xpkg up`.
type upCmd struct {
	controlplane.UpCmd
	firstgeneration.Flags
}

// Run starts a control plane.
func (c *upCmd) Run(env *terminal.Env) error {
	return c.UpCmd.Run(env, c, controlplane.Parts{FirstGeneration: c.Extension, OpenCore: compose.OpenCore})
}

// migrateCmd implements `xpkg migrate`.
type migrateCmd struct {
	manager.MigrateCmd

	FirstGeneration firstgeneration.MigrateCmd `cmd:"" help:"Move the packages of a package manager of the first generation, with the API packages.crossplane.io or stacks.crossplane.io, to the manager."`
}
