package packages

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/controller/watch"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// The deletion of a package deletes its CRDs and XRDs, and thereby their custom resources. This needs the
// runtime, which removes its finalizers once the external resources are deleted, and converts
// custom resources that are stored in an older version. So a finalizer keeps the package, and its
// runtime runs, until its definitions are deleted (crossplane/crossplane#4251). The CRDs that the runtime
// needs for that are deleted last. With custom resources, nothing is deleted before a user has answered what happens to
// them (crossplane/crossplane#6001).

// needsFinalizer reports whether the manager has work to do when a package is deleted: it deletes the definitions, or
// has adopted objects of users, which must be released.
func needsFinalizer(p v1.Package) bool {
	return p.PackageKind() != v1.FunctionKind || len(revision.Adoptions(p)) > 0
}

// ensureFinalizer adds the finalizer to a package that needs it, and removes it from others. It is
// called before any object of the package is written.
func (r *Reconciler) ensureFinalizer(ctx context.Context, p v1.Package) error {
	needed := needsFinalizer(p)
	if controllerutil.ContainsFinalizer(p, v1.FinalizerRuntimeProtection) == needed {
		return nil
	}
	changed := p.DeepCopyObject().(v1.Package)
	if needed {
		controllerutil.AddFinalizer(changed, v1.FinalizerRuntimeProtection)
	} else {
		controllerutil.RemoveFinalizer(changed, v1.FinalizerRuntimeProtection)
	}
	return r.writeFinalizers(ctx, p, changed)
}

// writeFinalizers writes the finalizers of a package.
func (r *Reconciler) writeFinalizers(ctx context.Context, p, changed v1.Package) error {
	if err := r.API.Client.Update(ctx, changed); err != nil {
		return fmt.Errorf("write the finalizers of %s: %w", p.GetName(), err)
	}
	p.SetFinalizers(changed.GetFinalizers())
	p.SetResourceVersion(changed.GetResourceVersion())
	r.API.Status.Writes.Wrote(p)
	return nil
}

// reconcileDelete deletes the webhook configurations of a package that is being deleted, releases
// its adopted objects, deletes its definitions, and removes the finalizer when they are gone.
//
// A deletion with kubectl delete --cascade=orphan keeps the objects: the garbage collector removes the package from
// their owners, and then the finalizer of such a deletion.
func (r *Reconciler) reconcileDelete(ctx context.Context, p v1.Package) (ctrl.Result, revision.Summary, error) {
	if controllerutil.ContainsFinalizer(p, metav1.FinalizerOrphanDependents) {
		return ctrl.Result{RequeueAfter: r.deletionPoll(p)},
			revision.Progressing("The package is being deleted, and its objects are kept."), nil
	}
	revisions, err := state.RevisionsOf(ctx, r.API.Client, p)
	if err != nil {
		return ctrl.Result{}, revision.Summary{}, err
	}
	answer, invalid := revision.OnDeleteOf(p)
	if answer.Orphan {
		if err := r.orphan(ctx, p, revisions); err != nil {
			return ctrl.Result{}, revision.Summary{}, err
		}
		return r.endDeletion(ctx, p)
	}
	d, err := r.deletionOf(ctx, p, revisions)
	if err != nil {
		return ctrl.Result{}, revision.Summary{}, err
	}
	if why, err := r.heldBecause(ctx, p, d, answer, invalid); why != "" || err != nil {
		return ctrl.Result{RequeueAfter: heldPoll},
			revision.Summary{Waiting: true, Reason: v1.ReasonCustomResourcesExist, Message: why}, err
	}
	if err := r.deleteWebhooks(ctx, p, revisions); err != nil {
		return ctrl.Result{}, revision.Summary{}, err
	}
	if err := r.releaseAdopted(ctx, p, revisions); err != nil {
		return ctrl.Result{}, revision.Summary{}, err
	}
	if err := r.API.Cluster.DeleteAll(ctx, d.next); err != nil {
		return ctrl.Result{}, revision.Summary{}, err
	}
	if len(d.remaining) > 0 {
		const named = 3
		message := fmt.Sprintf("The package is being deleted. Its runtime runs until its definitions, and with them all custom resources, are deleted: %s.",
			wording.Few(d.remaining, named, ", "))
		return ctrl.Result{RequeueAfter: r.deletionPoll(p)}, revision.Progressing(message), nil
	}
	return r.endDeletion(ctx, p)
}

// endDeletion lets the API server delete a package.
func (r *Reconciler) endDeletion(ctx context.Context, p v1.Package) (ctrl.Result, revision.Summary, error) {
	changed := p.DeepCopyObject().(v1.Package)
	controllerutil.RemoveFinalizer(changed, v1.FinalizerRuntimeProtection)
	return ctrl.Result{}, revision.Progressing("The package is being deleted."),
		client.IgnoreNotFound(r.writeFinalizers(ctx, p, changed))
}

// deletionPoll returns the pause before the next check of a deletion, between 250 ms and 10 s. It
// grows with the duration of the deletion. While CRDs are being deleted, a check makes no call but for the status.
func (r *Reconciler) deletionPoll(p v1.Package) time.Duration {
	const shortest, longest = 250 * time.Millisecond, 10 * time.Second
	return min(longest, max(shortest, r.API.Now().Sub(p.GetDeletionTimestamp().Time)/8))
}

// deletion is what remains to be deleted with a package.
type deletion struct {
	// next are the deletions to request now.
	next []plan.Change
	// remaining are the names of the definitions without another owner that still exist.
	remaining []string
	// kinds are the names of the CRDs among them, and of those that XRDs and MRDs define, that are not being deleted yet.
	kinds []string
}

// deletionOf returns what remains to be deleted with a package: the CRDs, XRDs and MRDs that have no other owner than
// the package and its revisions. The garbage collector deletes all other objects.
func (r *Reconciler) deletionOf(ctx context.Context, p v1.Package, revisions []v1.PackageRevision) (deletion, error) {
	if p.PackageKind() == v1.FunctionKind {
		return deletion{}, nil
	}
	who := revision.Requester(p, p.NewRevision(), revisions)
	refs, err := r.ownedDefinitions(ctx, who.IsFamily)
	if err != nil {
		return deletion{}, err
	}
	refs = append(refs, plan.Without(definitionsOf(revisions), refs)...)
	if watched, err := r.watchedDefinitions(ctx, refs); err == nil && len(watched) > 0 {
		if next, remaining := divideDeletions(watched, who); len(remaining) > 0 && len(next) == 0 {
			// The API server deletes them. The watch shows when it has.
			return deletion{remaining: remaining}, nil
		}
	}
	for _, of := range definingKinds {
		owned, err := r.API.Cluster.Owned(ctx, of)
		if err != nil && !errors.Is(err, apply.ErrKindNotServed) {
			return deletion{}, err
		}
		refs = append(refs, plan.Without(owned.By(who.IsFamily), refs)...)
	}
	live, err := r.API.Cluster.Metadata(ctx, refs)
	if err != nil && !errors.Is(err, apply.ErrKindNotServed) {
		return deletion{}, err
	}
	r.dropDeletedOwners(ctx, who, live)
	d := deletion{}
	d.next, d.remaining = divideDeletions(live, who)
	d.kinds, err = r.kindsOf(ctx, plan.Uninstall(live, who), live)
	return d, err
}

// isDefining reports whether Crossplane core defines CRDs with objects of a kind.
func isDefining(kind string) bool {
	return slices.ContainsFunc(definingKinds, func(of plan.Ref) bool { return of.Kind == kind })
}

// dropDeletedOwners removes from objects the owners that are packages which are being deleted or do not exist, and the
// revisions of such packages: two packages that are deleted at once would otherwise both leave an object to the other.
func (r *Reconciler) dropDeletedOwners(ctx context.Context, who plan.Requester, live map[plan.Ref]plan.Live) {
	for ref, l := range live {
		l.Owners = slices.DeleteFunc(slices.Clone(l.Owners), func(o metav1.OwnerReference) bool {
			return !who.IsFamily(o) && strings.HasPrefix(o.APIVersion, v1.Group+"/") && !r.stays(ctx, o)
		})
		live[ref] = l
	}
}

// stays reports whether an owner is a package that is not being deleted, or a revision of one, or is not known.
func (r *Reconciler) stays(ctx context.Context, o metav1.OwnerReference) bool {
	for _, kind := range v1.PackageKinds() {
		var owner client.Object = v1.NewPackage(kind)
		if o.Kind == v1.RevisionKind(kind) {
			owner = v1.NewPackage(kind).NewRevision()
		} else if o.Kind != kind {
			continue
		}
		err := r.API.Client.Get(ctx, client.ObjectKey{Name: o.Name}, owner)
		if err == nil && owner.GetUID() == o.UID && o.Kind != kind {
			name := owner.GetLabels()[v1.LabelPackage]
			owner = v1.NewPackage(kind)
			err = r.API.Client.Get(ctx, client.ObjectKey{Name: name}, owner)
			return !apierrors.IsNotFound(err) && owner.GetDeletionTimestamp() == nil
		}
		return !apierrors.IsNotFound(err) && owner.GetUID() == o.UID && owner.GetDeletionTimestamp() == nil
	}
	return true
}

// definingKinds are the kinds with which Crossplane core defines CRDs, as references without a name.
var definingKinds = []plan.Ref{
	{APIVersion: "apiextensions.crossplane.io/v1", Kind: "CompositeResourceDefinition"},
	{APIVersion: "apiextensions.crossplane.io/v1alpha1", Kind: "ManagedResourceDefinition"},
}

// kindsOf returns the names of the CRDs that an uninstall deletes, and of those that Kubernetes deletes with them.
func (r *Reconciler) kindsOf(ctx context.Context, uninstall plan.Plan, live map[plan.Ref]plan.Live) ([]string, error) {
	var names []string
	owners := map[types.UID]bool{}
	for _, c := range uninstall.Changes {
		if c.Action != plan.Delete || live[c.Ref].Deleting {
			continue
		}
		names = append(names, c.Ref.Name)
		owners[c.UID] = c.Ref.Kind != plan.DefinitionKind
	}
	all, err := definitions(ctx, r.API.Client)
	for i := range all {
		if slices.ContainsFunc(all[i].OwnerReferences, func(o metav1.OwnerReference) bool { return owners[o.UID] }) {
			names = append(names, all[i].Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), err
}

// ownedDefinitions returns the CRDs with a matching owner, from their watch: also those that only a deleted revision
// has contained.
func (r *Reconciler) ownedDefinitions(
	ctx context.Context, matches func(metav1.OwnerReference) bool,
) ([]plan.Ref, error) {
	all, err := definitions(ctx, r.API.Client)
	if err != nil {
		return nil, err
	}
	var refs []plan.Ref
	for i := range all {
		if slices.ContainsFunc(all[i].OwnerReferences, matches) {
			refs = append(refs, plan.Ref{
				APIVersion: definitionKind.GroupVersion().String(), Kind: definitionKind.Kind, Name: all[i].Name,
			})
		}
	}
	return refs, nil
}

// definitionKind is the kind of CRDs.
var definitionKind = apiextensionsv1.SchemeGroupVersion.WithKind(plan.DefinitionKind)

// definitions returns the metadata of all CRDs from their watch. The caller must not change it.
func definitions(ctx context.Context, c client.Reader) ([]metav1.PartialObjectMetadata, error) {
	all := &metav1.PartialObjectMetadataList{}
	all.SetGroupVersionKind(definitionKind.GroupVersion().WithKind(definitionKind.Kind + "List"))
	if err := c.List(ctx, all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list CRDs: %w", err)
	}
	return all.Items, nil
}

// watchedDefinitions returns the metadata of definitions from their watch, or nil if not all of them are CRDs.
func (r *Reconciler) watchedDefinitions(ctx context.Context, refs []plan.Ref) (map[plan.Ref]plan.Live, error) {
	if slices.ContainsFunc(refs, func(ref plan.Ref) bool { return ref.Kind != plan.DefinitionKind }) {
		return nil, nil // It has no watch.
	}
	return watch.LiveDefinitions(r.API.Client)(ctx, refs)
}

// divideDeletions returns the deletions that an uninstall has to request now, and the names of all definitions that it
// deletes.
func divideDeletions(live map[plan.Ref]plan.Live, who plan.Requester) (deletions []plan.Change, remaining []string) {
	for _, c := range plan.Uninstall(live, who).Changes {
		if c.Action != plan.Delete {
			continue
		}
		remaining = append(remaining, c.Ref.Name)
		if !live[c.Ref].Deleting {
			deletions = append(deletions, c)
		}
	}
	first := stages
	for _, name := range remaining {
		first = min(first, deletionStage(name))
	}
	return slices.DeleteFunc(deletions, func(c plan.Change) bool { return deletionStage(c.Ref.Name) != first }), remaining
}

// stages is the number of stages of a deletion.
const stages = 3

// deletionStage returns the stage in which a CRD is deleted, after all CRDs of the stages before it are gone. To delete
// a managed resource, a provider of Crossplane reads the ProviderConfig of the resource and writes a
// ProviderConfigUsage, and it releases a ProviderConfig when its usages are gone: without these kinds, no finalizer of
// the provider would be removed.
func deletionStage(definition string) int {
	plural, _, _ := strings.Cut(definition, ".")
	switch {
	case strings.HasSuffix(plural, "providerconfigusages"):
		return 2
	case strings.HasSuffix(plural, "providerconfigs"), strings.HasSuffix(plural, "storeconfigs"):
		return 1
	}
	return 0
}

// releaseAdopted returns the adopted objects of a package to their users.
func (r *Reconciler) releaseAdopted(ctx context.Context, p v1.Package, revisions []v1.PackageRevision) error {
	if len(revision.Adoptions(p)) == 0 {
		return nil
	}
	var refs []plan.Ref
	for _, rev := range revisions {
		refs = append(refs, revision.Objects(rev)...)
	}
	slices.SortFunc(refs, plan.Ref.Compare)
	live, err := r.API.Cluster.Metadata(ctx, slices.Compact(refs))
	if err != nil && !errors.Is(err, apply.ErrKindNotServed) {
		return err
	}
	released := plan.Uninstall(live, revision.Requester(p, p.NewRevision(), revisions)).Releases()
	_, err = r.API.Cluster.Run(ctx, released, nil)
	return err
}

// definitionsOf returns the CRDs, XRDs and MRDs that revisions have established, each once.
func definitionsOf(revisions []v1.PackageRevision) []plan.Ref {
	var refs []plan.Ref
	for _, rev := range revisions {
		for _, ref := range revision.Objects(rev) {
			if ref.Kind == plan.DefinitionKind || isDefining(ref.Kind) {
				refs = append(refs, ref)
			}
		}
	}
	slices.SortFunc(refs, plan.Ref.Compare)
	return slices.Compact(refs)
}
