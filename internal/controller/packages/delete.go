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
	"k8s.io/apimachinery/pkg/runtime/schema"
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

// The deletion of a Provider deletes its CRDs, and thereby their custom resources. This needs the
// runtime, which removes its finalizers once the external resources are deleted, and converts
// custom resources that are stored in an older version. So a finalizer keeps the package, and its
// runtime runs, until its CRDs are deleted (crossplane/crossplane#4251). The CRDs that the runtime
// needs for that are deleted last.

// runsUntilDeleted reports whether the runtime of a package runs until its CRDs are deleted.
func (r *Reconciler) runsUntilDeleted(p v1.Package) bool {
	return p.PackageKind() == v1.ProviderKind && r.Runtimes.Of(v1.ProviderKind, p.GetName()) != nil
}

// needsFinalizer reports whether the manager has work to do when a package is deleted: its runtime
// runs until its CRDs are deleted, or it has adopted objects of users, which must be released.
func (r *Reconciler) needsFinalizer(p v1.Package) bool {
	return r.runsUntilDeleted(p) || len(revision.Adoptions(p)) > 0
}

// ensureFinalizer adds the finalizer to a package that needs it, and removes it from others. It is
// called before any object of the package is written.
func (r *Reconciler) ensureFinalizer(ctx context.Context, p v1.Package) error {
	needed := r.needsFinalizer(p)
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
// its adopted objects, deletes its CRDs, and removes the finalizer when the CRDs are gone.
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
	if err := r.deleteWebhooks(ctx, p, revisions); err != nil {
		return ctrl.Result{}, revision.Summary{}, err
	}
	if err := r.releaseAdopted(ctx, p, revisions); err != nil {
		return ctrl.Result{}, revision.Summary{}, err
	}
	remaining, err := r.deleteDefinitions(ctx, p, revisions)
	if err != nil {
		return ctrl.Result{}, revision.Summary{}, err
	}
	if len(remaining) > 0 {
		const namedDefinitions = 3
		message := fmt.Sprintf("The package is being deleted. Its runtime runs until its CRDs, and with them all custom resources, are deleted: %s.",
			wording.Few(remaining, namedDefinitions, ", "))
		return ctrl.Result{RequeueAfter: r.deletionPoll(p)}, revision.Progressing(message), nil
	}
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

// deleteDefinitions deletes the CRDs that have no other owner than the package and its revisions,
// and returns the names of the CRDs that still exist. Without an active revision, no runtime runs,
// and the garbage collector deletes the CRDs.
func (r *Reconciler) deleteDefinitions(
	ctx context.Context, p v1.Package, revisions []v1.PackageRevision,
) (remaining []string, err error) {
	if !r.runsUntilDeleted(p) || !revision.AnyActive(revisions) {
		return nil, nil
	}
	who := revision.Requester(p, p.NewRevision(), revisions)
	refs, err := r.ownedDefinitions(ctx, who)
	if err != nil {
		return nil, err
	}
	refs = append(refs, plan.Without(definitionsOf(revisions), refs)...)
	if watched, err := r.watchedDefinitions(ctx, refs); err == nil {
		if deletions, remaining := divideDeletions(watched, who); len(remaining) > 0 && len(deletions) == 0 {
			// The API server deletes them. The watch shows when it has.
			return remaining, nil
		}
	}
	live, err := r.API.Cluster.Metadata(ctx, refs)
	if err != nil {
		return nil, err
	}
	deletions, remaining := divideDeletions(live, who)
	return remaining, r.API.Cluster.DeleteAll(ctx, deletions)
}

// ownedDefinitions returns the CRDs that a package owns, from their watch: also those that only a deleted revision has
// contained.
func (r *Reconciler) ownedDefinitions(ctx context.Context, who plan.Requester) ([]plan.Ref, error) {
	all, err := definitions(ctx, r.API.Client)
	if err != nil {
		return nil, err
	}
	var refs []plan.Ref
	for i := range all {
		if slices.ContainsFunc(all[i].OwnerReferences, who.IsFamily) {
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

// watchedDefinitions returns the metadata of CRDs from their watch.
func (r *Reconciler) watchedDefinitions(ctx context.Context, refs []plan.Ref) (map[plan.Ref]plan.Live, error) {
	out := map[plan.Ref]plan.Live{}
	for _, ref := range refs {
		o := watch.Metadata(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
		switch err := r.API.Client.Get(ctx, client.ObjectKey{Name: ref.Name}, o); {
		case err == nil:
			out[ref] = apply.Known(ref, o)
		case !apierrors.IsNotFound(err):
			return nil, err
		}
	}
	return out, nil
}

// divideDeletions returns the deletions that an uninstall has to request now, and the names of all CRDs that it
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

// definitionsOf returns the CRDs that revisions have established, each once.
func definitionsOf(revisions []v1.PackageRevision) []plan.Ref {
	var refs []plan.Ref
	for _, rev := range revisions {
		for _, ref := range revision.Objects(rev) {
			if ref.Kind == plan.DefinitionKind {
				refs = append(refs, ref)
			}
		}
	}
	slices.SortFunc(refs, plan.Ref.Compare)
	return slices.Compact(refs)
}
