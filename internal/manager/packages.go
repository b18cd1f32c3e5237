package manager

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/content"
	"github.com/xpkg-dev/xpkg/internal/failure"
	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/oci"
	"github.com/xpkg-dev/xpkg/internal/revision"
)

// packageReconciler turns a package into revisions: it resolves the reference to
// a digest once, obtains the content, and keeps the revision of that content.
type packageReconciler struct {
	*world
	kind string
	pins pins
}

// Reconcile brings one package up to date.
func (r *packageReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	p := v1.NewPackage(r.kind)
	if err := r.client.Get(ctx, req.NamespacedName, p); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if p.GetDeletionTimestamp() != nil {
		// Revisions and objects go with their owner: they are garbage collected.
		return ctrl.Result{}, nil
	}
	return r.report(ctx, p, p.PackageSpec().Package, func() (ctrl.Result, error) {
		return r.reconcile(ctx, p)
	}, func(err error) []v1.Condition {
		return []v1.Condition{v1.Unpacking(failure.Message(err)), v1.Unhealthy(failure.Message(err))}
	})
}

func (r *packageReconciler) reconcile(ctx context.Context, p v1.Package) (ctrl.Result, error) {
	ref, err := r.pin(ctx, p)
	if err != nil {
		return ctrl.Result{}, err
	}
	pkg, err := r.content.Read(ctx, content.Plain(ref), ref.Digest, revision.MayPull(p.PackageSpec().PackagePullPolicy))
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := revision.SameKind(p, pkg.Meta); err != nil {
		return ctrl.Result{}, err
	}
	revisions, err := r.revisions(ctx, p)
	if err != nil {
		return ctrl.Result{}, err
	}
	name := oci.FriendlyID(p.GetName(), revision.Key(p, ref.Digest.String()))
	decision := revision.Decide(name, revision.States(revisions, name), revision.PolicyOf(p.PackageSpec()))
	if err := r.carryOut(ctx, p, pkg.Meta, ref, name, revisions, decision); err != nil {
		return ctrl.Result{}, err
	}
	status := p.PackageStatus()
	status.CurrentRevision, status.CurrentIdentifier = name, p.PackageSpec().Package
	status.ResolvedPackage, status.ResolvedDigest = ref.String(), ref.Digest.String()
	r.health(p, name, decision.Activate, revisions)
	if p.PackageSpec().PackagePullPolicy == corev1.PullAlways {
		return ctrl.Result{RequeueAfter: r.poll}, nil
	}
	return ctrl.Result{}, nil
}

// pin gives the reference of the package with the digest that it stands for. A
// tag is asked for once: after that the recorded digest holds until the
// reference in the spec changes, or the policy is to ask always (packages guide,
// "spec.packagePullPolicy").
func (r *packageReconciler) pin(ctx context.Context, p v1.Package) (oci.Reference, error) {
	spec := p.PackageSpec()
	ref, err := oci.ParseReference(spec.Package, oci.ParseOptions{})
	if err != nil {
		return oci.Reference{}, err
	}
	if !ref.Digest.IsZero() {
		return ref, nil
	}
	if spec.PackagePullPolicy != corev1.PullAlways {
		if d, ok := r.pins.get(p); ok {
			return ref.WithDigest(d), nil
		}
	}
	if recorded, ok := revision.Recorded(p); ok {
		if d, err := oci.ParseDigest(recorded); err == nil {
			return ref.WithDigest(d), nil
		}
	}
	if !revision.MayPull(spec.PackagePullPolicy) {
		return oci.Reference{}, content.ErrNotCached.New(nil, "no digest is known for %s", spec.Package)
	}
	d, err := r.content.Resolve(ctx, content.Plain(ref), 0)
	if err != nil {
		return oci.Reference{}, err
	}
	r.pins.put(p, d)
	return ref.WithDigest(d), nil
}

// revisions lists the revisions of p.
func (w *world) revisions(ctx context.Context, p v1.Package) ([]v1.PackageRevision, error) {
	list := p.NewRevisionList()
	if err := w.client.List(ctx, list, client.MatchingLabels{v1.LabelPackage: p.GetName()}); err != nil {
		return nil, fmt.Errorf("list revisions: %w", err)
	}
	return list.Revisions(), nil
}

// carryOut makes the revisions what was decided. The old one is deactivated
// before the new one is made active, so that two are never active at once.
func (r *packageReconciler) carryOut(ctx context.Context, p v1.Package, meta format.Meta, ref oci.Reference, name string, revisions []v1.PackageRevision, d revision.Decision) error {
	byName := map[string]v1.PackageRevision{}
	for _, rev := range revisions {
		byName[rev.GetName()] = rev
	}
	for _, n := range d.Deactivate {
		rev := byName[n]
		rev.RevisionSpec().DesiredState = v1.RevisionInactive
		if err := r.client.Update(ctx, rev); err != nil {
			return fmt.Errorf("deactivate %s: %w", n, err)
		}
	}
	if err := r.ensure(ctx, p, meta, ref, byName[name], name, d); err != nil {
		return err
	}
	if d.Activate != "" && d.Activate != name {
		if err := r.number(ctx, byName[d.Activate], d.Number); err != nil {
			return err
		}
	}
	for _, n := range d.Collect {
		if err := r.client.Delete(ctx, byName[n], client.Preconditions{UID: new(byName[n].GetUID())}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("collect old revision %s: %w", n, err)
		}
	}
	return nil
}

// number gives a revision that a person activated its place in the order.
func (r *packageReconciler) number(ctx context.Context, rev v1.PackageRevision, number int64) error {
	if rev.RevisionSpec().Revision == number {
		return nil
	}
	rev.RevisionSpec().Revision = number
	if err := r.client.Update(ctx, rev); err != nil {
		return fmt.Errorf("number %s: %w", rev.GetName(), err)
	}
	return nil
}

// ensure creates the current revision, or brings its spec up to the package's.
func (r *packageReconciler) ensure(ctx context.Context, p v1.Package, meta format.Meta, ref oci.Reference, rev v1.PackageRevision, name string, d revision.Decision) error {
	fresh := rev == nil
	if fresh {
		rev = p.NewRevision()
		rev.SetName(name)
		rev.RevisionSpec().DesiredState = v1.RevisionInactive
	}
	before := rev.DeepCopyObject()
	revision.Mirror(p, meta, ref.Digest.String(), rev)
	if d.Activate == name {
		rev.RevisionSpec().DesiredState, rev.RevisionSpec().Revision = v1.RevisionActive, d.Number
	}
	switch {
	case fresh:
		if err := r.client.Create(ctx, rev); err != nil {
			return fmt.Errorf("create revision %s: %w", name, err)
		}
	case !equality.Semantic.DeepEqual(before, rev.(any)):
		if err := r.client.Update(ctx, rev); err != nil {
			return fmt.Errorf("update revision %s: %w", name, err)
		}
	}
	return nil
}

// health copies what the active revision reports, in upstream's words.
func (r *packageReconciler) health(p v1.Package, current, active string, revisions []v1.PackageRevision) {
	now := metav1.NewTime(r.now())
	if active == current {
		p.SetConditions(now, v1.Active())
	} else {
		p.SetConditions(now, v1.Inactive(fmt.Sprintf("Revision %s waits to be activated: set its spec.desiredState to Active.", current)))
	}
	running := current
	if active != "" {
		running = active
	}
	for _, rev := range revisions {
		if rev.GetName() == running {
			p.SetConditions(now, packageHealth(rev))
			return
		}
	}
	p.SetConditions(now, v1.UnknownHealth("The revision "+running+" was just made."))
}

// packageHealth is the health of a package with this revision: that of its
// objects and, where somebody reports it, that of its runtime.
func packageHealth(rev v1.PackageRevision) v1.Condition {
	objects := rev.GetCondition(v1.TypeRevisionHealthy)
	runtime := rev.GetCondition(v1.TypeRuntimeHealthy)
	switch {
	case objects.Status == corev1.ConditionFalse:
		return v1.Unhealthy(objects.Message)
	case objects.Status != corev1.ConditionTrue:
		return v1.UnknownHealth("Package revision health is not known yet.")
	case runtime.Status == corev1.ConditionFalse:
		return v1.Unhealthy(runtime.Message)
	}
	return v1.Healthy()
}

// revisionOwner finds the package of a revision.
func (w *world) revisionOwner(ctx context.Context, rev v1.PackageRevision) (v1.Package, error) {
	p := v1.NewPackage(rev.PackageKind())
	err := w.client.Get(ctx, types.NamespacedName{Name: rev.GetLabels()[v1.LabelPackage]}, p)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return p, err
}

// defaultPoll is how often a package with the policy Always is looked up
// (packages guide, "spec.packagePullPolicy").
const defaultPoll = time.Minute
