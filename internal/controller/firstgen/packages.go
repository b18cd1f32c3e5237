package firstgen

import (
	"cmp"
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/controller/contention"
	"github.com/xpkg-dev/xpkg/internal/controller/logging"
	"github.com/xpkg-dev/xpkg/internal/controller/requeue"
	"github.com/xpkg-dev/xpkg/internal/permission"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/firstgen"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
)

const (
	// definitionPoll is the pause between two checks of whether the CRDs of a Package are served.
	definitionPoll = 5 * time.Second
	// healthPoll is the pause between two checks of a Package that is available: neither Deployments outside of the
	// namespace of the manager nor the served kinds are watched.
	healthPoll = time.Minute
	// startPoll is the pause between two checks of a runtime that is not.
	startPoll = 2 * time.Second
)

// Packages reconciles Packages: it runs the controllers of those that no ClusterPackageInstall controls.
type Packages struct {
	Base
	// NewRuntime returns the runtime of the packages of a namespace, or nil if the manager runs none.
	NewRuntime func(namespace string) runtime.Runtime
	// Changes receives the names of processes whose state has changed.
	Changes <-chan event.GenericEvent
	// Held compares permissions with those of the manager. It is nil if the manager grants none.
	Held *permission.ManagerRules
	// SettleTime is the time that a runtime must run before it is available. Zero means the default of the runtime.
	SettleTime time.Duration

	used runtimes
}

// Reconcile reconciles one Package. The garbage collector deletes the objects of a deleted one.
func (r *Packages) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	p := &packagesv1alpha1.Package{}
	err := r.API.Client.Get(ctx, req.NamespacedName, p)
	if apierrors.IsNotFound(err) {
		return ctrl.Result{}, r.stop(ctx, req.NamespacedName)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if p.DeletionTimestamp != nil {
		return ctrl.Result{}, r.reconcileDelete(ctx, p)
	}
	if c := metav1.GetControllerOf(p); c != nil && c.Kind == packagesv1alpha1.ClusterPackageInstallKind {
		// The Provider runs the controller. The record of a package with templates has another controller.
		err := r.withdraw(ctx, p)
		if requeue.IsStale(err) {
			return requeue.Soon(), nil
		}
		return ctrl.Result{}, err
	}
	ctx = contention.WithCause(ctx, causeOf(p))
	ctx = logging.With(ctx, "kind", packagesv1alpha1.PackageKind, "namespace", p.Namespace, "name", p.Name)
	return r.API.Status.ReportRevocable(ctx, p, func(ctx context.Context) (ctrl.Result, revision.Summary, error) {
		return r.reconcile(ctx, p)
	}, func(ctx context.Context) error {
		return r.revokeOutOfScope(ctx, p)
	}, failedConditions)
}

func (r *Packages) reconcile(ctx context.Context, p *packagesv1alpha1.Package) (ctrl.Result, revision.Summary, error) {
	if isOwnerlessRecord(p) {
		// It was restored without its owner reference, before its install object or after it.
		return ctrl.Result{},
			creating("The record waits for its install object %s.", p.Annotations[state.AnnotationInstalledBy]),
			r.stop(ctx, client.ObjectKeyFromObject(p))
	}
	if err := r.revokeOutOfScope(ctx, p); err != nil {
		return ctrl.Result{}, revision.Summary{}, err
	}
	if err := cmp.Or(checkName(p), checkDependencies(p), checkController(p)); err != nil {
		return ctrl.Result{}, revision.Summary{}, err
	}
	resources, missing, err := r.resources(ctx, p)
	if err != nil {
		return ctrl.Result{}, revision.Summary{}, err
	}
	p.SetConditions(r.API.Time(), v1.Synced())
	if missing != "" {
		if p.Status.ControllerRef != nil {
			// Its CRDs were deleted.
			if err := r.withdraw(ctx, p); err != nil {
				return ctrl.Result{}, revision.Summary{}, err
			}
			p.Status.ControllerRef = nil
		}
		return ctrl.Result{RequeueAfter: definitionPoll}, creating("The cluster does not serve %s yet.", missing), nil
	}
	by := r.used.use(client.ObjectKeyFromObject(p), r.NewRuntime)
	if p.Spec.Controller.Deployment == nil || by == nil {
		if !isWithdrawn(p) {
			err = r.withdraw(ctx, p)
		}
		p.Status.ControllerRef, p.Status.RuntimeImage = nil, ""
		return ctrl.Result{RequeueAfter: requeue.Jitter(healthPoll)}, available, err
	}
	required, err := r.required(ctx, p)
	if err != nil {
		return ctrl.Result{}, revision.Summary{}, err
	}
	rules, err := rulesOf(p, resources, required)
	if err != nil {
		return ctrl.Result{}, revision.Summary{}, err
	}
	_, external := by.(runtime.ExternalRuntime)
	w, err := r.workload(ctx, p, external)
	if err != nil {
		return ctrl.Result{}, revision.Summary{}, err
	}
	if err := by.Obtain(ctx, w); err != nil {
		return ctrl.Result{}, revision.Summary{}, err
	}
	if err := r.ensureRoles(ctx, p, by, w, rules); err != nil {
		return ctrl.Result{}, revision.Summary{}, err
	}
	return r.run(ctx, p, by, w)
}

// revokeOutOfScope stops the controller of a Package whose scope is not allowed, and returns the reason. The scope was
// allowed before, or the Package had another one.
func (r *Packages) revokeOutOfScope(ctx context.Context, p *packagesv1alpha1.Package) error {
	err := r.checkScope(p)
	if err == nil {
		return nil
	}
	if failed := r.revoke(ctx, p); failed != nil {
		return failed
	}
	return err
}

// revoke withdraws the controller of a Package that is not accepted any more.
func (r *Packages) revoke(ctx context.Context, p *packagesv1alpha1.Package) error {
	if p.Status.ControllerRef == nil && !controllerutil.ContainsFinalizer(p, FinalizerProvider) {
		return nil
	}
	p.Status.ControllerRef, p.Status.RuntimeImage = nil, ""
	return r.withdraw(ctx, p)
}

// withdraw stops the controller of a Package that has none any more, and deletes its ServiceAccount and its roles.
func (r *Packages) withdraw(ctx context.Context, p *packagesv1alpha1.Package) error {
	if err := r.reconcileDelete(ctx, p); err != nil {
		return err
	}
	return r.deleteAccount(ctx, p)
}

// isWithdrawn reports whether the controller that a Package had before is withdrawn: the Package is ready without one.
func isWithdrawn(p *packagesv1alpha1.Package) bool {
	return p.Status.ControllerRef == nil && !controllerutil.ContainsFinalizer(p, FinalizerProvider) &&
		p.Status.ObservedGeneration == p.Generation && p.GetCondition(v1.TypeReady).Status == corev1.ConditionTrue
}

// run runs the controller of a Package, and returns its state.
func (r *Packages) run(
	ctx context.Context, p *packagesv1alpha1.Package, by runtime.Runtime, w runtime.Workload,
) (ctrl.Result, revision.Summary, error) {
	if err := r.API.RereadExisting(ctx, p, &packagesv1alpha1.Package{}); err != nil {
		return ctrl.Result{}, revision.Summary{}, err
	}
	r.used.remember(client.ObjectKeyFromObject(p), runtime.ProcessName(ownerOf(p)))
	current, err := by.Run(ctx, w)
	if err != nil {
		return ctrl.Result{}, revision.Summary{}, err
	}
	p.Status.RuntimeImage = w.Image()
	p.Status.ControllerRef = &packagesv1alpha1.ObjectReference{
		APIVersion: "apps/v1", Kind: "Deployment", Namespace: p.Namespace, Name: p.Name,
	}
	if current.Available {
		return ctrl.Result{RequeueAfter: requeue.Jitter(max(current.Again, healthPoll))}, available, nil
	}
	return ctrl.Result{RequeueAfter: requeue.Jitter(max(current.Again, startPoll))},
		revision.Summary{Reason: v1.ConditionReason(current.Reason), Message: current.Message}, nil
}

// checkScope fails if a Package that needs permissions in the whole cluster is in a namespace whose users do not
// administer the cluster.
func (r *Packages) checkScope(p *packagesv1alpha1.Package) error {
	if !isClusterScoped(p) {
		return nil
	}
	if slices.ContainsFunc(
		p.OwnerReferences, func(r metav1.OwnerReference) bool { return r.Kind == packagesv1alpha1.PackageInstallKind },
	) {
		return ErrScope.New(nil, "the Package %s is the record of a PackageInstall, and has the scope Cluster", p.Name)
	}
	if !r.Options.administers(p.Namespace, r.Namespace) {
		return ErrNamespace.New(nil, "Packages with the scope Cluster are not accepted in the namespace %s", p.Namespace)
	}
	return nil
}

// checkController fails if the controller of a Package is invalid, or requests privileges of the node. It does not
// depend on the runtime: a runtime without such a privilege would ignore the field.
func checkController(p *packagesv1alpha1.Package) error {
	if p.Spec.Controller.Deployment == nil {
		return nil
	}
	config, _, err := configOf(p)
	if err != nil {
		return err
	}
	return manifests.CheckPod(ownerOf(p), config.Spec.DeploymentTemplate.Spec.Template.Spec)
}

func isClusterScoped(p *packagesv1alpha1.Package) bool {
	return p.Spec.PermissionScope == string(firstgen.ScopeCluster)
}

// resources returns the resources of the kinds of a Package, and the first kind that the cluster does not serve. All
// Packages share the reads of the served kinds, which are at most a second old: the next check notices a CRD that was
// deleted meanwhile.
func (r *Packages) resources(
	ctx context.Context, p *packagesv1alpha1.Package,
) (all []schema.GroupResource, missing string, err error) {
	for _, k := range p.Spec.CRDs {
		gvk := schema.FromAPIVersionAndKind(k.APIVersion, k.Kind)
		if gvk.Kind == "" || gvk.Version == "" {
			return nil, "", ErrReference.New(nil, "the Package %s names the kind %.100q of %.100q", p.Name, k.Kind, k.APIVersion)
		}
		if err := rbac.CheckDefined([]schema.GroupResource{{Group: gvk.Group, Resource: k.Kind}}); err != nil {
			return nil, "", err
		}
		served, err := r.API.Cluster.SharedKinds(ctx, gvk.Group, apply.Recent)
		if err != nil {
			return nil, "", err
		}
		i := slices.IndexFunc(
			served, func(s apply.ServedKind) bool { return s.Kind == gvk.Kind && slices.Contains(s.Versions, gvk.Version) },
		)
		if i < 0 {
			return nil, k.Kind + " of " + k.APIVersion, nil
		}
		if gr := (schema.GroupResource{Group: gvk.Group, Resource: served[i].Plural}); !slices.Contains(all, gr) {
			all = append(all, gr)
		}
	}
	return all, "", nil
}

// checkDependencies fails if a Package depends on a CRD that is not the name of one.
func checkDependencies(p *packagesv1alpha1.Package) error {
	for _, d := range p.Spec.DependsOn {
		if _, ok := firstgen.ParseCRDReference(d.CRD); ok || d.CRD == "" {
			continue
		}
		if _, err := dependency.ParseKindRef(d.CRD); err != nil {
			return ErrReference.New(err, "the Package %s depends on the CRD %.200q", p.Name, d.CRD).
				WithDo("Write PLURAL.GROUP or PLURAL.GROUP/VERSION in spec.dependsOn, or *.GROUP/VERSION for all kinds of a group.")
		}
	}
	return nil
}

// required returns the resources that a Package depends on. A kind whose plural name is not known yet, because the
// cluster does not serve it, has none.
func (r *Packages) required(ctx context.Context, p *packagesv1alpha1.Package) ([]schema.GroupResource, error) {
	var out []schema.GroupResource
	for _, d := range p.Spec.DependsOn {
		if ref, ok := firstgen.ParseCRDReference(d.CRD); ok {
			out = append(out, schema.GroupResource{Group: ref.Group, Resource: ref.Plural})
			continue
		}
		kind, err := dependency.ParseKindRef(d.CRD)
		if err != nil {
			continue // A package, or no CRD.
		}
		served, err := r.API.Cluster.SharedKinds(ctx, kind.Group, apply.Recent)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(
			served, func(s apply.ServedKind) bool { return kind.Matches(kind.Group, s.Kind, s.Plural, s.Singular) },
		)
		if i >= 0 {
			out = append(out, schema.GroupResource{Group: kind.Group, Resource: served[i].Plural})
		}
	}
	return out, nil
}

// stop stops the controller of a Package, if it runs, and forgets its runtime.
func (r *Packages) stop(ctx context.Context, key types.NamespacedName) error {
	owner := plan.Owner{
		APIVersion: packagesv1alpha1.GroupVersion.String(), Kind: packagesv1alpha1.PackageKind, Namespace: key.Namespace,
		Name: key.Name,
	}
	if by := r.used.use(key, r.NewRuntime); by != nil {
		if _, err := by.Stop(ctx, owner); err != nil {
			return err
		}
	}
	r.used.forget(key, runtime.ProcessName(owner))
	return nil
}

// ownerOf returns a Package as the owner of the objects of its controller.
func ownerOf(p *packagesv1alpha1.Package) plan.Owner {
	return plan.Owner{
		APIVersion: packagesv1alpha1.GroupVersion.String(), Kind: packagesv1alpha1.PackageKind, Namespace: p.Namespace,
		Name: p.Name, UID: p.UID,
	}
}
