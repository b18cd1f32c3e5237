package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xpkg-dev/xpkg/apis"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/apply"
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
	// Poll is how often a package with the policy Always is looked up. Zero
	// means a minute.
	Poll time.Duration
	// MetricsAddress is where Prometheus metrics are served; empty means
	// nowhere.
	MetricsAddress string
	// HealthAddress is where /healthz and /readyz are served; empty means
	// nowhere.
	HealthAddress string
	// TakeOver replaces the package API of another package manager.
	TakeOver bool
	// Log receives what the manager has to say.
	Log *slog.Logger
	// Ready is called once the controllers run.
	Ready func()
}

// DefaultNamespace is the namespace that the field expects.
const DefaultNamespace = "crossplane-system"

const (
	// workers is how many packages, and how many revisions, of one kind are
	// worked on at once.
	workers = 8
	// firstRetry and lastRetry bound the pause before a failed reconciliation
	// is tried again. It doubles each time.
	firstRetry = 250 * time.Millisecond
	lastRetry  = time.Minute
)

// Run runs the manager until ctx ends.
func Run(ctx context.Context, o Options) error {
	// What the library has to say of its own work is detail.
	detail := logr.FromSlogHandler(untilDone{o.Log.Handler(), ctx.Done()}).V(1)
	ctrl.SetLogger(detail)
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
	scheme, err := apis.NewScheme()
	if err != nil {
		return err
	}
	cfg := rest.CopyConfig(o.Config)
	cfg.QPS = -1
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:                 scheme,
		Logger:                 detail,
		Metrics:                server.Options{BindAddress: orOff(o.MetricsAddress)},
		HealthProbeBindAddress: orOff(o.HealthAddress),
		Cache:                  cache.Options{ReaderFailOnMissingInformer: true},
	})
	if err != nil {
		return fmt.Errorf("manager: %w", err)
	}
	w := &world{
		client: mgr.GetClient(), cluster: cluster, content: o.Content, events: mgr.GetEventRecorder("xpkg"),
		log: o.Log, now: time.Now, poll: cmp.Or(o.Poll, defaultPoll), namespace: cmp.Or(o.Namespace, DefaultNamespace),
	}
	if err := w.setup(mgr); err != nil {
		return err
	}
	if err := openCaches(ctx, mgr); err != nil {
		return err
	}
	ready := make(chan struct{})
	if err := addChecks(mgr, ready); err != nil {
		return err
	}
	go func() {
		if mgr.GetCache().WaitForCacheSync(ctx) {
			close(ready)
			if o.Ready != nil {
				o.Ready()
			}
		}
	}()
	return mgr.Start(ctx)
}

// openCaches names everything that the controllers watch before they start, so
// that waiting for the caches waits for all of it.
func openCaches(ctx context.Context, mgr ctrl.Manager) error {
	watched := []client.Object{&v1beta1.Lock{}}
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

// addChecks lets the manager answer /healthz as long as it runs, and /readyz once
// the channel is closed.
func addChecks(mgr ctrl.Manager, ready <-chan struct{}) error {
	isReady := func(*http.Request) error {
		select {
		case <-ready:
			return nil
		default:
			return errors.New("the controllers do not run yet")
		}
	}
	if err := errors.Join(mgr.AddHealthzCheck("running", healthz.Ping), mgr.AddReadyzCheck("controllers", isReady)); err != nil {
		return fmt.Errorf("health checks: %w", err)
	}
	return nil
}

func orOff(address string) string {
	if address == "" {
		return "0"
	}
	return address
}

// setup connects every controller with what it watches.
func (w *world) setup(mgr ctrl.Manager) error {
	for _, kind := range v1.PackageKinds() {
		p := v1.NewPackage(kind)
		rev := p.NewRevision()
		err := ctrl.NewControllerManagedBy(mgr).
			Named("package/" + lower(kind)).
			For(p).
			Owns(rev).
			WithOptions(options()).
			Complete(&packageReconciler{world: w, kind: kind})
		if err != nil {
			return fmt.Errorf("controller of %s: %w", kind, err)
		}
		b := ctrl.NewControllerManagedBy(mgr).
			Named("revision/"+lower(kind)).
			// A status that this controller wrote is no reason to look again.
			For(p.NewRevision(), builder.WithPredicates(predicate.Or(
				predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{}))).
			WithOptions(options())
		for _, dependency := range v1.PackageKinds() {
			b = b.Watches(v1.NewPackage(dependency), handler.EnqueueRequestsFromMapFunc(w.dependents(kind)))
		}
		if err := b.Complete(&revisionReconciler{world: w, kind: kind}); err != nil {
			return fmt.Errorf("controller of %sRevision: %w", kind, err)
		}
	}
	return setupLock(mgr, w)
}

func options() controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: workers,
		SkipNameValidation:      new(true),
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
	}
}

// dependents maps a package that changed to the revisions of a kind that wait
// for a dependency. No other revision has work because of it.
func (w *world) dependents(kind string) handler.MapFunc {
	return func(ctx context.Context, _ client.Object) []reconcile.Request {
		list := v1.NewPackage(kind).NewRevisionList()
		if err := w.client.List(ctx, list); err != nil {
			return nil
		}
		var out []reconcile.Request
		for _, rev := range list.Revisions() {
			if waitsForDependencies(rev) {
				out = append(out, reconcile.Request{NamespacedName: types.NamespacedName{Name: rev.GetName()}})
			}
		}
		return out
	}
}
