package manager

import (
	"time"

	"github.com/xpkg-dev/xpkg/internal/bootstrap"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/version"
)

// BootstrapCmd implements `xpkg bootstrap`.
type BootstrapCmd struct {
	Namespace         string              `default:"crossplane-system" help:"Namespace of the manager and of runtimes."`
	Image             string              `placeholder:"IMAGE" help:"Image of the manager. Default is the image of this version."`
	ImagePullSecret   []string            `placeholder:"NAME" help:"Secret of the namespace with credentials for the image. Can be given more than once."`
	Replicas          int32               `default:"2" help:"Number of replicas (leader-elected)."`
	CacheClaim        string              `placeholder:"NAME" help:"PersistentVolumeClaim for the package cache. Default is an emptyDir volume."`
	ManagerArg        []string            `placeholder:"ARG" help:"Further argument of xpkg manager, for example --manager-arg=--poll-interval=5m. Can be given more than once."`
	NetworkPolicy     bool                `default:"true" negatable:"" help:"Create a NetworkPolicy that only allows scraping metrics."`
	PackageGroup      []string            `placeholder:"GROUP" help:"API group for whose resources runtimes get permissions without approval; * lets the manager grant any permission. Can be given more than once."`
	PermissionPolicy  string              `placeholder:"NAME" help:"ConfigMap of the namespace with the policy for requested permissions."`
	Namespaced        bool                `help:"Restrict namespaced permissions of the manager and of runtimes to the namespace."`
	DependencyRemoval graph.RemovalPolicy `enum:"None,Orphans" default:"None" help:"Garbage-collect unneeded dependencies: None keeps them, Orphans removes them."`
	Apply             bool                `help:"Apply the manifests to the cluster instead of printing them."`
	TakeOver          bool                `help:"With --apply, replace the package API of another package manager, which must not run any more."`
	Wait              time.Duration       `short:"w" placeholder:"DURATION" help:"With --apply, wait this long, such as 2m, until the manager is available."`
	Output            string              `short:"o" enum:"yaml,json" default:"yaml" placeholder:"yaml|json" help:"Output format: yaml or json."`
	connection.ClusterFlags
}

// Run prints or applies the manifests of the manager.
func (c *BootstrapCmd) Run(env *terminal.Env) error {
	if c.Replicas < 1 {
		return bootstrap.ErrOption.New(nil, "--replicas is %d; the minimum is 1", c.Replicas)
	}
	objects, err := bootstrap.Manifests(bootstrap.Options{
		Namespace: c.Namespace, Image: c.Image, Version: version.Version, ImagePullSecrets: c.ImagePullSecret, Replicas: c.Replicas,
		PackageGroups: c.PackageGroup, PermissionPolicy: c.PermissionPolicy, Namespaced: c.Namespaced, RemoveOrphans: c.DependencyRemoval == graph.RemoveOrphans,
		CacheClaim: c.CacheClaim, Args: c.ManagerArg, NoNetworkPolicy: !c.NetworkPolicy,
	})
	if err != nil {
		return err
	}
	plain := make([]map[string]any, len(objects))
	for i, o := range objects {
		if plain[i], err = bootstrap.Plain(o); err != nil {
			return err
		}
	}
	if c.Apply {
		return c.apply(env, plain)
	}
	return terminal.PrintManifests(env.Stdout, c.Output, plain)
}
