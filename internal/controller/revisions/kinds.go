package revisions

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/activation"
	"github.com/xpkg-dev/xpkg/internal/controller/logging"
	"github.com/xpkg-dev/xpkg/internal/controller/requeue"
	"github.com/xpkg-dev/xpkg/internal/controller/status"
	"github.com/xpkg-dev/xpkg/internal/controller/watch"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// packagesFor returns the reader of packages that selects the kinds of Providers for a revision too, which the cache
// may not show yet.
func (r *Reconciler) packagesFor(in *reconciliation) state.Packages {
	out := r.Packages
	if uses, recorded := revision.UsesOf(in.Revision); recorded {
		out.Kinds = out.Kinds.With(activation.Use{
			By: activation.ByConfiguration(in.Package.GetName()), Kinds: uses.Kinds, Open: uses.Open,
		})
	}
	return out
}

// awaitKinds waits until the kinds that a revision uses are active, before it installs the Compositions that use them.
// A revision whose objects are established does not wait, and none waits for a Provider that is not healthy: its
// dependencies are.
func (r *Reconciler) awaitKinds(ctx context.Context, in *reconciliation) error {
	if _, uses := revision.UsesOf(in.Revision); !uses || revision.IsEstablished(in.Revision) {
		return nil
	}
	var missing []string
	packages := r.packagesFor(in)
	for _, rev := range activeProviders(ctx, r.API.Client) {
		if rev.GetCondition(v1.TypeRevisionHealthy).Status != corev1.ConditionTrue || v1.IsPaused(rev) {
			continue
		}
		inactive, err := r.inactiveKinds(ctx, packages, rev)
		if err != nil {
			return err
		}
		if len(inactive) > 0 {
			missing = append(missing, fmt.Sprintf("%s, which activates %s",
				v1.ObjectName(v1.ProviderKind, rev.GetLabels()[v1.LabelPackage]), wording.Few(inactive, maxNamed, ", ")))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return r.awaitDependencies(in, graph.Coming(missing))
}

// maxNamed is the maximum number of kinds in a message.
const maxNamed = 3

// activeProviders returns the active revisions of the Providers that can have inactive kinds. The caller must not
// change them.
func activeProviders(ctx context.Context, c client.Reader) []v1.PackageRevision {
	all := watch.Revisions(ctx, c, v1.ProviderKind)
	return slices.DeleteFunc(all, func(rev v1.PackageRevision) bool {
		return !revision.IsActive(rev) || rev.GetDeletionTimestamp() != nil || !revision.IsSafeStart(rev)
	})
}

// inactiveKinds returns the CRDs of a Provider that are selected for a revision and that the Provider has not written
// yet.
func (r *Reconciler) inactiveKinds(
	ctx context.Context, packages state.Packages, rev v1.PackageRevision,
) ([]string, error) {
	p := v1.NewPackage(v1.ProviderKind)
	err := r.API.Client.Get(ctx, client.ObjectKey{Name: rev.GetLabels()[v1.LabelPackage]}, p)
	if err != nil || v1.IsPaused(p) {
		return nil, client.IgnoreNotFound(err)
	}
	content, _, err := packages.ReadRevision(ctx, rev)
	if err != nil {
		return nil, nil //nolint:nilerr // The Provider reports it.
	}
	selection, err := packages.Kinds.Select(ctx, p, content, rev)
	if err != nil {
		return nil, nil //nolint:nilerr // The Provider reports it.
	}
	written := revision.WrittenDefinitions(rev.RevisionStatus().ObjectRefs)
	var out []string
	for _, k := range selection.Offered {
		if selection.IsActive(k.Name) && !written[k.Name] {
			out = append(out, k.Name)
		}
	}
	return out, nil
}

// awaitsActivation reports whether the runtime of a revision is not needed yet: it could run some kinds, and none of
// them is active. A runtime that has run once keeps running.
func awaitsActivation(in *reconciliation) bool {
	if in.kinds == nil || in.Revision.GetCondition(v1.TypeRuntimeActive).Status == corev1.ConditionTrue {
		return false
	}
	active, offered := in.kinds.Managed()
	return active == 0 && offered > 0
}

// reportKinds records the numbers of kinds in the status, and events about the inactive kinds that something uses, when
// they change: about the package, and about the composite resources that fail with "no matches for kind".
func (r *Reconciler) reportKinds(ctx context.Context, in *reconciliation) error {
	active, offered := in.kinds.Managed()
	in.Revision.RevisionStatus().Kinds = &v1.KindCounts{Active: int64(active), Offered: int64(offered)}
	missed := in.kinds.MissedKinds()
	text := strings.Join(missed, "; ")
	if before, _ := r.Objects.missed.Get(in.Revision.GetUID()); before == text {
		return nil
	}
	if text != "" {
		r.reportMissed(in.Package, "These inactive kinds are used: "+wording.Few(missed, maxNamed, "; "), in.kinds.Missed)
		failed, err := r.Packages.Kinds.Failed(ctx)
		if err != nil {
			return err
		}
		for _, f := range failed {
			needed := maps.Clone(in.kinds.Missed)
			maps.DeleteFunc(needed, func(_ string, by []activation.Reason) bool { return !slices.Contains(by, f.Use.By) })
			if len(needed) > 0 {
				r.reportMissed(f.Of, "It needs kinds of "+v1.ObjectName(r.Kind, in.Package.GetName())+" that are inactive", needed)
			}
		}
	}
	r.Objects.missed.Set(in.Revision.GetUID(), text)
	return nil
}

// reportMissed records an event about an object with the command that activates kinds.
func (r *Reconciler) reportMissed(about k8sruntime.Object, why string, kinds map[string][]activation.Reason) {
	r.API.Status.Events.Eventf(about, nil, corev1.EventTypeWarning, "KindInactive", "Activate", "%s",
		status.Clip(why+". Activate them with `xpkg activate "+strings.Join(slices.Sorted(maps.Keys(kinds)), " ")+
			"`, or with a ManagedResourceActivationPolicy."))
}

// deactivateKinds deletes the CRDs of the kinds that nothing needs any more. It counts their custom resources once more
// before, and again later if they keep a kind active. A runtime that runs is started again, because its informers of a
// kind that is gone would fail for ever.
func (r *Reconciler) deactivateKinds(ctx context.Context, in *reconciliation) error {
	if in.kinds == nil {
		return nil
	}
	if err := r.reportKinds(ctx, in); err != nil {
		return err
	}
	if in.kinds.IsHeld() {
		in.requeueAfter(requeue.Jitter(r.Checks.CountInterval))
	}
	if len(in.kinds.Dropped) > 0 {
		if err := r.deleteKinds(ctx, in); err != nil {
			return err
		}
	}
	r.Objects.deactivating.Forget(in.Revision.GetUID())
	return nil
}

// deleteKinds deletes the CRDs of the kinds that are deactivated.
func (r *Reconciler) deleteKinds(ctx context.Context, in *reconciliation) error {
	live, err := r.API.Cluster.Metadata(ctx, in.kinds.DroppedRefs())
	if err != nil {
		return err
	}
	changes := activation.Deactivations(live, in.Requester())
	if len(changes) == 0 {
		return nil
	}
	if err := r.recordDeactivation(ctx, in); err != nil {
		return err
	}
	used, err := r.Packages.Kinds.InUse(ctx, in.kinds.Dropped)
	if err != nil {
		return err
	}
	if len(used) > 0 {
		return requeue.ErrStale
	}
	if err := r.API.Cluster.DeleteAll(ctx, changes); err != nil {
		return err
	}
	r.Objects.CountWrites(plan.Plan{Changes: changes}, nil)
	logging.FromContext(ctx).InfoContext(ctx, "kinds deactivated", "kinds", in.kinds.Dropped)
	return nil
}

// recordDeactivation records the time of a deactivation on the revision, before its first write: a runtime that was
// started before is started again, also if the manager ends now. A deactivation that failed is not recorded again,
// because no runtime is started before it ends.
func (r *Reconciler) recordDeactivation(ctx context.Context, in *reconciliation) error {
	if recorded, _ := r.Objects.deactivating.Get(in.Revision.GetUID()); !recorded {
		err := r.record(ctx, in, func(rev v1.PackageRevision) { revision.SetDeactivated(rev, r.API.Now()) })
		if err != nil {
			return err
		}
		r.Objects.deactivating.Set(in.Revision.GetUID(), true)
	}
	if in.workload != nil {
		in.workload.spec.Restart = revision.Deactivated(in.Revision)
	}
	return nil
}

// activateNeeded records the inactive kinds without which the runtime exited, so that the next reconciliation activates
// them: the capability of the package is not true for these.
func (r *Reconciler) activateNeeded(ctx context.Context, in *reconciliation, state runtime.State) error {
	needed := in.kinds.NeededBy(state.Log)
	if len(needed) == 0 {
		return nil
	}
	if err := r.record(ctx, in, func(rev v1.PackageRevision) { revision.AddCrashKinds(rev, needed) }); err != nil {
		return err
	}
	r.API.Status.Events.Eventf(in.Revision, nil, corev1.EventTypeWarning, "KindNeededByRuntime", "Activate", "%s",
		status.Clip("The runtime exited because these kinds are inactive, and they are activated: "+strings.Join(needed, ", ")+
			". Report it to the maintainer of the package, whose capability "+xpkg.CapabilitySafeStart+" is not true."))
	return requeue.ErrStale
}

// record changes the annotations of the revision in the API server.
func (r *Reconciler) record(ctx context.Context, in *reconciliation, change func(v1.PackageRevision)) error {
	rev := in.Revision.DeepCopyObject().(v1.PackageRevision)
	change(rev)
	before := in.Revision.DeepCopyObject().(client.Object)
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.API.Client.Patch(ctx, rev, patch); err != nil {
		return fmt.Errorf("annotate %s: %w", rev.GetName(), err)
	}
	in.Revision.SetAnnotations(rev.GetAnnotations())
	in.Revision.SetResourceVersion(rev.GetResourceVersion())
	r.API.Status.Writes.Wrote(in.Revision)
	return nil
}
