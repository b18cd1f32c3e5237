package controller

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/xpkg-dev/xpkg/apis"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/certificates"
	"github.com/xpkg-dev/xpkg/internal/controller/contention"
	"github.com/xpkg-dev/xpkg/internal/controller/expectations"
	"github.com/xpkg-dev/xpkg/internal/controller/kube"
	"github.com/xpkg-dev/xpkg/internal/controller/lock"
	"github.com/xpkg-dev/xpkg/internal/controller/orphans"
	"github.com/xpkg-dev/xpkg/internal/controller/packageapi"
	"github.com/xpkg-dev/xpkg/internal/controller/packages"
	"github.com/xpkg-dev/xpkg/internal/controller/reservations"
	"github.com/xpkg-dev/xpkg/internal/controller/revisions"
	"github.com/xpkg-dev/xpkg/internal/controller/rootca"
	"github.com/xpkg-dev/xpkg/internal/controller/runtimes"
	"github.com/xpkg-dev/xpkg/internal/controller/status"
	"github.com/xpkg-dev/xpkg/internal/crossplane"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/leader"
	"github.com/xpkg-dev/xpkg/internal/origin"
	"github.com/xpkg-dev/xpkg/internal/permission"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/internal/webhooks"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// Run runs the manager until ctx ends. While another manager works on the cluster, it stands by, or fails if the
// election is exclusive.
func Run(ctx context.Context, o Options) error {
	o.Log = slogUntil(ctx, o.Log)
	// Messages of controller-runtime itself are details.
	details := logr.FromSlogHandler(o.Log.Handler()).V(1)
	ctrl.SetLogger(details)
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
	return leader.Run(ctx, election, o.Config, o.Log, details, func(ctx context.Context, fence transport.WrapperFunc) error {
		fenced := o
		fenced.Config = rest.CopyConfig(o.Config)
		fenced.Config.Wrap(fence)
		defer e.ready.Store(!election.Exclusive)
		e.ready.Store(false)
		return runControllers(ctx, fenced, &e)
	})
}

// checkReachable fails if the API server does not answer. The wait for a Lease would retry without an end.
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
	permissive, err := packageapi.Install(ctx, cluster, o.TakeOver)
	if err != nil {
		return err
	}
	if len(permissive) > 0 {
		o.Log.Info("Crossplane is not installed in this cluster; installed permissive CRDs of its kinds, so that Configurations can be installed", "definitions", permissive)
	}
	mgr, err := newManager(ctx, o)
	if err != nil {
		return err
	}
	set := newRuntimes(o, mgr)
	metrics := newMetrics()
	defer metrics.register(ctrlmetrics.Registry, mgr.GetClient())()
	// A plan reads from the Lock how the manager is configured, so the manager is ready after the Lock is written.
	ready := sync.OnceFunc(func() {
		e.ready.Store(true)
		if o.Ready != nil {
			o.Ready()
		}
	})
	if err := setup(ctx, o, mgr, cluster, set, metrics, ready); err != nil {
		return err
	}
	if err := startInformers(ctx, mgr, set); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// newManager returns the controller-runtime manager.
func newManager(ctx context.Context, o Options) (ctrl.Manager, error) {
	scheme, err := apis.NewScheme()
	if err != nil {
		return nil, err
	}
	err = errors.Join(corev1.AddToScheme(scheme), admissionv1.AddToScheme(scheme), appsv1.AddToScheme(scheme), discoveryv1.AddToScheme(scheme),
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
		Logger: logr.FromSlogHandler(o.Log.Handler()).V(1),
		// The endpoints are also served while no controllers run; see endpoints.
		Metrics:                server.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
		NewCache:               newCacheUntil(ctx),
		// The content of Secrets is never cached.
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
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

// setup registers all controllers. They call ready after the first reconciliation of the Lock.
func setup(ctx context.Context, o Options, mgr ctrl.Manager, cluster *apply.Cluster, set *runtimes.Set, metrics *metrics, ready func()) error {
	c, live, namespace := mgr.GetClient(), mgr.GetAPIReader(), o.namespace()
	overwritten := &packageapi.Overwritten{}
	guard := &crossplane.Guard{
		Reader: live, Client: c, Namespace: namespace, Now: time.Now,
		Role: crossplane.Role{Permissions: o.Permissions != nil, Runtimes: o.Runtimes.Uses(runtime.Deployment)},
	}
	reporter := &status.Reporter{
		Client: c, Events: mgr.GetEventRecorder("xpkg"), Writes: &expectations.Versions{Now: time.Now},
		CountFailure: func(code string) { metrics.failures.WithLabelValues(code).Inc() }, Now: time.Now,
		Blocked: func(ctx context.Context, kind string) error { return cmp.Or(overwritten.Of(kind), guard.Check(ctx)) },
	}
	api := kube.API{Client: c, Live: live, Cluster: cluster, Revisions: &state.LiveRevisions{Reader: live}, Status: reporter}
	content := state.Packages{
		Content: o.Content, Origins: origin.Finder{Reader: c, Secrets: live, Namespace: namespace}, Namespace: namespace,
	}
	known := &state.Dependencies{Content: o.Content}
	reserved := reservations.New()
	ca := &certificates.Store{
		Client: c, Namespace: namespace, Now: time.Now, Random: rand.Reader, Overlap: o.CertificateOverlap,
		Settled: rootca.Distribution{Client: c, Cluster: cluster, Namespace: namespace}.IsComplete,
	}
	rollback := revision.RollbackPolicy{Deadline: o.activationDeadline(), Now: time.Now, Classify: classifyFailure}
	checks := &revisions.Checks{
		Crossplane:  &crossplane.Checker{Configured: o.CrossplaneVersion, Reader: live, Namespace: namespace, Now: time.Now},
		Permissions: o.Permissions, Held: &permission.ManagerRules{Client: c, Log: o.Log}, Poll: o.poll(),
	}
	dependencies := &revisions.Dependencies{Known: known, Options: o.Dependencies}
	for _, kind := range v1.PackageKinds() {
		p := &packages.Reconciler{
			Kind: kind, API: api, Resolver: &packages.Resolver{Packages: content, Poll: o.poll()},
			Rollback: rollback, Runtimes: set, Reservations: reserved, APIChanges: overwritten.Changes(),
		}
		if err := p.SetupWithManager(mgr, o.Log); err != nil {
			return fmt.Errorf("controller of %s: %w", kind, err)
		}
		r := &revisions.Reconciler{
			Kind: kind, API: api, Packages: content, Checks: checks, Dependencies: dependencies, APIChanges: overwritten.Changes(),
			Objects: &revisions.Objects{Reservations: reserved, CountWrites: metrics.countWrites},
			Runtimes: &revisions.Runtimes{
				Set: set, Certificates: ca, Prober: webhooks.Prober{Reader: live, Remote: o.Remote}, SettleTime: o.Settle,
			},
		}
		if err := r.SetupWithManager(ctx, mgr, o.Log); err != nil {
			return fmt.Errorf("controller of %sRevision: %w", kind, err)
		}
	}
	crds := &packageapi.Reconciler{
		Cluster: cluster, Events: reporter.Events, Overwritten: overwritten,
		Brake: &contention.Brake[plan.Ref]{Limits: packageapi.RestoreLimits, Now: time.Now},
	}
	if err := crds.SetupWithManager(mgr, o.Log); err != nil {
		return err
	}
	if set.Changes != nil {
		if err := mgr.Add(crmanager.RunnableFunc(set.RelayChanges)); err != nil {
			return fmt.Errorf("watch processes: %w", err)
		}
	}
	if len(set.Used()) > 0 {
		r := rootca.Reconciler{Live: live, Certificates: ca, Namespace: namespace, Now: time.Now}
		if err := r.SetupWithManager(mgr, o.Log); err != nil {
			return err
		}
	}
	locks := &lock.Reconciler{
		Client: c, Dependencies: known, Writes: reporter.Writes, Guard: guard.Check, Now: metav1.Now, Announcements: announcements(o), Reconciled: ready,
	}
	if err := setupLock(ctx, o, mgr, locks); err != nil {
		return err
	}
	if o.Dependencies == nil || o.Dependencies.Removal != graph.RemoveOrphans {
		return nil
	}
	planned, err := planner.NewCluster(mgr.GetConfig())
	if err != nil {
		return err
	}
	return orphans.New(orphans.Config{
		Client: c, Live: live, Cluster: planned, Packages: content, Dependencies: known, Events: reporter.Events, Now: time.Now, Guard: guard.Check,
		RollbackWindow: rollback.Remaining,
	}).SetupWithManager(mgr, o.Log)
}

// setupLock registers the controller of the Lock.
func setupLock(ctx context.Context, o Options, mgr ctrl.Manager, r *lock.Reconciler) error {
	// The UID of a namespace that each cluster has identifies the cluster in a package cache that several
	// clusters share.
	var system corev1.Namespace
	if err := mgr.GetAPIReader().Get(ctx, types.NamespacedName{Name: metav1.NamespaceSystem}, &system); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("identify the cluster: %w", err)
	}
	r.InUse = func(contents []oci.Digest) error {
		if o.InUse == nil {
			return nil
		}
		return o.InUse(string(system.UID), contents)
	}
	return r.SetupWithManager(mgr, o.Log)
}

// announcements returns the annotations of the Lock from which plans read how the manager is configured.
func announcements(o Options) map[string]string {
	var upgrades graph.Policy
	var removal graph.RemovalPolicy
	if d := o.Dependencies; d != nil {
		upgrades, removal = d.UpgradePolicy(), d.Removal
	}
	return lock.Announcements(upgrades, removal, o.Permissions != nil && o.Permissions.Namespaced, o.Runtimes, o.RuntimePrivileges)
}

// classifyFailure returns the class of the reason of a Ready condition.
func classifyFailure(reason v1.ConditionReason) revision.Failure {
	name := string(reason)
	isFinal := func(c errcode.Code) bool { return c.Final && c.Name == name }
	switch {
	case slices.ContainsFunc(apply.Codes(), isFinal), slices.ContainsFunc(runtime.Codes(), isFinal):
		return revision.Final
	case name == runtime.ReasonCrashLoop:
		return revision.CrashLoop
	case runtime.IsRuntimeFailure(name):
		return revision.RuntimeFailure
	}
	return revision.Transient
}
