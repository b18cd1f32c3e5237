package manager

import (
	"context"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/xpkg-dev/xpkg/internal/bootstrap"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/content"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/crossplane"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/version"
)

// ManagerFlags are the settings of the manager in a cluster.
type ManagerFlags struct {
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
	FirstGeneration   bool                `help:"Serve the API packages.crossplane.io of the first generation of packages. It allows the manager to run controllers in every namespace."`
	IndexKey          string              `placeholder:"FILE" help:"File with public keys (PEM), of which one must have signed each index. It is embedded in the manifests."`
	Index             []string            `sep:" " placeholder:"REF[,PRIORITY]" help:"Index in which the manager finds packages for install objects that name a kind (spec.crd); repeat it for several. The index with the highest priority comes first; the default is 0."`
	DependencyRemoval graph.RemovalPolicy `enum:"None,Orphans" default:"None" help:"Garbage-collect unneeded dependencies: None keeps them, Orphans removes them."`
}

// Options returns the options of the manifests for a manager beside Crossplane core with these ServiceAccounts. There
// are none without core.
func (f ManagerFlags) Options(ctx context.Context, core []types.NamespacedName) (bootstrap.Options, error) {
	if f.Replicas < 1 {
		return bootstrap.Options{}, bootstrap.ErrOption.New(nil, "--replicas is %d; the minimum is 1", f.Replicas)
	}
	for _, index := range f.Index {
		if _, _, _, err := content.ParseIndex(index); err != nil {
			return bootstrap.Options{}, err
		}
	}
	keys, err := f.indexKeys(ctx)
	if err != nil {
		return bootstrap.Options{}, err
	}
	return bootstrap.Options{
		Namespace: f.Namespace, Image: f.Image, Version: version.Version, ImagePullSecrets: f.ImagePullSecret,
		Replicas:      f.Replicas,
		PackageGroups: f.PackageGroup, PermissionPolicy: f.PermissionPolicy, Namespaced: f.Namespaced,
		RemoveOrphans: f.DependencyRemoval == graph.RemoveOrphans, FirstGeneration: f.FirstGeneration,
		Indexes: f.Index, IndexKeys: keys,
		CacheClaim: f.CacheClaim, Args: f.ManagerArg, NoNetworkPolicy: !f.NetworkPolicy, CoreAccounts: core,
	}, nil
}

// indexKeys returns the content of the file with the keys of indexes, or "" without one.
func (f ManagerFlags) indexKeys(ctx context.Context) (string, error) {
	if f.IndexKey == "" {
		return "", nil
	}
	text, _, err := content.ReadIndexKeys(ctx, f.IndexKey)
	if err != nil {
		return "", err
	}
	return string(text), nil
}

// BootstrapCmd implements `xpkg bootstrap`.
type BootstrapCmd struct {
	ManagerFlags
	BesideCore  bool              `help:"Run beside Crossplane core: also print the policy that denies core writes of packages."`
	CoreAccount []string          `placeholder:"NAMESPACE/NAME" help:"With --beside-core, ServiceAccount of core. Default is crossplane in the namespace of the manager. Can be given more than once."`
	CoreValues  bool              `help:"With --beside-core, print the values for the Helm chart of Crossplane instead of the manifests."`
	Apply       bool              `help:"Apply the manifests to the cluster instead of printing them."`
	TakeOver    bool              `help:"With --apply, replace the package API of another package manager, which must not run any more."`
	Wait        time.Duration     `short:"w" placeholder:"DURATION" help:"With --apply, wait this long, such as 2m, until the manager is available."`
	Output      view.ObjectFormat `short:"o" default:"yaml" placeholder:"FORMAT" complete:"object-format" help:"Output format: yaml, json, or jsonpath= and a template. Default is yaml."`
	connection.ClusterFlags
}

// Run prints or applies the manifests of the manager.
func (c *BootstrapCmd) Run(env *terminal.Env) error {
	core, err := c.coreAccounts()
	if err != nil {
		return err
	}
	options, err := c.Options(env.Context, core)
	if err != nil {
		return err
	}
	if c.CoreValues {
		return view.PrintManifests(env.Stdout, c.Output, []map[string]any{crossplane.ChartValues()})
	}
	objects, err := bootstrap.Manifests(options)
	if err != nil {
		return err
	}
	if c.Apply {
		return c.apply(env, objects)
	}
	plain := make([]map[string]any, len(objects))
	for i, o := range objects {
		if plain[i], err = bootstrap.Plain(o); err != nil {
			return err
		}
	}
	return view.PrintManifests(env.Stdout, c.Output, plain)
}

// coreAccounts returns the ServiceAccounts of Crossplane core, or none if the manager does not run beside
// core.
func (c *BootstrapCmd) coreAccounts() ([]types.NamespacedName, error) {
	if !c.BesideCore {
		if len(c.CoreAccount) > 0 || c.CoreValues {
			return nil, bootstrap.ErrOption.New(nil, "--core-account and --core-values require --beside-core")
		}
		return nil, nil
	}
	if c.CoreValues && c.Apply {
		return nil,
			bootstrap.ErrOption.New(nil, "--core-values prints the values for another chart, and cannot be used with --apply")
	}
	if len(c.CoreAccount) == 0 {
		return []types.NamespacedName{{Namespace: c.Namespace, Name: crossplane.DefaultAccount}}, nil
	}
	var out []types.NamespacedName
	for _, account := range c.CoreAccount {
		namespace, name, ok := strings.Cut(account, "/")
		if !ok || len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
			return nil, bootstrap.ErrOption.New(
				nil, "--core-account %.80q is not of the form NAMESPACE/NAME, such as crossplane-system/crossplane", account,
			)
		}
		out = append(out, types.NamespacedName{Namespace: namespace, Name: name})
	}
	return out, nil
}
