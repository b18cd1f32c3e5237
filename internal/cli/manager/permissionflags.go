package manager

import (
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/permission"
)

// PermissionFlags say how programs of packages get their rights.
type PermissionFlags struct {
	PackagePermissions string `enum:"Manage,Ignore" default:"Manage" placeholder:"Manage|Ignore" help:"Whether the manager gives programs of packages their rights, or leaves that to somebody else: Manage (the default) or Ignore."`
	PermissionCeiling  string `placeholder:"FILE|configmap/NAME" help:"The most that packages may request, as a file or as a ConfigMap of the namespace."`
	PermissionIncrease string `enum:"Allow,Approve" default:"Allow" placeholder:"Allow|Approve" help:"What becomes of a version that asks for more rights than the one before it: Allow (the default) gives them, Approve waits for xpkg approve."`
	Namespaced         bool   `help:"Give programs rights in their namespace only, but for what lies in none."`
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
