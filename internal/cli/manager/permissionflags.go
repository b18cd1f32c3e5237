package manager

import (
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/permission"
)

// PermissionFlags say how programs of packages get their rights.
type PermissionFlags struct {
	PackagePermissions string `enum:"Manage,Ignore" default:"Manage" placeholder:"Manage|Ignore" help:"Whether the manager grants permissions to runtimes: Manage (the default) or Ignore."`
	PermissionCeiling  string `placeholder:"FILE|configmap/NAME" help:"Policy for requested permissions: a file, or a ConfigMap of the namespace."`
	PermissionIncrease string `enum:"Allow,Approve" default:"Allow" placeholder:"Allow|Approve" help:"What to do when a new version requests more permissions: Allow (the default) grants them, Approve waits for xpkg approve."`
	Namespaced         bool   `help:"Grant runtimes namespaced permissions in their namespace only."`
}

// Permissions are those of the manager, or nil when somebody else gives rights.
func (f PermissionFlags) Permissions() *controller.Permissions {
	if f.PackagePermissions == "Ignore" {
		return nil
	}
	return &controller.Permissions{
		Ceiling: permission.ParseCeilingSource(f.PermissionCeiling), Increase: controller.IncreasePolicy(f.PermissionIncrease), Namespaced: f.Namespaced,
	}
}
