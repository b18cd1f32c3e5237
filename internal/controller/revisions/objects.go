package revisions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/controller/establishment"
	"github.com/xpkg-dev/xpkg/internal/controller/expectations"
	"github.com/xpkg-dev/xpkg/internal/controller/logging"
	"github.com/xpkg-dev/xpkg/internal/controller/reservations"
	"github.com/xpkg-dev/xpkg/internal/controller/watch"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// Objects configures and tracks the writes of the objects of revisions.
type Objects struct {
	Reservations *reservations.Reservations
	// CountWrites counts the changes of a plan that were carried out.
	CountWrites func(plan.Plan, map[plan.Ref]plan.Written)
	// Establishment follows the CRDs that the API server establishes.
	Establishment *establishment.Tracker
	// written holds the written objects that the statuses do not record yet.
	written expectations.Cache[types.UID, map[plan.Ref]plan.Written]
	// missed are the inactive kinds that the last events reported.
	missed expectations.Cache[types.UID, string]
	// deactivating are the revisions whose last deactivation of kinds is recorded and has not ended.
	deactivating expectations.Cache[types.UID, bool]
}

// reserveObjects reserves the objects of a revision against other packages that are being installed, and the CRDs that
// Crossplane creates from them.
func (r *Reconciler) reserveObjects(_ context.Context, in *reconciliation) error {
	composed, err := in.objects.ComposedCRDs()
	if err != nil {
		return err
	}
	return r.Objects.Reservations.Of(in.Package).Reserve(in.objects.Refs(), composed)
}

// planObjects compares the objects of a revision with the live ones, and checks that the API server
// will accept the changes. It commits the reservation and records the planned objects in the
// status. Webhook configurations are separated, because they are written once the runtime serves
// them.
func (r *Reconciler) planObjects(ctx context.Context, in *reconciliation) error {
	refs := in.objects.Refs()
	known := r.Objects.knownWrites(in.Siblings)
	live, err := r.liveObjects(ctx, in.objects.Desired(), known, in.Requester())
	if err != nil {
		return err
	}
	p := plan.Establish(in.objects.Desired(), live, known, in.Requester())
	breaks := apply.Breaks{
		Accepted: revision.AcceptedBreaks(in.Package, in.Revision),
		Command:  fmt.Sprintf("xpkg update %s %s", revision.ObjectName(in.Package), in.Revision.RevisionSpec().Image),
	}
	if p, err = r.API.Cluster.Preflight(ctx, p, in.objects.Content, breaks); err != nil {
		return err
	}
	if err := r.Objects.Reservations.Of(in.Package).Commit(p); err != nil {
		return err
	}
	in.changes, in.webhooks = p.Hold()
	in.restored = restoredObjects(in.changes, known)
	status := in.Revision.RevisionStatus()
	status.ObjectsToAdopt = nil
	for _, refusal := range p.Refusals {
		if refusal.Cause == plan.NeedsAdoption {
			status.ObjectsToAdopt = append(status.ObjectsToAdopt, refusal.Ref.ObjectName())
		}
	}
	if len(p.Refusals) == 0 {
		status.ObjectRefs = plannedRefs(refs, live, known, p)
	}
	return nil
}

// liveObjects returns the metadata of the objects that exist. Objects that are settled according to their watch, or
// that neither the watch nor a record of a write shows, are not read from the API server: an event reports a change
// that the cache does not show yet, and the revision is reconciled again; an object that another client has just
// created is not overwritten. So neither the first installation of many packages nor a restart of the manager reads the
// objects one by one.
func (r *Reconciler) liveObjects(
	ctx context.Context, desired []plan.Desired, known map[plan.Ref]plan.Written, who plan.Requester,
) (map[plan.Ref]plan.Live, error) {
	settled, rest, watchedKinds := map[plan.Ref]plan.Live{}, []plan.Ref(nil), r.watchedKinds()
	for _, d := range desired {
		l, exists, watched := r.watchedObject(ctx, watchedKinds, d.Ref)
		_, written := known[d.Ref]
		switch {
		case exists && plan.IsSettled(d, l, known, who):
			settled[d.Ref] = l
		case watched && !exists && !written:
		default:
			rest = append(rest, d.Ref)
		}
	}
	live, err := r.API.Cluster.Metadata(ctx, rest)
	if err != nil {
		return nil, err
	}
	maps.Copy(live, settled)
	return live, nil
}

// watchedObject returns the metadata of an object, without managed fields, from the watch of its kind, if it is one of
// the watched kinds.
func (r *Reconciler) watchedObject(
	ctx context.Context, kinds []schema.GroupVersionKind, ref plan.Ref,
) (l plan.Live, exists, watched bool) {
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	if !slices.Contains(kinds, gvk) {
		return plan.Live{}, false, false
	}
	o := watch.Metadata(gvk)
	err := r.API.Client.Get(ctx, client.ObjectKey{Name: ref.Name}, o)
	if err != nil {
		return plan.Live{}, false, apierrors.IsNotFound(err)
	}
	return apply.Known(ref, o), true, true
}

// checkAdmitted returns the error of a dry run of the changes of an update and of its roles, if an admission policy or
// webhook may deny one of them. It omits bindings, which the API server refuses without their roles.
func (r *Reconciler) checkAdmitted(ctx context.Context, in *reconciliation) error {
	changes, content := in.changes, in.objects.Content
	if len(changes.Changes) > 0 && r.Checks.Permissions != nil && r.Kind != v1.ConfigurationKind {
		input, err := r.permissionInput(ctx, in)
		if err != nil {
			return err
		}
		roles, err := r.planRoles(ctx, in.Set, input)
		if err != nil {
			return err
		}
		isRole := func(ref plan.Ref) bool { return ref.Kind == "ClusterRole" || ref.Kind == "Role" }
		changes.Changes = slices.Clone(changes.Changes)
		for _, ch := range roles.plan.Changes {
			if isRole(ch.Ref) {
				changes.Changes = append(changes.Changes, ch)
			}
		}
		content = func(ref plan.Ref) ([]byte, error) {
			if isRole(ref) {
				return roles.content(ref)
			}
			return in.objects.Content(ref)
		}
	}
	return r.API.Cluster.CheckAdmitted(ctx, changes, content, hasReason(in.Revision, apply.ErrDenied.Name))
}

// applyObjects writes the changes that were planned, except for webhook configurations. An update of which an object is
// denied writes nothing.
func (r *Reconciler) applyObjects(ctx context.Context, in *reconciliation) error {
	in.wrote = hasReason(in.Revision, apply.ErrPartial.Name)
	if !isFirstInstall(in) {
		if err := r.checkAdmitted(ctx, in); err != nil {
			return err
		}
	}
	err := r.apply(ctx, in, in.changes)
	in.wrote = in.wrote || err == nil
	return err
}

// apply writes the changes of a plan, or fails with its refusals, and records the written objects in the
// status.
func (r *Reconciler) apply(ctx context.Context, in *reconciliation, p plan.Plan) error {
	started := r.API.Now()
	if err := r.dryRunRejected(ctx, in, p); err != nil {
		return err
	}
	written, err := r.reportMigrations(ctx, in, p).Run(ctx, p, in.objects.Content)
	r.Objects.CountWrites(p, written)
	in.wrote = in.wrote || len(written) > 0
	if err != nil {
		err = r.undo(ctx, in, p, written, err)
	}
	r.Objects.recordWrites(in.Revision, written)
	r.reportRestored(in, written)
	recordRefs(in.Revision.RevisionStatus(), written)
	if err != nil {
		return err
	}
	if len(written) > 0 {
		logging.FromContext(ctx).InfoContext(ctx, "objects written", "written", len(written), "unchanged", p.Unchanged,
			"took", r.API.Now().Sub(started).Round(time.Millisecond))
	}
	return nil
}

// plannedRefs returns the objects that a revision writes, including objects that do not exist yet,
// but no webhook configuration that does not exist yet. An object with new content keeps the
// generation of its last write until it is written: if the write fails, the next plan must still
// see that it differs.
func plannedRefs(
	refs []plan.Ref, live map[plan.Ref]plan.Live, known map[plan.Ref]plan.Written, p plan.Plan,
) []v1.TypedReference {
	changes := map[plan.Ref]plan.Change{}
	for _, c := range p.Changes {
		changes[c.Ref] = c
	}
	out := make([]v1.TypedReference, 0, len(refs))
	for _, ref := range refs {
		l, exists := live[ref]
		c, changed := changes[ref]
		if !exists && changed && plan.IsWebhookConfiguration(ref) {
			continue
		}
		written := plan.Written{UID: l.UID, Generation: l.Generation}
		if changed && !c.MetadataOnly {
			written.Generation = 0
			if w := known[ref]; w.UID == l.UID {
				written.Generation = w.Generation
			}
		}
		out = append(out, typedReference(ref, written))
	}
	return out
}

func typedReference(ref plan.Ref, w plan.Written) v1.TypedReference {
	return v1.TypedReference{
		APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name, UID: w.UID, Generation: w.Generation,
	}
}

// recordRefs adds written objects to the list in the status of a revision.
func recordRefs(status *v1.PackageRevisionStatus, written map[plan.Ref]plan.Written) {
	rest := maps.Clone(written)
	for i, r := range status.ObjectRefs {
		ref := plan.Ref{APIVersion: r.APIVersion, Kind: r.Kind, Name: r.Name}
		if w, ok := written[ref]; ok {
			status.ObjectRefs[i] = typedReference(ref, w)
			delete(rest, ref)
		}
	}
	for _, ref := range slices.SortedFunc(maps.Keys(rest), plan.Ref.Compare) {
		status.ObjectRefs = append(status.ObjectRefs, typedReference(ref, rest[ref]))
	}
}

// recordWrites records the objects that were just written for a revision.
func (o *Objects) recordWrites(rev v1.PackageRevision, written map[plan.Ref]plan.Written) {
	if len(written) == 0 {
		return
	}
	o.written.Update(rev.GetUID(), func(all map[plan.Ref]plan.Written) map[plan.Ref]plan.Written {
		out := maps.Clone(all)
		if out == nil {
			out = map[plan.Ref]plan.Written{}
		}
		maps.Copy(out, written)
		return out
	})
}

// knownWrites returns the last writes of the objects of a package: the writes in the statuses of
// its revisions, and writes that the statuses do not contain yet.
func (o *Objects) knownWrites(revisions []v1.PackageRevision) map[plan.Ref]plan.Written {
	known := revision.Written(revisions)
	for _, rev := range revisions {
		pending, _ := o.written.Pending(rev.GetUID(), func(all map[plan.Ref]plan.Written) bool {
			for ref, w := range all {
				if w.Generation > known[ref].Generation || w.UID != known[ref].UID {
					return false
				}
			}
			return true
		})
		for ref, w := range pending {
			if w.Generation > known[ref].Generation || w.UID != known[ref].UID {
				known[ref] = w
			}
		}
	}
	return known
}

// adviseDuplicate returns the error of a revision whose objects belong to another package. If that is the same package
// under another name, the error says so and advises which of them to uninstall.
func (r *Reconciler) adviseDuplicate(ctx context.Context, in *reconciliation, err error) error {
	if !errors.Is(err, apply.ErrRefused) {
		return err
	}
	packages, _, listErr := state.ListPackages(ctx, r.API.Client, in.Package.PackageKind())
	if listErr != nil {
		return err
	}
	i := slices.IndexFunc(packages, func(other v1.Package) bool { return isDuplicate(in.Package, other) })
	if i < 0 {
		return err
	}
	return errcode.From(err).WithDo("%s", duplicateAdvice(in.Package, packages[i]))
}

// isDuplicate reports whether another package has the same content, or is from the same repository after rewriting.
func isDuplicate(p, other v1.Package) bool {
	digest := p.PackageStatus().ResolvedDigest
	return p.GetName() != other.GetName() &&
		(oci.SameRepository(resolvedImage(p), resolvedImage(other)) ||
			digest != "" && digest == other.PackageStatus().ResolvedDigest)
}

// resolvedImage returns the reference from which a package is downloaded.
func resolvedImage(p v1.Package) string {
	return cmp.Or(p.PackageStatus().ResolvedPackage, p.PackageSpec().Package)
}

func duplicateAdvice(p, other v1.Package) string {
	name, otherName := revision.ObjectName(p), revision.ObjectName(other)
	return fmt.Sprintf("%s and %s are the same package. Uninstall one of them, as with `xpkg uninstall %s`. To change the version of the other, use `xpkg update %s`. Nothing was written.",
		name, otherName, name, otherName)
}
