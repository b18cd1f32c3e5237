package manager

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/content"
	"github.com/xpkg-dev/xpkg/internal/desired"
	"github.com/xpkg-dev/xpkg/internal/failure"
	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/oci"
	"github.com/xpkg-dev/xpkg/internal/plan"
	"github.com/xpkg-dev/xpkg/internal/revision"
)

// revisionReconciler brings the objects of one kind of revision into the cluster
// and keeps them there.
type revisionReconciler struct {
	*world
	kind string
}

// Reconcile brings one revision up to date.
func (r *revisionReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	rev := v1.NewPackage(r.kind).NewRevision()
	if err := r.client.Get(ctx, req.NamespacedName, rev); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if rev.GetDeletionTimestamp() != nil {
		return ctrl.Result{}, nil
	}
	return r.report(ctx, rev, rev.RevisionSpec().Image, func() (ctrl.Result, error) {
		return r.reconcile(ctx, rev)
	}, func(err error) []v1.Condition {
		return []v1.Condition{v1.RevisionUnhealthy(failure.Message(err))}
	})
}

func (r *revisionReconciler) reconcile(ctx context.Context, rev v1.PackageRevision) (ctrl.Result, error) {
	p, err := r.revisionOwner(ctx, rev)
	if err != nil || p == nil || p.GetDeletionTimestamp() != nil {
		// Without its package a revision is garbage, and is collected.
		return ctrl.Result{}, err
	}
	siblings, err := r.revisions(ctx, p)
	if err != nil {
		return ctrl.Result{}, err
	}
	who := revision.Requester(p, rev, siblings)
	switch {
	case rev.RevisionSpec().DesiredState == v1.RevisionActive:
		return r.establish(ctx, rev, who)
	case takingOver(p, siblings):
		// The active revision takes control with the same write that brings its
		// content. What it leaves is released when it is done.
		return ctrl.Result{RequeueAfter: handOverPoll}, nil
	}
	return ctrl.Result{}, r.deactivate(ctx, rev, who)
}

// handOverPoll is how often an inactive revision looks whether the active one is
// done. Looking costs no call: revisions are read from memory.
const handOverPoll = time.Second

// takingOver reports whether another revision is about to take the objects: an
// active one that has not established them yet, or the one that the package is
// about to activate.
func takingOver(p v1.Package, siblings []v1.PackageRevision) bool {
	for _, s := range siblings {
		if s.RevisionSpec().DesiredState == v1.RevisionActive {
			healthy := s.GetCondition(v1.TypeRevisionHealthy)
			return healthy.Status != corev1.ConditionTrue || healthy.ObservedGeneration != s.GetGeneration()
		}
	}
	return revision.PolicyOf(p.PackageSpec()).Automatic
}

// establish makes the revision the controller of all its objects, or of none.
func (r *revisionReconciler) establish(ctx context.Context, rev v1.PackageRevision, who plan.Requester) (ctrl.Result, error) {
	pkg, err := r.read(ctx, rev)
	if err != nil {
		return ctrl.Result{}, err
	}
	describe(rev, pkg.Meta)
	if err := r.dependencies(ctx, rev, pkg.Meta); err != nil {
		return ctrl.Result{}, err
	}
	objects, err := desired.Of(pkg, revision.Additions(rev, r.namespace))
	if err != nil {
		return ctrl.Result{}, err
	}
	live, err := r.cluster.Metadata(ctx, objects.Refs())
	if err != nil {
		return ctrl.Result{}, err
	}
	p := plan.Establish(objects.Desired(), live, nil, who)
	written, err := r.cluster.Run(ctx, p, objects.Content)
	if err != nil {
		return ctrl.Result{}, err
	}
	rev.RevisionStatus().ObjectRefs = objectRefs(objects.Refs(), live, written)
	return r.established(ctx, rev, objects)
}

// read gives the content of the revision by the digest that it was made for.
func (r *revisionReconciler) read(ctx context.Context, rev v1.PackageRevision) (*format.Package, error) {
	spec := rev.RevisionSpec()
	ref, err := oci.ParseReference(spec.Image, oci.ParseOptions{})
	if err != nil {
		return nil, err
	}
	if spec.Digest != "" {
		d, err := oci.ParseDigest(spec.Digest)
		if err != nil {
			return nil, err
		}
		ref = ref.WithDigest(d)
	}
	if ref.Digest.IsZero() {
		// The revision was made by another package manager, which does not
		// record what it resolved.
		d, err := r.content.Resolve(ctx, content.Plain(ref), 0)
		if err != nil {
			return nil, err
		}
		ref = ref.WithDigest(d)
	}
	rev.RevisionStatus().ResolvedImage = ref.String()
	return r.content.Read(ctx, content.Plain(ref), ref.Digest, revision.MayPull(spec.PackagePullPolicy))
}

// describe copies what the package says of itself to the status.
func describe(rev v1.PackageRevision, meta format.Meta) {
	rev.RevisionStatus().Capabilities = meta.Capabilities
	rev.RevisionStatus().PermissionRequests = meta.PermissionRequests
}

func objectRefs(refs []plan.Ref, live map[plan.Ref]plan.Live, written map[plan.Ref]plan.Written) []v1.TypedReference {
	out := make([]v1.TypedReference, 0, len(refs))
	for _, ref := range refs {
		uid := live[ref].UID
		if w, ok := written[ref]; ok {
			uid = w.UID
		}
		out = append(out, v1.TypedReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name, UID: uid})
	}
	return out
}

const (
	// establishedPoll is how often the API server is asked whether it serves
	// the new kinds, and establishedWait for how long one attempt waits before
	// it reports how far it has come.
	establishedPoll = 250 * time.Millisecond
	establishedWait = 10 * time.Second
)

// established waits until the API server serves every kind that the package
// defines: a revision whose kinds cannot be used yet is not healthy.
func (r *revisionReconciler) established(ctx context.Context, rev v1.PackageRevision, objects *desired.Objects) (ctrl.Result, error) {
	deadline, stall := r.now().Add(establishedWait), stall{}
	for {
		missing, err := r.missing(ctx, objects)
		if err != nil {
			return ctrl.Result{}, err
		}
		if len(missing) == 0 {
			rev.SetConditions(metav1.NewTime(r.now()), v1.RevisionHealthy())
			return ctrl.Result{}, nil
		}
		if stall.lasts(len(missing), r.now()) {
			if err := r.wake(ctx, missing); err != nil {
				return ctrl.Result{}, err
			}
		}
		if r.now().After(deadline) {
			return r.reportMissing(ctx, rev, missing, objects.Definitions())
		}
		select {
		case <-ctx.Done():
			return ctrl.Result{}, ctx.Err()
		case <-time.After(establishedPoll):
		}
	}
}

// missing lists the definitions whose kinds the API server does not serve yet.
func (w *world) missing(ctx context.Context, objects *desired.Objects) ([]string, error) {
	if objects.Definitions() == 0 {
		return nil, nil
	}
	served, err := w.cluster.Served(ctx)
	return objects.Missing(served), err
}

// reportMissing says how far the API server has come.
func (r *revisionReconciler) reportMissing(ctx context.Context, rev v1.PackageRevision, missing []string, total int) (ctrl.Result, error) {
	why, err := r.cluster.WhyNotEstablished(ctx, missing[0])
	if err != nil {
		return ctrl.Result{}, err
	}
	rev.SetConditions(metav1.NewTime(r.now()), v1.RevisionUnhealthy(fmt.Sprintf(
		"NotEstablished: %d of %d CustomResourceDefinitions are established; waiting for %s: %s", total-len(missing), total, missing[0], why)))
	return ctrl.Result{RequeueAfter: time.Second}, nil
}

// deactivate makes the revision a mere owner of its objects. What it once
// established is known from its status; a revision that never was active reads
// its package to know what it would bring.
func (r *revisionReconciler) deactivate(ctx context.Context, rev v1.PackageRevision, who plan.Requester) error {
	refs := revision.Objects(rev)
	if len(refs) == 0 {
		pkg, err := r.read(ctx, rev)
		if err != nil {
			return err
		}
		describe(rev, pkg.Meta)
		objects, err := desired.Of(pkg, revision.Additions(rev, r.namespace))
		if err != nil {
			return err
		}
		refs = objects.Refs()
	}
	live, err := r.cluster.Metadata(ctx, refs)
	if err != nil && !apply.ErrKindNotServed.Is(err) {
		return err
	}
	if _, err := r.cluster.Run(ctx, plan.Deactivate(refs, live, who), nil); err != nil {
		return err
	}
	rev.SetConditions(metav1.NewTime(r.now()), v1.RevisionHealthy())
	return nil
}

// waitsForDependencies reports whether a revision could become healthy because
// another package was installed or changed.
func waitsForDependencies(rev v1.PackageRevision) bool {
	s := rev.RevisionStatus()
	return rev.RevisionSpec().DesiredState == v1.RevisionActive &&
		(s.InstalledDependencies < s.FoundDependencies || s.InvalidDependencies > 0)
}
