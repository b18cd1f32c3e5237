package manager

import (
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/permission"
	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
)

// PermissionFlags configures the permissions of package runtimes.
type PermissionFlags struct {
	PackagePermissions    string   `enum:"Manage,Ignore" default:"Manage" placeholder:"Manage|Ignore" help:"Whether the manager grants permissions to runtimes: Manage (the default) or Ignore."`
	PermissionPolicy      string   `placeholder:"FILE|configmap/NAME" help:"Policy for requested permissions: a file, or a ConfigMap of the namespace."`
	PermissionIncrease    string   `enum:"Allow,Approve" default:"Allow" placeholder:"Allow|Approve" help:"What to do when a new version requests more permissions: Allow (the default) grants them, Approve waits for xpkg approve."`
	AllowRuntimePrivilege []string `sep:"," placeholder:"NAME,..." complete:"privilege" help:"Privileges that runtime configurations may use: HostNetwork, HostPID, HostIPC, HostPath, Privileged, Capabilities, ServiceAccount (one that xpkg did not create), Certificates (those of other packages), or *. Default is none."`
	Namespaced            bool     `help:"Grant runtimes namespaced permissions in their namespace only."`
}

// Privileges returns the privileges that runtime configurations can use.
func (f PermissionFlags) Privileges() ([]manifests.Privilege, error) {
	out, err := manifests.ParsePrivileges(f.AllowRuntimePrivilege)
	if err != nil {
		return nil, terminal.ErrUsage.New(err, "cannot read --allow-runtime-privilege")
	}
	return out, nil
}

// Permissions returns the settings of the manager, or nil if another program manages permissions.
func (f PermissionFlags) Permissions() *controller.Permissions {
	if f.PackagePermissions == "Ignore" {
		return nil
	}
	return &controller.Permissions{
		Policy: permission.ParsePolicySource(f.PermissionPolicy), Increase: controller.IncreasePolicy(f.PermissionIncrease),
		Namespaced: f.Namespaced,
	}
}
