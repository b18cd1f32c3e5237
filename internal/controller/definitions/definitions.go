// Package definitions maintains the ManagedResourceDefinitions of Providers, which show which kinds are active, and the
// statuses of the policies that activate them. Users, dashboards and Compositions read them. In a cluster with
// Crossplane core, core does.
//
// A definition has no schema: the CRD of an active kind has it, and an inactive kind has no other object. A kind that
// was never active has no condition. The definitions of a Provider are written once it is healthy, and not read by what
// decides about kinds, other than that a user can activate a kind by the state of its definition.
package definitions

import (
	"context"
	"maps"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/apis/apiextensions/v1alpha1"
	"github.com/xpkg-dev/xpkg/apis/crds"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/activation"
	"github.com/xpkg-dev/xpkg/internal/controller/requeue"
	"github.com/xpkg-dev/xpkg/internal/controller/status"
	"github.com/xpkg-dev/xpkg/internal/controller/watch"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// Reconciler maintains the definitions of one Provider.
type Reconciler struct {
	// Cache reads definitions, as [state.OnlyKinds] reduces them, and the metadata of CRDs.
	Cache    client.Reader
	Client   client.Client
	Packages state.Packages
	// Guard fails while Crossplane core would write the same objects.
	Guard func(context.Context) error
	Now   func() metav1.Time
}

// writers bounds the concurrent writes of definitions, which must not delay those of packages.
const writers = 4

// Reconcile writes the definitions of one Provider that differ from its kinds.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	p := v1.NewPackage(v1.ProviderKind)
	if err := r.Client.Get(ctx, req.NamespacedName, p); err != nil || p.GetDeletionTimestamp() != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if v1.IsPaused(p) {
		return ctrl.Result{}, nil
	}
	if err := r.Guard(ctx); err != nil {
		return ctrl.Result{RequeueAfter: requeue.Jitter(status.BlockedPause)}, nil //nolint:nilerr // The packages report it.
	}
	live, err := r.live(ctx, p)
	if err != nil {
		return ctrl.Result{}, err
	}
	maintains, err := isMaintained(ctx, r.Cache)
	if err != nil {
		return ctrl.Result{}, err
	}
	// Crossplane core would create CRDs without schemas from the definitions of the manager.
	want := map[string]*unstructured.Unstructured{}
	if known := false; maintains {
		if want, known, err = r.wanted(ctx, p); err != nil {
			return ctrl.Result{}, err
		}
		if !known {
			return stale(r.setTerminating(ctx, live))
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for name, w := range want {
		if isWish(p, w, live[name]) {
			continue
		}
		group.Go(func() error { return r.write(ctx, w, live[name]) })
	}
	for name, l := range live {
		if want[name] == nil {
			group.Go(func() error { return client.IgnoreNotFound(r.Client.Delete(ctx, l)) })
		}
	}
	return stale(group.Wait())
}

// isMaintained reports whether the manager maintains definitions: the kind has the definition that it has installed,
// and not that of Crossplane core.
func isMaintained(ctx context.Context, c client.Reader) (bool, error) {
	crd := watch.Definitions()
	err := c.Get(ctx, client.ObjectKey{Name: definitionOfDefinitions}, crd)
	return crd.Labels[crds.LabelPermissive] == "true", client.IgnoreNotFound(err)
}

// definitionOfDefinitions is the CRD of definitions.
const definitionOfDefinitions = "managedresourcedefinitions." + v1alpha1.Group

// wanted returns the definitions that a Provider should have, by name, and false if that is not known yet. A Provider
// whose kinds are always active has none.
func (r *Reconciler) wanted(
	ctx context.Context, p v1.Package,
) (out map[string]*unstructured.Unstructured, known bool, err error) {
	revisions, err := state.RevisionsOf(ctx, r.Client, p)
	if err != nil {
		return nil, false, err
	}
	for _, rev := range revisions {
		if !revision.IsActive(rev) {
			continue
		}
		if !revision.IsEstablished(rev) || rev.GetCondition(v1.TypeRevisionHealthy).Status != corev1.ConditionTrue {
			return nil, false, nil
		}
		pkg, _, err := r.Packages.ReadRevision(ctx, rev)
		if err != nil {
			return nil, false, nil //nolint:nilerr // The revision reports it.
		}
		out = map[string]*unstructured.Unstructured{}
		if !pkg.Meta.HasCapability(xpkg.CapabilitySafeStart) {
			return out, true, nil
		}
		offered, err := activation.OfferedBy(pkg)
		if err != nil {
			return nil, false, err
		}
		established := revision.WrittenDefinitions(rev.RevisionStatus().ObjectRefs)
		for _, k := range offered {
			out[k.Name] = definitionOf(p, k, established[k.Name])
		}
		return out, true, nil
	}
	return nil, false, nil
}

// setTerminating sets the conditions of the active definitions whose CRDs are being deleted, or are deleted.
func (r *Reconciler) setTerminating(ctx context.Context, live map[string]*unstructured.Unstructured) error {
	for name, l := range live {
		if !state.IsActiveDefinition(l) {
			continue
		}
		crd := watch.Definitions()
		err := r.Cache.Get(ctx, client.ObjectKey{Name: name}, crd)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err == nil && crd.DeletionTimestamp == nil {
			continue
		}
		if err := setCondition(ctx, r.Client, r.Now(), l, v1alpha1.TerminatingManagedResource()); err != nil {
			return err
		}
	}
	return nil
}

// live returns the definitions that the manager has written for a Provider.
func (r *Reconciler) live(ctx context.Context, p v1.Package) (map[string]*unstructured.Unstructured, error) {
	all, err := state.List(ctx, r.Cache, state.DefinitionGVK)
	out := map[string]*unstructured.Unstructured{}
	for i := range all {
		c := metav1.GetControllerOf(&all[i])
		if c != nil && c.Kind == v1.ProviderKind && c.Name == p.GetName() &&
			all[i].GetAnnotations()[plan.ContentDigestAnnotation] != "" {
			out[all[i].GetName()] = &all[i]
		}
	}
	return out, err
}

// isWish reports whether a user has activated a kind by the state of its definition, which is the only record of that
// until the kind is active. A kind that is to be deactivated has no wish.
func isWish(p v1.Package, want, live *unstructured.Unstructured) bool {
	if live == nil || state.IsActiveDefinition(want) || !state.IsActivated(live) {
		return false
	}
	// The revision reports malformed patterns.
	deactivate, _ := activation.ParsePatterns(p.GetAnnotations()[activation.AnnotationDeactivate])
	return !activation.Match(deactivate, live.GetName())
}

// write writes a definition that differs from the live one, which is nil if there is none, and its status.
func (r *Reconciler) write(ctx context.Context, want, live *unstructured.Unstructured) error {
	condition := conditionOf(want)
	switch {
	case live == nil:
		live = want.DeepCopy()
		if err := r.Client.Create(ctx, live, client.FieldOwner(plan.FieldManager)); err != nil {
			return err
		}
	case live.GetDeletionTimestamp() != nil:
		return nil
	case state.SpecDigest(live) != state.SpecDigest(want) ||
		state.IsActiveDefinition(want) != state.IsActiveDefinition(live):
		next := want.DeepCopy()
		next.SetUID(live.GetUID())
		next.SetResourceVersion(live.GetResourceVersion())
		next.SetLabels(desired.Overlay(live.GetLabels(), want.GetLabels()))
		next.SetAnnotations(desired.Overlay(live.GetAnnotations(), want.GetAnnotations()))
		if err := r.Client.Update(ctx, next, client.FieldOwner(plan.FieldManager)); err != nil {
			return err
		}
		next.Object["status"] = live.Object["status"]
		live = next
	}
	if !state.IsActiveDefinition(want) && len(conditionsOf(live).Conditions) == 0 {
		return nil // It was never active. The write of its status would double the cost of an inactive kind.
	}
	return setCondition(ctx, r.Client, r.Now(), live, condition)
}

// definitionOf returns the definition of a kind of a Provider.
func definitionOf(p v1.Package, k activation.Kind, active bool) *unstructured.Unstructured {
	d := k.Definition
	names := map[string]any{
		"kind": d.Kind, "listKind": d.Kind + "List", "plural": d.Plural, "singular": d.Singular,
	}
	if len(d.ShortNames) > 0 {
		names["shortNames"] = anyStrings(d.ShortNames)
	}
	versions := []any{}
	for _, v := range d.Versions {
		versions = append(versions, map[string]any{"name": v.Name, "served": v.Served, "storage": v.Storage})
	}
	spec := map[string]any{"group": d.Group, "names": names, "scope": d.Scope, "versions": versions}
	if spec["state"] = v1alpha1.Inactive; active {
		spec["state"] = v1alpha1.Active
	}
	out := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	out.SetGroupVersionKind(state.DefinitionGVK)
	out.SetName(k.Name)
	out.SetLabels(map[string]string{v1.LabelPackage: p.GetName()})
	out.SetAnnotations(map[string]string{plan.ContentDigestAnnotation: state.SpecDigest(out)})
	out.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: v1.GroupVersion.String(), Kind: p.PackageKind(), Name: p.GetName(), UID: p.GetUID(),
		Controller: new(true), BlockOwnerDeletion: new(true),
	}})
	return out
}

func anyStrings(all []string) []any {
	out := make([]any, len(all))
	for i, s := range all {
		out[i] = s
	}
	return out
}

func conditionOf(definition *unstructured.Unstructured) v1.Condition {
	if state.IsActiveDefinition(definition) {
		return v1alpha1.EstablishedManagedResource()
	}
	return v1alpha1.InactiveManagedResource()
}

// setCondition writes conditions that differ from those of an object. Other parts of the status stay.
func setCondition(
	ctx context.Context, c client.Client, now metav1.Time, o *unstructured.Unstructured, conditions ...v1.Condition,
) error {
	was, is := conditionsOf(o), conditionsOf(o)
	is.SetConditions(o.GetGeneration(), now, conditions...)
	if sameConditions(was, is) {
		return nil
	}
	return writeStatus(ctx, c, o, is, nil)
}

// writeStatus writes the conditions of an object, and further fields of its status. Others stay.
func writeStatus(
	ctx context.Context, c client.Client, o *unstructured.Unstructured, conditions v1.ConditionedStatus,
	fields map[string]any,
) error {
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&conditions)
	if err != nil {
		return err
	}
	written := o.DeepCopy()
	if former, ok := written.Object["status"].(map[string]any); ok {
		maps.Copy(former, status)
		status = former
	}
	maps.Copy(status, fields)
	written.Object["status"] = status
	return client.IgnoreNotFound(c.Status().Update(ctx, written, client.FieldOwner(plan.FieldManager)))
}

func conditionsOf(o *unstructured.Unstructured) (out v1.ConditionedStatus) {
	status, _ := o.Object["status"].(map[string]any)
	if runtime.DefaultUnstructuredConverter.FromUnstructured(status, &out) != nil {
		return v1.ConditionedStatus{} // Another client wrote it.
	}
	return out
}

func sameConditions(a, b v1.ConditionedStatus) bool {
	if len(a.Conditions) != len(b.Conditions) {
		return false
	}
	for i := range a.Conditions {
		x, y := a.Conditions[i], b.Conditions[i]
		if x.Type != y.Type || x.Status != y.Status || x.Reason != y.Reason || x.Message != y.Message ||
			x.ObservedGeneration != y.ObservedGeneration {
			return false
		}
	}
	return true
}
