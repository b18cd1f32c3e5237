package cli

import (
	"errors"
	"fmt"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// contentFlags say how packages are read through the package cache.
type contentFlags struct {
	cacheFlags
	Insecure []string `placeholder:"HOST" help:"Registry to speak to in plain HTTP, without TLS. Registries on this machine are spoken to that way anyhow."`
	CAFile   []string `name:"ca-file" placeholder:"HOST=FILE" help:"Certificate authorities (PEM) to trust for a registry in place of the system's."`
}

// planFlags say how a plan reads content.
type planFlags struct {
	contentFlags
	Namespace         string `default:"crossplane-system" help:"Namespace of the package manager, where pull secrets are."`
	PermissionCeiling string `placeholder:"FILE|configmap/NAME" help:"The most that packages may request, as the package manager was told: a file, or a ConfigMap of the namespace."`
}

// clusterPlanner makes plans until it is closed.
type clusterPlanner struct {
	*planner.Planner
	client client.Client
	source *lateSource
}

// open makes a planner for a cluster.
func (f planFlags) open(c clusterFlags) (*clusterPlanner, error) {
	cfg, err := c.config()
	if err != nil {
		return nil, err
	}
	cluster, err := c.client()
	if err != nil {
		return nil, err
	}
	objects, err := planner.NewCluster(rest.AddUserAgent(rest.CopyConfig(cfg), "xpkg/"+Version))
	if err != nil {
		return nil, ErrKubeconfig.New(err, "cannot use the kubeconfig")
	}
	source := &lateSource{flags: f.contentFlags}
	return &clusterPlanner{
		Planner: &planner.Planner{
			Reader: cluster, Cluster: objects, Source: source, Registry: source, Namespace: f.Namespace, Ceiling: ceilingSource(f.PermissionCeiling),
		},
		client: cluster, source: source,
	}, nil
}

func (p *clusterPlanner) close() error { return p.source.close() }

// planFailed turns what kept a plan from being made into a failure.
func planFailed(err error, what string) error {
	var known *errcode.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	return classify(err, "cannot plan to %s", what)
}

// unseen reports whether a plan could not be made because of where this command
// runs: the package manager may have the way and the credentials that it lacks.
func unseen(err error) bool {
	if err == nil {
		return false
	}
	switch errcode.From(err).Code.Class.Name {
	case errcode.Unavailable.Name, errcode.Unauthorized.Name:
		return !errors.Is(err, ErrCluster)
	}
	return false
}

// noPlan tells why no plan is shown.
func (e *Env) noPlan(err error) {
	fmt.Fprintf(e.Stderr, "no plan can be shown: %s\n", safe(err.Error()))
}
