package firstgen

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller/contention"
	"github.com/xpkg-dev/xpkg/internal/controller/logging"
	"github.com/xpkg-dev/xpkg/internal/controller/requeue"
	"github.com/xpkg-dev/xpkg/internal/controller/watch"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/firstgen"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// NamespaceInstalls reconciles PackageInstalls. It writes only the record of the installation, in the namespace of the
// install object; the controller of Packages runs it.
type NamespaceInstalls struct{ Base }

// Reconcile reconciles one PackageInstall. The garbage collector deletes the record of a deleted one.
func (r *NamespaceInstalls) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	in := packagesv1alpha1.NewInstall(packagesv1alpha1.PackageInstallKind).(*packagesv1alpha1.PackageInstall)
	err := r.API.Client.Get(ctx, req.NamespacedName, in)
	if apierrors.IsNotFound(err) {
		return ctrl.Result{}, r.deleteUnused(ctx)
	}
	if err != nil || in.DeletionTimestamp != nil {
		return ctrl.Result{}, err
	}
	ctx = contention.WithCause(ctx, causeOf(in))
	ctx = logging.With(ctx, "kind", in.Kind, "namespace", in.Namespace, "name", in.Name)
	return r.API.Status.ReportRevocable(ctx, in, func(ctx context.Context) (ctrl.Result, revision.Summary, error) {
		return r.reconcile(ctx, in)
	}, func(ctx context.Context) error {
		return r.revoke(ctx, in)
	}, failedConditions)
}

// revoke deletes the record of a paused install object, so that its controller stops, and returns the reason, if the
// Provider that it uses does not exist, or is not shared with namespaces.
func (r *NamespaceInstalls) revoke(ctx context.Context, in *packagesv1alpha1.PackageInstall) error {
	record, name := &packagesv1alpha1.Package{}, in.Status.Provider
	if err := r.API.Client.Get(ctx, client.ObjectKeyFromObject(in), record); err != nil {
		return client.IgnoreNotFound(err) // Nothing runs.
	}
	p, err := r.usedProvider(ctx, in)
	switch {
	case err != nil || name == "":
		return err
	case p == nil:
		err = ErrNotAllowed.New(nil, "the Provider %s, whose CRDs this object uses, does not exist", name).
			WithDo("Remove the annotation %s, so that the object is reconciled.", v1.AnnotationPaused)
	case revision.IsShared(p):
		return nil
	default:
		err = r.notAllowed(ctx, p.Spec.Package, p)
	}
	if failed := r.deleteRecord(ctx, in); failed != nil {
		return failed
	}
	return err
}

// reconcile installs a package. An object that is not allowed, or not any more, or whose Provider does not exist, has
// no record, so that its controller does not run.
func (r *NamespaceInstalls) reconcile(
	ctx context.Context, in *packagesv1alpha1.PackageInstall,
) (ctrl.Result, revision.Summary, error) {
	result, summary, err := r.install(ctx, in)
	if failed := r.deleteUnused(ctx); failed != nil {
		return ctrl.Result{}, revision.Summary{}, failed
	}
	if failed := r.settleRecord(ctx, in, err); failed != nil {
		return ctrl.Result{}, revision.Summary{}, failed
	}
	return result, summary, err
}

// settleRecord deletes the record of an install object that failed, unless the Provider that it uses still exists and
// is shared. Other failures, such as an unreachable registry, do not stop a controller.
func (r *NamespaceInstalls) settleRecord(
	ctx context.Context, in *packagesv1alpha1.PackageInstall, failure error,
) error {
	if failure == nil {
		return nil
	}
	if errors.Is(failure, ErrNotAllowed) || errors.Is(failure, ErrScope) || errors.Is(failure, revision.ErrSharedWebhook) {
		return r.deleteRecord(ctx, in)
	}
	p, err := r.usedProvider(ctx, in)
	switch {
	case err != nil:
		return err
	case p == nil:
		return r.deleteUnprovided(ctx, in, failure)
	case !revision.IsShared(p):
		return r.deleteRecord(ctx, in)
	}
	return nil
}

func (r *NamespaceInstalls) install(
	ctx context.Context, in *packagesv1alpha1.PackageInstall,
) (ctrl.Result, revision.Summary, error) {
	if err := cmp.Or(checkName(in), r.checkRecord(ctx, in)); err != nil {
		return ctrl.Result{}, revision.Summary{}, err
	}
	unlock, err := r.lockKind(ctx, in)
	if err != nil {
		return ctrl.Result{}, revision.Summary{}, err
	}
	defer unlock()
	p, err := r.sharedProvider(ctx, in)
	if err != nil {
		return ctrl.Result{}, revision.Summary{}, err
	}
	in.Status.Provider = p.Name
	in.SetConditions(r.API.Time(), v1.Synced())
	if summary := summaryOf("The Provider "+p.Name, p, p.Status.ObservedGeneration); !summary.Ready {
		return ctrl.Result{}, summary, nil
	}
	c, exists, err := r.activeContent(ctx, p)
	if err != nil {
		return ctrl.Result{}, revision.Summary{}, err
	}
	if !exists {
		return ctrl.Result{}, creating("The Provider %s has no active revision.", p.Name), nil
	}
	if err := cmp.Or(checkProvides(in, p.Name, c), checkScope(p, c)); err != nil {
		return ctrl.Result{}, revision.Summary{}, err
	}
	record, err := r.ensureContent(ctx, in, c)
	if err != nil {
		return ctrl.Result{}, revision.Summary{}, err
	}
	in.Status.PackageRecord = referenceTo(record)
	return ctrl.Result{}, summaryOf("The Package "+record.Name, record, record.Status.ObservedGeneration), nil
}

// sharedProvider returns the Provider whose CRDs the package of a PackageInstall uses. It fails with
// NamespacedPackageNotAllowed if no administrator shares them, and with NamespacedVersionConflict if they are of
// another version.
func (r *NamespaceInstalls) sharedProvider(
	ctx context.Context, in *packagesv1alpha1.PackageInstall,
) (*v1.Provider, error) {
	ref, name, err := r.chosen(ctx, in)
	if err != nil {
		return nil, err
	}
	if name != "" {
		p := &v1.Provider{}
		if err := r.API.Client.Get(ctx, types.NamespacedName{Name: name}, p); err != nil {
			return nil, err
		}
		if !revision.IsShared(p) {
			return nil, r.notAllowed(ctx, p.Spec.Package, p)
		}
		return p, nil
	}
	p, err := r.findProvider(ctx, ref)
	switch {
	case err != nil:
		return nil, err
	case p != nil && !revision.IsShared(p):
		return nil, r.notAllowed(ctx, ref.String(), p)
	case p == nil && r.Options.installsFor(ref):
		return r.createShared(ctx, in, ref)
	case p == nil:
		return nil, r.notAllowed(ctx, ref.String(), nil)
	}
	revisions, err := state.RevisionsOf(ctx, r.API.Client, p)
	if err != nil {
		return nil, err
	}
	return p, checkVersion(ref, p, revisions)
}

// findProvider returns the Provider of a repository that has objects, because the CRDs belong to it, or else one that
// has none, or nil. Of several such Providers, one that shares its CRDs takes precedence, and then the one whose name
// is first.
func (r *NamespaceInstalls) findProvider(ctx context.Context, ref oci.Reference) (*v1.Provider, error) {
	all := &v1.ProviderList{}
	if err := r.API.Client.List(ctx, all); err != nil {
		return nil, err
	}
	var found *v1.Provider
	foundRank := -1
	for i := range all.Items {
		p := &all.Items[i]
		if !oci.SameRepository(p.Spec.Package, ref.String()) {
			continue
		}
		revisions, err := state.RevisionsOf(ctx, r.API.Client, p)
		if err != nil {
			return nil, err
		}
		rank := 0
		if slices.ContainsFunc(revisions, hasObjects) {
			rank += 2
		}
		if revision.IsShared(p) {
			rank++
		}
		if rank > foundRank || rank == foundRank && p.Name < found.Name {
			found, foundRank = p, rank
		}
	}
	return found, nil
}

// checkScope fails with ClusterScopeRefused for a package with permissions in the whole cluster.
func checkScope(p *v1.Provider, c content) error {
	if scope := c.pkg.Meta.Annotations[xpkg.AnnotationPermissionScope]; scope != string(firstgen.ScopeNamespaced) {
		return ErrScope.New(nil, "the package %s has permissions in the whole cluster", p.Spec.Package)
	}
	return nil
}

// createShared creates a Provider that shares the CRDs of a repository whose packages the administrator allows. The
// users of a namespace cannot delete it, so it is only created for content that can be installed for namespaces.
func (r *NamespaceInstalls) createShared(
	ctx context.Context, in *packagesv1alpha1.PackageInstall, ref oci.Reference,
) (*v1.Provider, error) {
	p := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		revision.AnnotationNamespacedInstalls: revision.AllowInstalls, revision.AnnotationCreatedForNamespaces: "true",
	}}}
	p.Spec.Package = ref.String()
	c, err := r.readUnwritten(ctx, p)
	if err != nil {
		return nil, err
	}
	names := SharedProviderNames(ref)
	if err := cmp.Or(
		checkProvides(in, names[0], c), checkScope(p, c), revision.CheckShared(p, c.pkg), r.checkHolders(ctx, c),
		r.checkRequired(ctx, c),
	); err != nil {
		return nil, err
	}
	for _, name := range names {
		p.Name = name
		err = r.API.Client.Create(ctx, p)
		if !apierrors.IsAlreadyExists(err) {
			return p, err
		}
		live := &v1.Provider{}
		if err := r.API.Live.Get(ctx, client.ObjectKeyFromObject(p), live); err != nil {
			return nil, err
		}
		if oci.SameRepository(live.Spec.Package, ref.String()) {
			return nil, requeue.ErrStale
		}
	}
	return nil, ErrProviderExists.New(
		nil, "the Providers %s exist, and have other packages than %s", strings.Join(names, " and "), ref,
	).
		WithDo(
			"An administrator installs the package with a Provider with `spec.package: %s` and the annotation `%s: %s`.", ref,
			revision.AnnotationNamespacedInstalls, revision.AllowInstalls,
		)
}

// deleteUnused deletes the Providers that the manager created for PackageInstalls, that no PackageInstall uses, and
// that were never installed, so that no object is lost. The users of namespaces cannot delete them, and they would be
// installed later.
func (r *NamespaceInstalls) deleteUnused(ctx context.Context) error {
	all := &v1.ProviderList{}
	if err := r.API.Client.List(ctx, all); err != nil {
		return err
	}
	for i := range all.Items {
		p := &all.Items[i]
		if p.DeletionTimestamp != nil || !revision.IsShared(p) ||
			p.Annotations[revision.AnnotationCreatedForNamespaces] != "true" ||
			p.Status.Activation != nil && p.Status.Activation.Healthy {
			continue
		}
		isUnused, err := r.isUnused(ctx, p)
		if err == nil && isUnused {
			err = r.API.Delete(ctx, p)
		}
		if err != nil {
			return fmt.Errorf("delete the unused Provider %s: %w", p.Name, err)
		}
	}
	return nil
}

// isUnused reports whether no PackageInstall uses a Provider, and none of its objects exist. PackageInstalls use one of
// the Providers of a repository.
func (r *NamespaceInstalls) isUnused(ctx context.Context, p *v1.Provider) (bool, error) {
	revisions, err := state.RevisionsOf(ctx, r.API.Client, p)
	if err != nil || slices.ContainsFunc(revisions, hasObjects) {
		return false, err
	}
	installs, err := listInstalls(ctx, r.API.Live, packagesv1alpha1.PackageInstallKind)
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(installs, func(in packagesv1alpha1.Install) bool { return r.mayUse(in, p) }) {
		ref, err := oci.ParseReference(p.Spec.Package, oci.ParseOptions{AllowUntagged: true})
		if err != nil {
			return false, nil
		}
		used, err := r.findProvider(ctx, ref)
		if err != nil || used == nil || used.Name == p.Name {
			return false, err
		}
	}
	// A revision lists its objects only when all of them are written, and users can create custom resources before.
	owned, err := r.API.Cluster.CRDs(ctx, func(o metav1.OwnerReference) bool { return o.UID == p.UID })
	return len(owned) == 0, err
}

// hasObjects reports whether objects of a revision exist.
func hasObjects(rev v1.PackageRevision) bool {
	return slices.ContainsFunc(rev.RevisionStatus().ObjectRefs, func(o v1.TypedReference) bool { return o.UID != "" })
}

// mayUse reports whether a PackageInstall names the package of a Provider, or a kind for which it uses the Provider.
func (r *NamespaceInstalls) mayUse(in packagesv1alpha1.Install, p *v1.Provider) bool {
	spec, status := in.InstallSpec(), in.InstallStatus()
	if in.GetDeletionTimestamp() != nil {
		return false
	}
	if spec.Package != "" {
		ref, err := r.Options.Reference(spec.Source, spec.Package)
		return err == nil && oci.SameRepository(p.Spec.Package, ref.String())
	}
	return status.Provider == p.Name ||
		status.ChosenPackage != nil && oci.SameRepository(status.ChosenPackage.Package, p.Spec.Package)
}

// checkHolders fails with NamespacedPackageNotAllowed if another package holds a CRD of a package.
func (r *NamespaceInstalls) checkHolders(ctx context.Context, c content) error {
	defined := c.pkg.NamesOf(plan.DefinitionKind)
	for _, kind := range v1.PackageKinds() {
		for _, rev := range watch.Revisions(ctx, r.API.Client, kind) {
			for _, o := range revision.Objects(rev) {
				if revision.IsActive(rev) && o.Kind == plan.DefinitionKind && slices.Contains(defined, o.Name) {
					return ErrNotAllowed.New(
						nil, "CustomResourceDefinition %s of the package %s belongs to %s/%s", o.Name, c.origin, kind,
						rev.GetLabels()[v1.LabelPackage],
					).
						WithDo("Install the package that has the CRD, or let an administrator uninstall it.")
				}
			}
		}
	}
	return nil
}

// checkRequired fails with NamespacedPackageNotAllowed if a package requires packages that are not installed: their
// runtimes have permissions in the whole cluster.
func (r *NamespaceInstalls) checkRequired(ctx context.Context, c content) error {
	existing := r.installed(ctx, nil).repositories
	for _, d := range dependency.Required(c.pkg.Meta.DependsOn) {
		if !existing[oci.RepositoryName(d.Package)] {
			return ErrNotAllowed.New(
				nil, "the package %s requires %s, which is not installed, and a PackageInstall installs no other package", c.origin,
				d.Package,
			).
				WithDo("An administrator installs %s first.", d.Package)
		}
	}
	return nil
}

// notAllowed returns the error for a package whose CRDs no administrator shares. P is the Provider that has them, or
// nil. For a package that cannot be shared, it returns the reason.
func (r *NamespaceInstalls) notAllowed(ctx context.Context, reference string, p *v1.Provider) error {
	if p != nil {
		shared := p.DeepCopy()
		metav1.SetMetaDataAnnotation(&shared.ObjectMeta, revision.AnnotationNamespacedInstalls, revision.AllowInstalls)
		if c, exists, err := r.activeContent(ctx, p); err == nil && exists {
			if err := revision.CheckShared(shared, c.pkg); err != nil {
				return err
			}
		}
		return ErrNotAllowed.New(nil, "the CRDs belong to the Provider %s, which is not shared with namespaces", p.Name).
			WithDo("An administrator shares them with `kubectl annotate providers.%s %s %s=%s`, which stops the runtime of the Provider.",
				v1.Group, p.Name, revision.AnnotationNamespacedInstalls, revision.AllowInstalls)
	}
	return ErrNotAllowed.New(nil, "no administrator has installed the CRDs of %s for namespaces", reference).
		WithDo("An administrator installs them with a Provider with `spec.package: %s` and the annotation `%s: %s`, or lets the manager do so: %s.",
			reference, revision.AnnotationNamespacedInstalls, revision.AllowInstalls,
			wording.RestartManager("--namespaced-package="+oci.RepositoryName(reference)))
}

// checkVersion fails unless a reference names the version of a Provider whose CRDs are installed, or the one that the
// Provider installs: the same tag, or the digest.
func checkVersion(ref oci.Reference, p *v1.Provider, revisions []v1.PackageRevision) error {
	at := slices.IndexFunc(revisions, revision.IsEstablished)
	if at < 0 {
		// The active revision was refused: those of the revision before it are there.
		at = slices.IndexFunc(
			revisions, func(rev v1.PackageRevision) bool { return !revision.IsActive(rev) && hasObjects(rev) },
		)
	}
	installed := p.Spec.Package
	if at >= 0 {
		spec := revisions[at].RevisionSpec()
		installed = spec.Image
		if state.IsVersion(ref, spec.Image, spec.Digest) {
			return nil
		}
	}
	if state.IsVersion(ref, p.Spec.Package, p.Status.ResolvedDigest) {
		return nil // The condition of the Provider tells why its CRDs are not installed.
	}
	return ErrVersion.New(
		nil, "this object names %s, and the Provider %s has the CRDs of %s", ref.Identifier(), p.Name,
		identifierOf(installed),
	).
		WithDo(
			"Set spec.package to %s, or let an administrator update the Provider with `xpkg update provider %s %s`.", installed,
			p.Name, ref.Identifier(),
		)
}

// identifierOf returns the tag or the digest of a reference.
func identifierOf(reference string) string {
	ref, err := oci.ParseReference(reference, oci.ParseOptions{AllowUntagged: true})
	if err != nil {
		return reference
	}
	return ref.Identifier()
}
