package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	crmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/xpkg-dev/xpkg/apis"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/controller/expectations"
	"github.com/xpkg-dev/xpkg/internal/controller/requeue"
	"github.com/xpkg-dev/xpkg/internal/controller/reservations"
	"github.com/xpkg-dev/xpkg/internal/crossplane"
	"github.com/xpkg-dev/xpkg/internal/leader"
	"github.com/xpkg-dev/xpkg/internal/origin"
	"github.com/xpkg-dev/xpkg/internal/permission"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/runtime/deployment"
	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/internal/webhooks"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// Options configure a manager.
type Options struct {
	// Config is how the cluster is reached.
	Config *rest.Config
	// Content is where packages come from.
	Content Content
	// Namespace is where the programs of packages run, and where their secrets
	// are. Empty means DefaultNamespace.
	Namespace string
	// MakeNamespace makes that namespace where it is missing, as on a control plane of
	// one machine. In other clusters it belongs to whoever has installed the manager.
	MakeNamespace bool
	// Poll is how often a package with the policy Always is looked up. Zero
	// means a minute.
	Poll time.Duration
	// MetricsAddress is where Prometheus metrics are served; empty means
	// nowhere.
	MetricsAddress string
	// HealthAddress is where /healthz and /readyz are served; empty means
	// nowhere.
	HealthAddress string
	// CrossplaneVersion is the version that packages are to fit. Empty means that
	// of the Crossplane in the namespace, if there is one.
	CrossplaneVersion string
	// Resync is how often every package is looked at without any reason. Zero
	// means an hour.
	Resync time.Duration
	// ActivationDeadline is how long a new revision may take to become healthy, and for
	// how long after its activation a crash of its program still rolls it back. Zero means
	// ten minutes; below zero nothing is ever rolled back.
	ActivationDeadline time.Duration
	// Settle is how long a program has to run without a restart before it is available.
	// Zero means the default of its runtime.
	Settle time.Duration
	// InUse, when it is set, is told which contents the packages of the cluster
	// need, with the UID of the cluster, whenever that changes.
	InUse func(cluster string, contents []oci.Digest) error
	// TakeOver replaces the package API of another package manager.
	TakeOver bool
	// Dependencies, when they are set, make the manager install what packages need.
	Dependencies *Dependencies
	// Permissions, when they are set, make the manager give programs of packages their
	// rights.
	Permissions *Permissions
	// Log receives what the manager has to say.
	Log *slog.Logger
	// LeaderElection, when it is set, lets several managers stand by while one works. Its
	// Lease is in the namespace, unless it names another one.
	LeaderElection *leader.Election
	// Runtimes says who runs the programs of packages. The zero value is nobody, and a
	// package is healthy without its program.
	Runtimes runtime.Choice
	// Images knows the images of programs. It is needed where Deployments run them.
	Images deployment.Images
	// RuntimePrivileges are the privileges that runtime configurations may use.
	RuntimePrivileges []manifests.Privilege
	// Processes runs programs as processes of this machine. It is needed where any are
	// run so, and belongs to one run of the manager.
	Processes Processes
	// CertificateOverlap is how long a new authority of the programs' certificates is
	// known everywhere before it signs, and an old one after nothing that it signed is
	// left. Zero means a day.
	CertificateOverlap time.Duration
	// Remote reports that the manager runs outside of the network of the cluster's pods, so
	// that an endpoint that it cannot reach may still serve the API server.
	Remote bool
	// WebhookProbe is the pause between two probes of the webhooks of packages. Zero means
	// webhooks.DefaultInterval.
	WebhookProbe time.Duration
	// Ready is called each time that the controllers begin to run.
	Ready func()
}

// DefaultNamespace is the namespace that the field expects.
const DefaultNamespace = "crossplane-system"

const (
	// defaultPoll is how often a package with the policy Always is looked up
	// (packages guide, "spec.packagePullPolicy").
	defaultPoll = time.Minute
	// defaultDeadline is how long a new revision may take to become healthy.
	defaultDeadline = 10 * time.Minute
	// defaultResync is how often every package is looked at without any reason.
	defaultResync = time.Hour
)

// Run runs the manager until ctx ends. With a LeaderElection it stands by first, and
// again whenever another manager leads.
func Run(ctx context.Context, o Options) error {
	// What the library has to say of its own work is detail.
	detail := logr.FromSlogHandler(untilDone{o.Log.Handler(), ctx.Done()}).V(1)
	ctrl.SetLogger(detail)
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
	if o.LeaderElection == nil {
		return work(ctx, o, &e, detail)
	}
	election := *o.LeaderElection
	election.Namespace = cmp.Or(election.Namespace, namespace(o))
	e.ready.Store(true)
	return leader.Run(ctx, election, o.Config, o.Log, detail, func(ctx context.Context, fence transport.WrapperFunc) error {
		fenced := o
		fenced.Config = rest.CopyConfig(o.Config)
		fenced.Config.Wrap(fence)
		defer e.ready.Store(true)
		e.ready.Store(false)
		return work(ctx, fenced, &e, detail)
	})
}

// work runs the controllers until ctx ends.
func work(ctx context.Context, o Options, e *endpoints, detail logr.Logger) error {
	cluster, err := apply.NewCluster(o.Config)
	if err != nil {
		return err
	}
	permissive, err := Definitions(ctx, cluster, o.TakeOver)
	if err != nil {
		return err
	}
	if len(permissive) > 0 {
		o.Log.Info("Crossplane is not installed in this cluster: permissive definitions of its kinds were installed, so that Configurations can be", "definitions", permissive)
	}
	mgr, err := newControllers(ctx, o, detail)
	if err != nil {
		return err
	}
	if err := makeHome(ctx, o, mgr.GetClient()); err != nil {
		return err
	}
	w, err := newWorld(ctx, o, mgr, cluster)
	if err != nil {
		return err
	}
	defer w.metrics.register(ctrlmetrics.Registry, mgr.GetClient())()
	if err := w.setup(ctx, o, mgr); err != nil {
		return err
	}
	if err := openCaches(ctx, mgr, w.programs); err != nil {
		return err
	}
	go func() {
		if mgr.GetCache().WaitForCacheSync(ctx) && ctx.Err() == nil {
			e.ready.Store(true)
			if o.Ready != nil {
				o.Ready()
			}
		}
	}()
	return mgr.Start(ctx)
}

// newControllers makes what runs controllers.
func newControllers(ctx context.Context, o Options, detail logr.Logger) (ctrl.Manager, error) {
	scheme, err := apis.NewScheme()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(corev1.AddToScheme(scheme), appsv1.AddToScheme(scheme), discoveryv1.AddToScheme(scheme), rbacv1.AddToScheme(scheme), authenticationv1.AddToScheme(scheme), authorizationv1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	cfg := rest.CopyConfig(o.Config)
	// That what people still use is deprecated is theirs to know, and not of whoever
	// watches it.
	cfg.QPS, cfg.WarningHandler = -1, rest.NoWarnings{}
	resync := cmp.Or(o.Resync, defaultResync)
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: scheme,
		Logger: detail,
		// Both are served also while no controllers run.
		Metrics:                server.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
		NewCache:               endWith(ctx),
		// What is in Secrets is never kept in memory.
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
		Cache: cache.Options{
			ReaderFailOnMissingInformer: true, SyncPeriod: &resync, DefaultTransform: cache.TransformStripManagedFields(),
			ByObject: watched(o),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("manager: %w", err)
	}
	return mgr, nil
}

func namespace(o Options) string { return cmp.Or(o.Namespace, DefaultNamespace) }

func deadline(o Options) time.Duration { return max(0, cmp.Or(o.ActivationDeadline, defaultDeadline)) }

func newWorld(ctx context.Context, o Options, mgr ctrl.Manager, cluster *apply.Cluster) (*world, error) {
	// The name of a cluster is the UID of the namespace that each one has.
	var home corev1.Namespace
	if err := mgr.GetAPIReader().Get(ctx, types.NamespacedName{Name: metav1.NamespaceSystem}, &home); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("tell the cluster from others: %w", err)
	}
	w := &world{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), cluster: cluster, content: o.Content, events: mgr.GetEventRecorder("xpkg"),
		origins: origin.Finder{Reader: mgr.GetClient(), Secrets: mgr.GetAPIReader(), Namespace: namespace(o)},
		log:     o.Log, metrics: newMetrics(), reservations: reservations.New(), programs: newPrograms(o, mgr),
		core:      &crossplane.Checker{Configured: o.CrossplaneVersion, Reader: mgr.GetAPIReader(), Namespace: namespace(o), Now: time.Now},
		processes: map[string]chan event.GenericEvent{v1.ProviderKind: make(chan event.GenericEvent), v1.FunctionKind: make(chan event.GenericEvent)},
		writes:    &expectations.Versions{Now: time.Now}, now: time.Now, poll: cmp.Or(o.Poll, defaultPoll), gate: gate{deadline(o), time.Now}, settleTime: o.Settle, namespace: namespace(o),
		needs: &state.Dependencies{Content: o.Content}, settling: newSettling(o.Dependencies),
		prober:      webhooks.Prober{Reader: mgr.GetAPIReader(), Remote: o.Remote},
		permissions: o.Permissions, held: &permission.Held{Client: mgr.GetClient(), Log: o.Log},
	}
	w.certificates, w.clusterID = newCertificates(o, w), string(home.UID)
	return w, nil
}

// openCaches names everything that the controllers watch before they start, so
// that waiting for the caches waits for all of it.
func openCaches(ctx context.Context, mgr ctrl.Manager, p *programs) error {
	watched := []client.Object{&v1beta1.Lock{}, &v1beta1.ImageConfig{}}
	if len(p.used()) > 0 {
		watched = append(watched, runtimeConfigs()...)
	}
	if p.runtimes[runtime.Deployment] != nil {
		watched = append(watched, programObjects()...)
	}
	for _, kind := range v1.PackageKinds() {
		p := v1.NewPackage(kind)
		watched = append(watched, p, p.NewRevision())
	}
	for _, o := range watched {
		if _, err := mgr.GetCache().GetInformer(ctx, o, cache.BlockUntilSynced(false)); err != nil {
			return fmt.Errorf("watch %T: %w", o, err)
		}
	}
	return nil
}

// setup connects every controller with what it watches.
func (w *world) setup(ctx context.Context, o Options, mgr ctrl.Manager) error {
	for _, kind := range v1.PackageKinds() {
		if err := w.setupPackage(mgr, kind); err != nil {
			return fmt.Errorf("controller of %s: %w", kind, err)
		}
		if err := w.setupRevision(ctx, mgr, kind); err != nil {
			return fmt.Errorf("controller of %sRevision: %w", kind, err)
		}
	}
	if w.programs.changes != nil {
		if err := mgr.Add(crmanager.RunnableFunc(w.tellProcesses)); err != nil {
			return fmt.Errorf("follow processes: %w", err)
		}
	}
	return w.setupSingletons(o, mgr)
}

// changed lets through changes of what people and other controllers write, and
// the regular look at everything. A status that a controller wrote itself is no
// reason for it to look again, unless more lets it through. An owner is one: a revision that is restored before
// its package waits for that.
func changed(more ...predicate.Predicate) builder.ForOption {
	regular := predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion()
	}}
	owned := predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return !equality.Semantic.DeepEqual(e.ObjectOld.GetOwnerReferences(), e.ObjectNew.GetOwnerReferences())
	}}
	return builder.WithPredicates(predicate.Or(append(more, regular, owned,
		predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{})...))
}

func (w *world) setupPackage(mgr ctrl.Manager, kind string) error {
	p := v1.NewPackage(kind)
	return ctrl.NewControllerManagedBy(mgr).
		Named("package/"+lower(kind)).
		For(p).
		Owns(p.NewRevision()).
		Watches(&v1beta1.ImageConfig{}, w.onImageConfig(kind)).
		WatchesMetadata(&corev1.Secret{}, w.onSecret(kind), w.inNamespace()).
		WithOptions(requeue.Options()).
		Complete(&packageReconciler{world: w, kind: kind})
}

func (w *world) setupRevision(ctx context.Context, mgr ctrl.Manager, kind string) error {
	if err := errors.Join(indexObjects(ctx, mgr, kind), indexSecrets(ctx, mgr, kind)); err != nil {
		return err
	}
	rev := v1.NewPackage(kind).NewRevision()
	b := ctrl.NewControllerManagedBy(mgr).
		Named("revision/"+lower(kind)).
		For(rev, changed(w.reported(kind))).
		Watches(rev, w.onHandOver(kind), handedOver()).
		Watches(&v1beta1.ImageConfig{}, w.onRevisionImageConfig(kind)).
		WithOptions(requeue.Options())
	if hasProgram(kind) {
		b = b.Watches(v1.NewPackage(kind), w.onAllowedWebhooks(kind))
	}
	for _, dependency := range v1.PackageKinds() {
		b = b.Watches(v1.NewPackage(dependency), w.dependents(kind)).
			Watches(v1.NewPackage(dependency), w.bereft(kind), builder.WithPredicates(w.movedAway())).
			Watches(v1.NewPackage(dependency).NewRevision(), w.bereft(kind), builder.WithPredicates(activated()))
	}
	return w.watchCertificates(w.watchPrograms(w.watchRights(w.watchObjects(b, kind), kind), kind), kind).Complete(&revisionReconciler{world: w, kind: kind})
}
