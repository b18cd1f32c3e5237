package packages

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apiserver"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/content"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/permission"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/version"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// planFlags configures access to content for plans.
type planFlags struct {
	content.ContentFlags
	content.KindIndexFlag
	Namespace        string `default:"crossplane-system" config:"" help:"Namespace of the manager, which contains the pull secrets."`
	PermissionPolicy string `placeholder:"FILE|configmap/NAME" help:"Policy for requested permissions that the manager uses: a file, or a ConfigMap of the namespace."`
}

// clusterPlanner computes plans until it is closed.
type clusterPlanner struct {
	*planner.Planner
	client client.Client
	source *content.LazySource
}

// open returns a planner for a cluster.
func (f planFlags) open(ctx context.Context, c connection.ClusterFlags) (*clusterPlanner, error) {
	cfg, err := c.Config(ctx)
	if err != nil {
		return nil, err
	}
	cluster, err := c.Client(ctx)
	if err != nil {
		return nil, err
	}
	objects, err := planner.NewCluster(rest.AddUserAgent(rest.CopyConfig(cfg), "xpkg/"+version.Version))
	if err != nil {
		return nil, connection.ErrKubeconfig.New(err, "cannot use the kubeconfig")
	}
	source := &content.LazySource{Flags: f.ContentFlags, Indexes: f.KindIndexFlag}
	pl := &planner.Planner{
		Reader: cluster, Cluster: objects, Source: source, Images: source, DryRun: client.NewDryRunClient(cluster), Registry: source, Kinds: source.Finder(f.KindIndexFlag), Namespace: f.Namespace, Identify: true, PermissionPolicy: permission.ParsePolicySource(f.PermissionPolicy),
	}
	pl.Kinds.Crossplane, pl.Kinds.Held = pl.CrossplaneConstraints, pl.HeldKinds
	return &clusterPlanner{Planner: pl, client: cluster, source: source}, nil
}

// clone returns a planner whose settings can be changed. It must not be closed.
func (p *clusterPlanner) clone() *clusterPlanner {
	settings := *p.Planner
	return &clusterPlanner{Planner: &settings, client: p.client, source: p.source}
}

func (p *clusterPlanner) close() error { return p.source.Close() }

// planError returns the error of a failed plan with its code.
func planError(err error, what string) error {
	var known *errcode.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	return apiserver.Classify(err, "cannot plan to %s", what)
}

// isPlanUnavailable reports whether a plan failed because this command lacks access that
// the manager may have: the network, the credentials or the package cache.
func isPlanUnavailable(err error, want v1.Package) bool {
	if err == nil || errors.Is(err, apiserver.ErrCluster) {
		return false
	}
	switch errcode.From(err).Code.Class.Name {
	case errcode.Unavailable.Name, errcode.Unauthorized.Name:
		return true
	case errcode.NotFound.Name:
		return want != nil && want.PackageSpec().PackagePullPolicy == corev1.PullNever
	}
	return false
}

// printPlanUnavailable prints the reason why no plan is shown.
func printPlanUnavailable(env *terminal.Env, err error) {
	fmt.Fprintf(env.Stderr, "the plan cannot be computed here: %s\n", terminal.Safe(err.Error()))
}
