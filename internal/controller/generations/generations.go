// Package generations records the generations of the installed packages.
//
// A generation is recorded when the packages that have changed are ready, and no transaction runs: what several
// requests change together is one generation then. A set that does not become ready is recorded after [Longest].
package generations

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/xpkg/v1alpha1"
	"github.com/xpkg-dev/xpkg/internal/controller/requeue"
	"github.com/xpkg-dev/xpkg/internal/generation"
	"github.com/xpkg-dev/xpkg/internal/operation"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// Longest is the time after which a changed set of packages is recorded that is not ready.
const Longest = 10 * time.Minute

// Reconciler records generations.
type Reconciler struct {
	// Client reads packages and transactions from a cache, and writes generations.
	Client client.Client
	// Live reads generations.
	Live      client.Reader
	Namespace string
	Now       func() time.Time
	Log       *slog.Logger

	// isForbidden is set if the manager may not read or write generations.
	isForbidden bool
	// newest is the generation that was recorded last, or nil if it is not known.
	newest *generation.Generation
	// pending are the packages as they are since a time. They differ from the newest generation.
	pending []generation.Package
	since   time.Time
}

// SetupWithManager registers the controller, which has one object: the set of all packages.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	set := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{}}
	})
	b := ctrl.NewControllerManagedBy(mgr).Named("generations").Watches(&v1alpha1.Transaction{}, set)
	for _, kind := range v1.PackageKinds() {
		b.Watches(v1.NewPackage(kind), set)
	}
	return b.WithOptions(requeue.OneAtATime(r.Log)).Complete(r)
}

// Reconcile records the installed packages if they have changed since the newest generation.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	if r.isForbidden {
		return ctrl.Result{}, nil
	}
	result, err := r.reconcile(ctx)
	switch {
	case apierrors.IsForbidden(err):
		r.isForbidden = true
		r.Log.WarnContext(ctx, "the history of all packages is not recorded: apply the manifests of `xpkg bootstrap` again",
			"error", err)
		return ctrl.Result{}, nil
	case apierrors.IsNotFound(err): // The next change of a package tries again.
		r.Log.WarnContext(ctx, "the history of all packages is not recorded: its namespace does not exist",
			"namespace", r.Namespace)
		return ctrl.Result{}, nil
	case apierrors.IsAlreadyExists(err):
		r.newest = nil // Another manager has recorded a generation.
	}
	return result, err
}

func (r *Reconciler) reconcile(ctx context.Context) (ctrl.Result, error) {
	packages, running, ended, err := r.read(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	if r.newest == nil {
		if err := r.load(ctx); err != nil {
			return ctrl.Result{}, err
		}
	}
	now := generation.Of(packages)
	changes := generation.Changes(r.newest.Packages, now)
	isHealthy := !slices.ContainsFunc(packages, func(p v1.Package) bool { return !isReady(p) })
	if len(changes) == 0 {
		r.pending = nil
		if isHealthy && !r.newest.Healthy && r.newest.Number > 0 {
			err := r.store().MarkHealthy(ctx, r.newest.Number)
			r.newest.Healthy = err == nil
			return ctrl.Result{}, err
		}
		return ctrl.Result{}, nil
	}
	if r.pending == nil || len(generation.Changes(r.pending, now)) > 0 {
		r.pending, r.since = now, r.Now()
	}
	if running { // Its end is an event.
		return ctrl.Result{}, nil
	}
	if rest := r.since.Add(Longest).Sub(r.Now()); rest > 0 && isMoving(packages, changes) {
		return ctrl.Result{RequeueAfter: rest}, nil
	}
	content, err := r.describe(ctx, changes, ended)
	if err != nil {
		return ctrl.Result{}, err
	}
	content.Packages = now
	next := generation.Generation{Number: r.newest.Number + 1, Healthy: isHealthy, Content: content}
	if err := r.store().Create(ctx, next); err != nil {
		return ctrl.Result{}, err
	}
	r.newest, r.pending = &next, nil
	if next.Number > generation.Kept {
		return ctrl.Result{}, r.store().Delete(ctx, next.Number-generation.Kept)
	}
	return ctrl.Result{}, nil
}

func (r *Reconciler) store() generation.Store {
	return generation.Store{Client: r.Client, Namespace: r.Namespace}
}

// load reads the newest generation. The number of a set without one is 0.
func (r *Reconciler) load(ctx context.Context) error {
	all, err := generation.List(ctx, r.Live, r.Namespace)
	if err != nil {
		return err
	}
	for _, g := range all[min(len(all), generation.Kept):] {
		if err := r.store().Delete(ctx, g.Number); err != nil {
			return err
		}
	}
	r.newest = &generation.Generation{}
	if len(all) > 0 {
		r.newest = &all[0]
	}
	return nil
}

// read returns all packages, whether a transaction changes packages, and the transactions that have ended.
func (r *Reconciler) read(ctx context.Context) (
	packages []v1.Package, running bool, ended []v1alpha1.Transaction, err error,
) {
	for _, kind := range v1.PackageKinds() {
		list := v1.NewPackageList(kind)
		if err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, false, nil, fmt.Errorf("list packages: %w", err)
		}
		packages = append(packages, list.Packages()...)
	}
	var list v1alpha1.TransactionList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, false, nil, fmt.Errorf("list transactions: %w", err)
	}
	for _, t := range list.Items {
		switch {
		case t.HasEndedWriting():
			ended = append(ended, t)
		case t.Status.StartTime != nil:
			running = true
		}
	}
	return packages, running, ended, nil
}

// isReady reports whether the manager has carried out the spec of a package.
func isReady(p v1.Package) bool {
	ready := p.GetCondition(v1.TypeReady)
	return p.GetDeletionTimestamp() == nil && p.PackageStatus().ObservedGeneration == p.GetGeneration() &&
		ready.Status == corev1.ConditionTrue
}

// isMoving reports whether a package that has changed is not ready yet. Others can be unhealthy for long.
func isMoving(packages []v1.Package, changes []generation.Change) bool {
	return slices.ContainsFunc(packages, func(p v1.Package) bool {
		hasChanged := slices.ContainsFunc(changes, func(c generation.Change) bool {
			return c.Kind == p.PackageKind() && c.Name == p.GetName()
		})
		return hasChanged && !isReady(p)
	})
}

// describe returns who has made changes, and why. Transactions are those that have ended.
func (r *Reconciler) describe(
	ctx context.Context, changes []generation.Change, transactions []v1alpha1.Transaction,
) (generation.Content, error) {
	out := generation.Content{Time: r.Now().UTC().Truncate(time.Second)}
	rest := map[v1alpha1.PackageName]bool{}
	for _, c := range changes {
		rest[c.PackageName] = true
	}
	made := maps.Clone(rest)
	for _, t := range transactions {
		end := t.Status.CompletionTime
		if end == nil {
			end = t.Status.StartTime
		}
		if end == nil || end.Time.Before(r.newest.Time) || slices.Contains(r.newest.Transactions, t.Name) {
			continue
		}
		concerns := false
		for _, p := range t.Status.Packages {
			concerns = concerns || made[p.PackageName]
			delete(rest, p.PackageName)
		}
		if concerns {
			out.Transactions = append(out.Transactions, t.Name)
			if err := r.attributeTransaction(ctx, &t, &out); err != nil {
				return out, err
			}
		}
	}
	for _, kind := range v1.PackageKinds() {
		if err := r.attributeOthers(ctx, kind, rest, &out); err != nil {
			return out, err
		}
	}
	if len(out.By) > 1 { // The manager installs the dependencies of what others have changed.
		out.By = slices.DeleteFunc(out.By, func(by string) bool { return by == plan.FieldManager })
	}
	return out, nil
}

// attributeTransaction adds the user who has created a transaction or, if it names none, the client.
func (r *Reconciler) attributeTransaction(ctx context.Context, t *v1alpha1.Transaction, out *generation.Content) error {
	user := t.Annotations[operation.AnnotationUser]
	if user != "" {
		attribute(out, t, user)
		return nil
	}
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.TransactionKind))
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(t), live); err != nil {
		return client.IgnoreNotFound(err)
	}
	attribute(out, live, "")
	return nil
}

// attributeOthers adds the clients that have written packages of a kind. The cache does not have them.
func (r *Reconciler) attributeOthers(
	ctx context.Context, kind string, names map[v1alpha1.PackageName]bool, out *generation.Content,
) error {
	isOf := func(n v1alpha1.PackageName) bool { return n.Kind == kind }
	if !slices.ContainsFunc(slices.Collect(maps.Keys(names)), isOf) {
		return nil
	}
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(v1.GroupVersion.WithKind(kind + "List"))
	if err := r.Live.List(ctx, &list); err != nil {
		return fmt.Errorf("list packages: %w", err)
	}
	for _, p := range list.Items {
		if names[v1alpha1.PackageName{Kind: kind, Name: p.Name}] {
			attribute(out, &p, "")
		}
	}
	return nil
}

// attribute adds the user who has written an object, or else the client, and the reason in its annotations.
func attribute(c *generation.Content, o client.Object, user string) {
	if user == "" {
		user = writerOf(o)
	}
	for text, to := range map[string]*[]string{user: &c.By, o.GetAnnotations()[operation.AnnotationCause]: &c.Why} {
		if text != "" && !slices.Contains(*to, text) {
			*to = append(*to, text)
		}
	}
}

// writerOf returns the client that has written an object last, other than its status.
func writerOf(o client.Object) string {
	var last metav1.ManagedFieldsEntry
	for _, e := range o.GetManagedFields() {
		if e.Subresource == "" && e.Time != nil && (last.Time == nil || last.Time.Before(e.Time)) {
			last = e
		}
	}
	return last.Manager
}
