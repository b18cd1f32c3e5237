package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/xpkg-dev/xpkg/apis"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/controller/contention"
	"github.com/xpkg-dev/xpkg/internal/controller/packageapi"
	"github.com/xpkg-dev/xpkg/internal/controller/revisions"
	"github.com/xpkg-dev/xpkg/internal/leader"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/restmapper"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// Run runs the manager until ctx ends. While another manager works on the cluster, it stands by, or fails if the
// election is exclusive.
func Run(ctx context.Context, o Options) error {
	o.Log = slogUntil(ctx, o.Log)
	// Messages of controller-runtime and client-go are logged with more verbosity.
	details := logr.FromSlogHandler(o.Log.Handler()).V(1)
	ctrl.SetLogger(details)
	ctx = klog.NewContext(ctx, details)
	var e endpoints
	stop, err := e.serve(o)
	if err != nil {
		return err
	}
	defer stop()
	stopGuard, err := guardWebhooks(ctx, o)
	if err != nil {
		return err
	}
	defer stopGuard()
	if err := ensureNamespace(ctx, o); err != nil {
		return err
	}
	if o.LeaderElection == nil {
		return runControllers(ctx, o, &e)
	}
	if o.LeaderElection.Exclusive {
		if err := checkReachable(o); err != nil {
			return err
		}
	}
	election := *o.LeaderElection
	election.Namespace = cmp.Or(election.Namespace, o.namespace())
	e.ready.Store(!election.Exclusive)
	return leader.Run(ctx,
		election, o.Config, o.Log, details, func(ctx context.Context, fence transport.WrapperFunc) error {
			fenced := o
			fenced.Config = rest.CopyConfig(o.Config)
			fenced.Config.Wrap(fence)
			defer e.ready.Store(!election.Exclusive)
			e.ready.Store(false)
			return runControllers(ctx, fenced, &e)
		})
}

// checkReachable fails if the API server does not respond. Without this check, an exclusive manager
// would wait for its Lease forever.
func checkReachable(o Options) error {
	c, err := discovery.NewDiscoveryClientForConfig(o.Config)
	if err != nil {
		return err
	}
	_, err = c.ServerVersion()
	return err
}

// runControllers runs the controllers until ctx ends.
func runControllers(ctx context.Context, o Options, e *endpoints) error {
	cluster, err := apply.NewCluster(o.Config)
	if err != nil {
		return err
	}
	installed, err := packageapi.Install(ctx, cluster, packageapi.Options{
		TakeOver: o.TakeOver, FirstGeneration: o.FirstGeneration.Enabled,
	})
	if err != nil {
		return err
	}
	if len(installed.Permissive) > 0 {
		o.Log.Info(
			"Crossplane is not installed in this cluster; installed permissive CRDs of its kinds, so that Configurations can be installed",
			"definitions", installed.Permissive,
		)
	}
	if err := claimPackages(ctx, o); err != nil {
		return err
	}
	brake := &contention.Brake{Limits: o.contention(), Now: time.Now}
	mgr, err := newManager(ctx, o, brake)
	if err != nil {
		return err
	}
	brake.LastChange, brake.Report = contention.LastChange(mgr.GetAPIReader()),
		reportContention(mgr.GetEventRecorder(plan.FieldManager))
	counter, err := planner.NewCluster(mgr.GetConfig())
	if err != nil {
		return err
	}
	set := newRuntimes(o, mgr)
	metrics := newMetrics()
	defer metrics.register(ctrlmetrics.Registry, mgr.GetClient())()
	// Plans read the configuration of the manager from the Lock, so the manager is ready once the
	// Lock is written.
	ready := sync.OnceFunc(func() {
		e.ready.Store(true)
		if o.Ready != nil {
			o.Ready()
		}
	})
	if err := newComponents(o, mgr, cluster.WithBrake(brake), installed, set, counter, metrics).
		setupControllers(ctx, ready); err != nil {
		return err
	}
	if err := startInformers(ctx, mgr, set); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// newManager returns the controller-runtime manager. The brake limits the writes of its client.
func newManager(ctx context.Context, o Options, brake *contention.Brake) (ctrl.Manager, error) {
	scheme, err := apis.NewScheme()
	if err != nil {
		return nil, err
	}
	err = errors.Join(corev1.AddToScheme(scheme),
		admissionv1.AddToScheme(scheme), appsv1.AddToScheme(scheme), discoveryv1.AddToScheme(scheme),
		rbacv1.AddToScheme(scheme), authenticationv1.AddToScheme(scheme), authorizationv1.AddToScheme(scheme))
	if err != nil {
		return nil, err
	}
	cfg := rest.CopyConfig(o.Config)
	// Drop deprecation warnings: they concern the author of an object, not its watcher.
	cfg.QPS, cfg.WarningHandler = -1, rest.NoWarnings{}
	resync := o.resync()
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: scheme,
		MapperProvider: func(cfg *rest.Config, c *http.Client) (meta.RESTMapper, error) {
			return restmapper.WithDiscovery(restmapper.New(scheme, revisions.WatchedKinds(true)...), cfg, c)
		},
		Logger: logr.FromSlogHandler(o.Log.Handler()).V(1),
		// The endpoints are also served while no controllers run; see endpoints.
		Metrics:                server.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
		NewCache:               newCacheUntil(ctx),
		NewClient: func(cfg *rest.Config, options client.Options) (client.Client, error) {
			c, err := client.New(cfg, options)
			return brake.Client(c), err
		},
		// The content of Secrets is never cached.
		Client: client.Options{FieldOwner: plan.FieldManager, Cache: &client.CacheOptions{DisableFor: []client.Object{
			&corev1.Secret{},
		}}},
		Cache: cache.Options{
			ReaderFailOnMissingInformer: true, SyncPeriod: &resync, DefaultTransform: cache.TransformStripManagedFields(),
			ByObject: cachedObjects(o),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("manager: %w", err)
	}
	return mgr, nil
}
