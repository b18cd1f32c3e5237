// Package manager contains the commands of the manager: manager and bootstrap.
package manager

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/apiserver"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/bootstrap"
	"github.com/xpkg-dev/xpkg/internal/cache"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/content"
	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/idlememory"
	"github.com/xpkg-dev/xpkg/internal/leader"
	"github.com/xpkg-dev/xpkg/internal/restmapper"
	programs "github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/version"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// DependencyFlags configures the management of dependencies, and of the kinds of providers.
type DependencyFlags struct {
	Kinds              string              `enum:",all,used,on-demand,policies" default:"" placeholder:"all|used|on-demand|policies" help:"Active kinds of providers with the capability safe-start that choose none: all; used, which are those that Compositions, policies and users need; on-demand, which are these and those without which a composite resource fails; or policies, those that policies activate. Default is all for a provider that a user installed, and used for a dependency."`
	DependencyUpgrades graph.Policy        `enum:"None,Upgrade,UpgradeOrDowngrade" default:"None" help:"Policy for changing the version of dependencies when a package requires another one: None, Upgrade or UpgradeOrDowngrade."`
	DependencyRemoval  graph.RemovalPolicy `enum:"None,Orphans" default:"None" help:"Garbage-collect unneeded dependencies: None keeps them, Orphans removes them unless they have custom resources."`
}

// ManagerCmd implements `xpkg manager`.
type ManagerCmd struct {
	connection.ClusterFlags
	flags.RegistryFlags
	flags.CacheLimitFlag
	flags.LimitFlags
	PermissionFlags
	KindFlags
	CacheDir           string        `placeholder:"DIR" env:"XPKG_CACHE_DIR" help:"Folder of the package cache. Default is xpkg/packages in the user's cache folder."`
	Namespace          string        `default:"crossplane-system" help:"Namespace of runtimes and of pull secrets."`
	Unprotected        bool          `help:"Let users delete packages with custom resources, CRDs of packages, active revisions and the namespace of the manager without an answer in an annotation."`
	PollInterval       time.Duration `default:"1m" help:"Interval at which the tags of packages with the pull policy Always are resolved again."`
	SyncInterval       time.Duration `default:"1h" help:"Full resync interval."`
	MetricsAddress     string        `placeholder:"HOST:PORT" help:"Serve Prometheus metrics here."`
	HealthAddress      string        `placeholder:"HOST:PORT" help:"Serve /healthz and /readyz here."`
	ActivationDeadline time.Duration `default:"10m" help:"Time after activation within which a revision that is not healthy, or whose runtime crashes, is rolled back. A negative value disables rollbacks."`
	PackageRuntime     string        `placeholder:"RUNTIME" complete:"runtime" help:"How runtimes run: Deployment, Process, External or None, or pairs such as Provider=External;Function=Deployment. Default is Deployment."`
	CertificateOverlap time.Duration `default:"24h" help:"Time that a new CA is trusted before it signs certificates, and that an old CA stays trusted after its last certificate."`
	DependencyFlags
	CrossplaneVersion string        `placeholder:"VERSION" help:"Version of Crossplane that packages must support. Default is the version of Crossplane in the namespace; without one, every package is accepted."`
	LeaderElection    bool          `help:"Run as a standby while another manager in the same namespace is the leader. Without it, the manager fails while another one works."`
	LeaseDuration     time.Duration `default:"10s" help:"Time after which a manager takes over from another one that does not renew its lease."`
	TakeOver          bool          `help:"Replace the package API of another package manager, which must not run any more."`
	LogFormat         string        `enum:"text,json" default:"text" help:"Log format: text or json."`
}

// Run runs the manager with the API of the first generation until it is stopped.
func (c *ManagerCmd) Run(env *terminal.Env, first controller.Extension) error {
	if c.InsecureSkipTLSVerify {
		return terminal.ErrUsage.New(nil, "--insecure-skip-tls-verify cannot be used with the manager").
			WithDo("Pass the CA of each registry, such as --ca-file registry.example.com=ca.pem.")
	}
	limitMemory(os.Getenv(bootstrap.MemoryLimitVariable), os.Getenv("GOMEMLIMIT"))
	cfg, err := c.managerConfig(env.Context)
	if err != nil {
		return err
	}
	election, err := c.election()
	if err != nil {
		return err
	}
	choice, err := ParseRuntimeChoice(c.PackageRuntime, programs.Deployment, Runtimes)
	if err != nil {
		return err
	}
	privileges, err := c.Privileges()
	if err != nil {
		return err
	}
	if choice.Uses(programs.Process) && c.LeaderElection {
		return terminal.ErrUsage.New(nil, "the runtime Process cannot be used with leader election").
			WithDo("Omit --leader-election, or use the runtime Deployment.")
	}
	dir := c.CacheDir
	if dir == "" {
		dir = flags.DefaultCacheDir()
	}
	// Other managers need the namespace only for the Lease, and create it.
	needsNamespace := choice.Uses(programs.Deployment) || c.LeaderElection
	if needsNamespace {
		if err := checkNamespace(env.Context, cfg, c.Namespace); err != nil {
			return err
		}
	}
	return RunManager(env.Context, ManagerOptions{
		Config: cfg, CacheDir: dir, ProgramsDir: filepath.Join(filepath.Dir(filepath.Clean(dir)), "runtime"),
		CacheLimit: c.CacheLimit, Log: newLog(env.Stderr, c.LogFormat, env.Verbose), registries: c.RegistryFlags,
		limits: c.LimitFlags, Dependencies: c.DependencyFlags, Indexes: c.Index, IndexKey: c.IndexKeyFlag,
		Options: controller.Options{
			Namespace: c.Namespace, Poll: c.PollInterval, Resync: c.SyncInterval, CrossplaneVersion: c.CrossplaneVersion,
			ActivationDeadline: c.ActivationDeadline, Permissions: c.Permissions(),
			MetricsAddress: c.MetricsAddress, HealthAddress: c.HealthAddress, TakeOver: c.TakeOver, LeaderElection: election,
			FirstGeneration: first,
			Remote:          os.Getenv("KUBERNETES_SERVICE_HOST") == "",
			Runtimes:        choice, MakeNamespace: !needsNamespace, CertificateOverlap: c.CertificateOverlap,
			RuntimePrivileges: privileges, Unprotected: c.Unprotected,
		},
	})
}

// ErrNamespaceNotFound is the code for a manager whose namespace does not exist.
var ErrNamespaceNotFound = errcode.Code{
	Name: "NamespaceNotFound", Class: errcode.NotFound,
	Cause: "The namespace of the manager, in which runtimes run and pull secrets are, does not exist.",
	Fix:   "Create the namespace with kubectl, or pass another one with --namespace.",
}

// checkNamespace fails if the namespace of the manager does not exist. A manager without the
// permission to read namespaces is not checked.
func checkNamespace(ctx context.Context, cfg *rest.Config, name string) error {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return err
	}
	cluster, err := client.New(cfg, client.Options{Scheme: scheme, Mapper: restmapper.New(scheme)})
	if err != nil {
		return connection.ErrKubeconfig.New(err, "cannot use the kubeconfig")
	}
	err = cluster.Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{})
	if apierrors.IsNotFound(err) {
		return namespaceNotFound(name)
	}
	return nil
}

func namespaceNotFound(name string) error {
	return ErrNamespaceNotFound.New(nil, "the namespace %s does not exist", name).
		WithDo("Run `kubectl create namespace %s`, or pass another one with --namespace.", wording.ShellWord(name))
}

// leastLease is the minimum duration of a Lease, which allows several renewals.
const leastLease = 5 * time.Second

// election returns the configuration of the leader election. Without --leader-election, the manager fails
// while another one is active.
func (c *ManagerCmd) election() (*leader.Election, error) {
	if c.LeaseDuration < leastLease {
		return nil, terminal.ErrUsage.New(nil, "a lease of %s is too short", c.LeaseDuration).
			WithDo("Set --lease-duration to %s or more.", leastLease)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	// A restarted pod has the same host name.
	return &leader.Election{Identity: host + "_" + rand.Text(), Duration: c.LeaseDuration, Exclusive: !c.LeaderElection},
		nil
}

// managerConfig returns the configuration of the cluster: the identity of the pod if the manager runs in a
// cluster and no kubeconfig is given.
func (c *ManagerCmd) managerConfig(ctx context.Context) (*rest.Config, error) {
	if c.Kubeconfig == "" && os.Getenv("KUBECONFIG") == "" {
		if cfg, err := rest.InClusterConfig(); err == nil {
			return cfg, nil
		}
	}
	return c.Config(ctx)
}

// ManagerOptions holds the settings of a manager.
type ManagerOptions struct {
	Config     *rest.Config
	CacheDir   string
	CacheLimit flags.Amount
	// ProgramsDir is the directory of package runtimes that run as processes.
	ProgramsDir  string
	Log          *slog.Logger
	registries   flags.RegistryFlags
	limits       flags.LimitFlags
	Dependencies DependencyFlags
	Options      controller.Options
	// DataDir is the data directory of a local control plane.
	DataDir string
	// Indexes are the locations of the indexes in which packages are found for kinds.
	Indexes []string
	// IndexKey selects the keys that must have signed the indexes.
	IndexKey content.IndexKeyFlag
	// Core is the Crossplane core that runs beside the manager as a process. It may be nil.
	Core Core
}

// RunManager runs a manager with a package cache in a folder of this machine.
func RunManager(ctx context.Context, o ManagerOptions) (err error) {
	setGCPercent()
	idle, stop := context.WithCancel(ctx)
	defer stop()
	go idlememory.Run(idle)
	packages, err := cache.Open(o.CacheDir, cache.Options{
		Limit: int64(o.CacheLimit), LimitForAll: true, User: cmp.Or(o.DataDir, o.Config.Host),
	})
	if err != nil {
		return err
	}
	defer terminal.Close(&err, packages)
	registries, err := o.registries.Options(ctx, o.limits.ImageLimits(), nil)
	if err != nil {
		return err
	}
	source := fetch.NewSource(fetch.Options{
		Remote: registries, Store: packages.Store(), Names: packages, Limits: o.limits.ImageLimits(),
		FormatLimits: o.limits.StreamLimits(),
	})
	defer source.Close()
	opts := o.Options
	opts.Config = rest.AddUserAgent(rest.CopyConfig(o.Config), "xpkg/"+version.Version)
	opts.Content, opts.Images = source, source
	var closeSources func()
	if opts.KindSources, closeSources, err = o.kindSources(ctx, registries, packages.Store()); err != nil {
		return err
	}
	defer closeSources()
	opts.Dependencies = &controller.Dependencies{
		Registry: source, Upgrades: o.Dependencies.DependencyUpgrades, Removal: o.Dependencies.DependencyRemoval,
	}
	opts.Kinds, opts.InUse, opts.Log = o.Dependencies.Kinds, packages.Use, o.Log
	if opts.Runtimes.Uses(programs.Process) || o.Core != nil {
		processes, roots, all, err := startSupervisor(o.ProgramsDir, source, o.Log)
		if err != nil {
			return err
		}
		defer terminal.Close(&err, all)
		opts.Processes, opts.InUse = processes, pruneWith(packages.Use, roots, o.Core)
		if o.Core != nil {
			coreCtx, stop := context.WithCancel(ctx)
			wait, err := o.Core.Start(coreCtx, &opts, source, roots, processes, o.ProgramsDir)
			if err != nil {
				stop()
				return err
			}
			defer func() { stop(); wait() }()
		}
	}
	err = controller.Run(ctx, opts)
	var known *errcode.Error
	if listen := (*net.OpError)(nil); errors.As(err, &listen) && listen.Op == "listen" {
		return terminal.ErrUsage.New(err, "the manager cannot serve metrics or health checks").
			WithDo("Choose free addresses, such as --metrics-address 127.0.0.1:8080 and --health-address 127.0.0.1:8081.")
	}
	if errors.Is(err, apply.ErrServer) {
		return apiserver.ErrCluster.New(err, "the manager cannot use the cluster")
	}
	if err == nil || errors.As(err, &known) {
		return err
	}
	if status := (apierrors.APIStatus)(nil); errors.As(err, &status) && apierrors.IsNotFound(err) &&
		status.Status().Details != nil && status.Status().Details.Kind == "namespaces" {
		return namespaceNotFound(status.Status().Details.Name)
	}
	return apiserver.Classify(err, "the manager cannot use the cluster")
}

func newLog(w io.Writer, layout string, verbose bool) *slog.Logger {
	opts := &slog.HandlerOptions{Level: slog.LevelInfo}
	if verbose {
		opts.Level = slog.LevelDebug
	}
	if layout == "json" {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}

// setGCPercent reduces the memory of the process at the cost of processor time, because a manager is idle
// most of the time. GOGC in the environment takes precedence.
func setGCPercent() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(40)
	}
}
