package packages

import (
	"cmp"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/content"
	"github.com/xpkg-dev/xpkg/internal/cli/report"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/operation"
	"github.com/xpkg-dev/xpkg/internal/permission"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/version"
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
	*operation.Engine
	*planner.Planner
	// Options are what the command assumes and decides for its plans.
	planner.Options
	source *content.LazySource
}

// open returns a planner for a cluster.
func (f planFlags) open(env *terminal.Env, c connection.ClusterFlags) (*clusterPlanner, error) {
	cfg, engine, err := connect(env, c)
	if err != nil {
		return nil, err
	}
	objects, err := planner.NewCluster(rest.AddUserAgent(rest.CopyConfig(cfg), "xpkg/"+version.Version))
	if err != nil {
		return nil, connection.ErrKubeconfig.New(err, "cannot use the kubeconfig")
	}
	source := &content.LazySource{Flags: f.ContentFlags, Indexes: f.KindIndexFlag}
	pl := &planner.Planner{
		Reader: engine.Client, Cluster: objects, Source: source, Frontend: env.Frontend, Images: source,
		DryRun: client.NewDryRunClient(engine.Client), Registry: source, Kinds: source.Finder(f.KindIndexFlag),
		Namespace: f.Namespace, Identify: true, PermissionPolicy: permission.ParsePolicySource(f.PermissionPolicy),
	}
	pl.Kinds.Crossplane, pl.Kinds.Held = pl.CrossplaneConstraints, pl.HeldKinds
	engine.Planner = pl
	return &clusterPlanner{Engine: engine, Planner: pl, source: source}, nil
}

// newEngine returns the engine of a cluster without a planner.
func newEngine(env *terminal.Env, c connection.ClusterFlags) (*operation.Engine, error) {
	_, engine, err := connect(env, c)
	return engine, err
}

// connect returns the configuration of the clients of a cluster, and an engine without a planner.
func connect(env *terminal.Env, c connection.ClusterFlags) (*rest.Config, *operation.Engine, error) {
	cfg, err := c.Config(env.Context)
	if err != nil {
		return nil, nil, err
	}
	cluster, err := connection.NewClient(cfg)
	if err != nil {
		return nil, nil, err
	}
	objects, err := apply.NewCluster(cfg)
	if err != nil {
		return nil, nil, connection.ErrKubeconfig.New(err, "cannot use the kubeconfig")
	}
	return cfg,
		&operation.Engine{Client: cluster, Frontend: env.Frontend, Objects: objects, Reporter: report.To(env.Stderr)}, nil
}

// assume sets what plans assume about the manager, and the consents of the user.
func (p *clusterPlanner) assume(f foreseenUpgradesFlag, c consents) {
	p.Upgrades, p.AllowWebhooks, p.AdoptObjects = f.DependencyUpgrades, c.AllowWebhooks, c.Adopt
	p.AcceptBreaks = c.accepted()
}

func (p *clusterPlanner) close() error { return p.source.Close() }

// printNotes prints the warnings of plans that are not shown, and names the objects that they do not install.
func printNotes(env *terminal.Env, plans ...*planner.Plan) {
	var notes []string
	for _, p := range plans {
		for _, text := range p.UnusualWarnings() {
			notes = append(notes, p.Package.Short()+": "+text)
		}
		notes = append(notes, leftOut(p)...)
	}
	view.Notes(env.Stderr, notes...)
}

// leftOut describes the objects that a plan does not install.
func leftOut(p *planner.Plan) (notes []string) {
	for _, l := range p.AllLeftOut() {
		notes = append(notes, l.String())
	}
	return notes
}

// atomicFlag makes a command undo its changes if it fails.
type atomicFlag struct {
	Atomic bool `help:"Have the manager make all changes as one transaction: if a package is not healthy within the time of --wait, which is 5m by default, it returns all packages to their former state, except new ones with custom resources or dependents, and versions that another package requires."`
}

// limit returns the time to wait for a package; 0 means not to wait.
func (f atomicFlag) limit(wait time.Duration) time.Duration {
	if f.Atomic {
		return cmp.Or(wait, operation.TransactionDeadline)
	}
	return wait
}
