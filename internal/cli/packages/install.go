// Package packages contains the commands that change the packages of a cluster: install,
// update, uninstall, autoremove, approve, plan, apply and list.
package packages

import (
	"time"

	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
)

// InstallCmd implements `xpkg install`.
type InstallCmd struct {
	installArgs
	Lock   string        `placeholder:"FILE" help:"Install all packages of this lock file at its digests."`
	Wait   time.Duration `short:"w" placeholder:"DURATION" help:"Wait this long, such as 2m, until the package is healthy."`
	DryRun bool          `help:"Show the changes without making them, like xpkg plan install."`
	atomicFlag
	terminal.ConsentFlag
	connection.ClusterFlags
	planFlags
	view.OutputFlag
}

// Run creates the object that installs a package, or the objects for a lock file.
func (c *InstallCmd) Run(env *terminal.Env) error {
	r := review{
		dryRun: c.DryRun, wait: c.Wait, atomicFlag: c.atomicFlag, ConsentFlag: c.ConsentFlag, ClusterFlags: c.ClusterFlags,
		OutputFlag: c.OutputFlag,
	}
	if c.Lock != "" {
		return c.installLock(env, r, c.planFlags, c.Lock)
	}
	return c.install(env, r, c.planFlags)
}
