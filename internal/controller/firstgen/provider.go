package firstgen

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/consent"
	"github.com/xpkg-dev/xpkg/internal/controller/logging"
	"github.com/xpkg-dev/xpkg/internal/controller/requeue"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/permission"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/internal/webhooks"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// causeOf returns the cause of the writes for an object, which changes with each change of the object by a user.
func causeOf(o metav1.Object) string { return fmt.Sprintf("%s/%d", o.GetUID(), o.GetGeneration()) }

func (b *Base) providerName(in packagesv1alpha1.Install) string {
	return ProviderName(in.GetNamespace(), in.GetName(), b.Namespace)
}

// ensureProvider creates or updates the Provider of an install object. It fails with ProviderNotOwned if another client
// created the Provider.
func (r *ClusterInstalls) ensureProvider(
	ctx context.Context, in *packagesv1alpha1.ClusterPackageInstall, ref oci.Reference,
) error {
	name := r.providerName(in)
	live := &v1.Provider{}
	err := r.API.Client.Get(ctx, types.NamespacedName{Name: name}, live)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	exists := err == nil
	if exists && live.Annotations[state.AnnotationInstalledBy] != state.InstalledBy(in) {
		return ErrProviderExists.New(nil, "the Provider %s exists, and this object did not create it", name).
			WithDo(
				"Rename this object, or hand the Provider over with `kubectl annotate providers.%s %s %s=%s`.", v1.Group, name,
				state.AnnotationInstalledBy, state.InstalledBy(in),
			)
	}
	want := live.DeepCopy()
	want.Name = name
	r.setProvider(in, ref, want)
	if err := r.checkSelected(ctx, in, live, want); err != nil {
		return err
	}
	if exists {
		if err := r.checkConsents(ctx, live, want); err != nil {
			return err
		}
	}
	if err := r.ensureConfig(ctx, in); err != nil {
		return err
	}
	switch {
	case !exists:
		err = r.API.Client.Create(ctx, want)
	case !equality.Semantic.DeepEqual(live, want):
		err = r.API.Client.Update(ctx, want)
	}
	if apierrors.IsAlreadyExists(err) {
		return requeue.ErrStale
	}
	if err != nil {
		return fmt.Errorf("write Provider %s: %w", name, err)
	}
	if exists && usesConfig(live, name) && !usesConfig(want, name) {
		return r.deleteConfig(ctx, in)
	}
	return nil
}

// checkConsents fails with WebhooksNotAllowed if a Provider with consents, or with approved permissions, gets another
// repository or another source of images: users of install objects may have no permission to consent, and the consents
// were given for the former ones. Approved permissions stay with the repository anyway.
func (r *ClusterInstalls) checkConsents(ctx context.Context, live, want *v1.Provider) error {
	before, after := oci.RepositoryName(live.Spec.Package), oci.RepositoryName(want.Spec.Package)
	from, to := live.Annotations[revision.AnnotationImageSource], want.Annotations[revision.AnnotationImageSource]
	given := consent.IsGiven(live)
	if from != to && !given {
		revisions, err := state.RevisionsOf(ctx, r.API.Client, live)
		if err != nil {
			return err
		}
		given = slices.ContainsFunc(revisions, func(rev v1.PackageRevision) bool {
			return rev.GetAnnotations()[permission.AnnotationApproved] != ""
		})
	}
	switch {
	case !given || before == after && from == to:
		return nil
	case before == after:
		const own = "the registry of the package"
		before, after = "images from "+cmp.Or(from, own), "images from "+cmp.Or(to, own)
	}
	return webhooks.ErrNotAllowed.New(
		nil, "the Provider %s or its revision has consents, which were given for %s and not for %s", live.Name, before, after,
	).
		WithDo("An administrator removes them with `%s`, or changes spec.package or the annotation %s of the Provider first.",
			consent.RemoveCommand(live), revision.AnnotationImageSource)
}

// checkSelected fails with KindNotProvided if a Provider gets a package that was selected for a kind and does not
// define it.
func (r *ClusterInstalls) checkSelected(
	ctx context.Context, in *packagesv1alpha1.ClusterPackageInstall, live, want *v1.Provider,
) error {
	if in.Status.ChosenPackage == nil || live.Spec.Package == want.Spec.Package {
		return nil
	}
	c, err := r.readUnwritten(ctx, want)
	if err != nil {
		return err
	}
	return checkProvides(in, want.Name, c)
}

// usesConfig reports whether a Provider uses a runtime configuration with a name.
func usesConfig(p *v1.Provider, name string) bool {
	return p.Spec.RuntimeConfigRef != nil && p.Spec.RuntimeConfigRef.Name == name
}

// setProvider sets the fields of a Provider that an install object determines. All others belong to users.
func (r *ClusterInstalls) setProvider(in *packagesv1alpha1.ClusterPackageInstall, ref oci.Reference, p *v1.Provider) {
	metav1.SetMetaDataAnnotation(&p.ObjectMeta, state.AnnotationInstalledBy, state.InstalledBy(in))
	p.Spec.Package = ref.String()
	if source := strings.TrimSuffix(in.Spec.Source, "/"); source != "" && source != ref.Registry {
		metav1.SetMetaDataAnnotation(&p.ObjectMeta, revision.AnnotationImageSource, source)
	} else {
		delete(p.Annotations, revision.AnnotationImageSource)
	}
	if in.Spec.CRD != "" {
		metav1.SetMetaDataAnnotation(&p.ObjectMeta, graph.AnnotationProvides, in.Spec.CRD)
	}
	setPullSettings(in, p)
	name := r.providerName(in)
	switch {
	case hasAnnotations(in):
		p.Spec.RuntimeConfigRef = &v1.RuntimeConfigReference{
			APIVersion: new(v1beta1.GroupVersion.String()), Kind: new(v1beta1.DeploymentRuntimeConfigKind), Name: name,
		}
	case usesConfig(p, name):
		p.Spec.RuntimeConfigRef = &v1.RuntimeConfigReference{
			APIVersion: new(v1beta1.GroupVersion.String()), Kind: new(v1beta1.DeploymentRuntimeConfigKind),
			Name: v1.DefaultRuntimeConfigName,
		}
	}
}

// annotationPullSettings on a Provider lists the pull settings that its install object determines, separated by commas.
// A setting that the object no longer has is reset; one that it never had belongs to users.
const annotationPullSettings = "xpkg.dev/install-settings"

// setPullSettings sets the pull policy and the pull secrets of a Provider.
func setPullSettings(in *packagesv1alpha1.ClusterPackageInstall, p *v1.Provider) {
	before := strings.Split(p.Annotations[annotationPullSettings], ",")
	var settings []string
	set := func(setting string, isSet bool, apply func()) {
		if isSet {
			settings = append(settings, setting)
		}
		if isSet || slices.Contains(before, setting) {
			apply()
		}
	}
	set("imagePullPolicy", in.Spec.ImagePullPolicy != "", func() {
		p.Spec.PackagePullPolicy = cmp.Or(in.Spec.ImagePullPolicy, corev1.PullIfNotPresent)
	})
	set(
		"imagePullSecrets", len(in.Spec.ImagePullSecrets) > 0,
		func() { p.Spec.PackagePullSecrets = localReferences(in.Spec.ImagePullSecrets) },
	)
	if len(settings) > 0 {
		metav1.SetMetaDataAnnotation(&p.ObjectMeta, annotationPullSettings, strings.Join(settings, ","))
	} else {
		delete(p.Annotations, annotationPullSettings)
	}
}

// localReferences returns references to Secrets.
func localReferences(secrets []packagesv1alpha1.SecretReference) []corev1.LocalObjectReference {
	if len(secrets) == 0 {
		return nil
	}
	out := make([]corev1.LocalObjectReference, len(secrets))
	for i, s := range secrets {
		out[i].Name = s.Name
	}
	return out
}

func secretNames(secrets []packagesv1alpha1.SecretReference) []string {
	out := make([]string, len(secrets))
	for i, s := range secrets {
		out[i] = s.Name
	}
	return out
}

func hasAnnotations(in *packagesv1alpha1.ClusterPackageInstall) bool {
	return in.Spec.ServiceAccount != nil && len(in.Spec.ServiceAccount.Annotations) > 0
}

// ensureConfig creates or updates the runtime configuration with the annotations of the ServiceAccount. It fails with
// ProviderNotOwned if another client created a configuration with this name.
func (r *ClusterInstalls) ensureConfig(ctx context.Context, in *packagesv1alpha1.ClusterPackageInstall) error {
	if !hasAnnotations(in) {
		return nil
	}
	name := r.providerName(in)
	live := &v1beta1.DeploymentRuntimeConfig{}
	err := r.API.Live.Get(ctx, types.NamespacedName{Name: name}, live)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read DeploymentRuntimeConfig %s: %w", name, err)
	}
	exists := err == nil
	if exists && live.Annotations[state.AnnotationInstalledBy] != state.InstalledBy(in) {
		return ErrProviderExists.New(nil, "the DeploymentRuntimeConfig %s exists, and this object did not create it", name)
	}
	want := live.DeepCopy()
	want.Name = name
	metav1.SetMetaDataAnnotation(&want.ObjectMeta, state.AnnotationInstalledBy, state.InstalledBy(in))
	want.Spec.ServiceAccountTemplate = &v1beta1.ServiceAccountTemplate{Metadata: &v1beta1.ObjectMeta{
		Annotations: in.Spec.ServiceAccount.Annotations,
	}}
	switch {
	case !exists:
		err = r.API.Client.Create(ctx, want)
	case !equality.Semantic.DeepEqual(live, want):
		err = r.API.Client.Update(ctx, want)
	}
	if err != nil {
		return fmt.Errorf("write DeploymentRuntimeConfig %s: %w", name, err)
	}
	return nil
}

// releaseProvider hands the Provider of an install object, with its runtime configuration, over to the users: the
// object uses another Provider. Its CRDs and their objects stay.
func (r *ClusterInstalls) releaseProvider(ctx context.Context, in *packagesv1alpha1.ClusterPackageInstall) error {
	own, err := r.ownProvider(ctx, in)
	if err != nil || own == nil {
		return err
	}
	// The Provider is last, because it shows that there is something to release.
	config := &v1beta1.DeploymentRuntimeConfig{}
	err = r.API.Live.Get(ctx, types.NamespacedName{Name: own.Name}, config)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read DeploymentRuntimeConfig %s: %w", own.Name, err)
	}
	if err == nil && config.Annotations[state.AnnotationInstalledBy] == state.InstalledBy(in) {
		delete(config.Annotations, state.AnnotationInstalledBy)
		if err := r.API.Client.Update(ctx, config); err != nil {
			return fmt.Errorf("release DeploymentRuntimeConfig %s: %w", own.Name, err)
		}
	}
	changed := own.DeepCopy()
	delete(changed.Annotations, state.AnnotationInstalledBy)
	delete(changed.Annotations, annotationPullSettings)
	if err := r.API.Client.Update(ctx, changed); err != nil {
		return fmt.Errorf("release Provider %s: %w", own.Name, err)
	}
	logging.FromContext(ctx).InfoContext(ctx, "Provider released", "provider", own.Name)
	return nil
}

// deleteConfig deletes the runtime configuration of an install object.
func (r *ClusterInstalls) deleteConfig(ctx context.Context, in *packagesv1alpha1.ClusterPackageInstall) error {
	live := &v1beta1.DeploymentRuntimeConfig{}
	err := r.API.Live.Get(ctx, types.NamespacedName{Name: r.providerName(in)}, live)
	if err != nil || live.Annotations[state.AnnotationInstalledBy] != state.InstalledBy(in) {
		return client.IgnoreNotFound(err)
	}
	return r.API.Delete(ctx, live)
}
