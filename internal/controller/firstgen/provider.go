package firstgen

import (
	"context"
	"fmt"
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
	"github.com/xpkg-dev/xpkg/internal/controller/requeue"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// AnnotationInstalledBy on a Provider, or on its runtime configuration, names the install object that maintains it, as
// KIND/NAMESPACE/NAME. A user hands over a Provider by setting it.
const AnnotationInstalledBy = "xpkg.dev/installed-by"

// installedBy returns the value of AnnotationInstalledBy for an install object.
func installedBy(in packagesv1alpha1.Install) string {
	return in.PackageKind() + "/" + in.GetNamespace() + "/" + in.GetName()
}

// causeOf returns the cause of the writes for an object, which changes with each change of the object by a user.
func causeOf(o metav1.Object) string { return fmt.Sprintf("%s/%d", o.GetUID(), o.GetGeneration()) }

func (b *Base) providerName(in packagesv1alpha1.Install) string {
	return ProviderName(in.GetNamespace(), in.GetName(), b.Namespace)
}

// ensureProvider creates or updates the Provider of an install object. It fails with ProviderNotOwned if another client
// created the Provider.
func (r *ClusterInstalls) ensureProvider(ctx context.Context, in *packagesv1alpha1.ClusterPackageInstall, ref oci.Reference) error {
	name := r.providerName(in)
	live := &v1.Provider{}
	err := r.API.Client.Get(ctx, types.NamespacedName{Name: name}, live)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	exists := err == nil
	if exists && live.Annotations[AnnotationInstalledBy] != installedBy(in) {
		return ErrProviderExists.New(nil, "the Provider %s exists, and this object did not create it", name).
			WithDo("Rename this object, or hand the Provider over with `kubectl annotate providers.%s %s %s=%s`.", v1.Group, name, AnnotationInstalledBy, installedBy(in))
	}
	if exists && live.DeletionTimestamp != nil {
		return requeue.ErrStale
	}
	if err := r.ensureConfig(ctx, in); err != nil {
		return err
	}
	want := live.DeepCopy()
	want.Name = name
	r.setProvider(in, ref, want)
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
	return nil
}

// setProvider sets the fields of a Provider that an install object determines. All others belong to users.
func (r *ClusterInstalls) setProvider(in *packagesv1alpha1.ClusterPackageInstall, ref oci.Reference, p *v1.Provider) {
	metav1.SetMetaDataAnnotation(&p.ObjectMeta, AnnotationInstalledBy, installedBy(in))
	p.Spec.Package = ref.String()
	if source := strings.TrimSuffix(in.Spec.Source, "/"); source != "" && source != ref.Registry {
		metav1.SetMetaDataAnnotation(&p.ObjectMeta, revision.AnnotationImageSource, source)
	} else {
		delete(p.Annotations, revision.AnnotationImageSource)
	}
	if in.Spec.CRD != "" {
		metav1.SetMetaDataAnnotation(&p.ObjectMeta, graph.AnnotationProvides, in.Spec.CRD)
	}
	if in.Spec.ImagePullPolicy != "" {
		p.Spec.PackagePullPolicy = in.Spec.ImagePullPolicy
	}
	if len(in.Spec.ImagePullSecrets) > 0 {
		p.Spec.PackagePullSecrets = localReferences(in.Spec.ImagePullSecrets)
	}
	name := r.providerName(in)
	named := p.Spec.RuntimeConfigRef != nil && p.Spec.RuntimeConfigRef.Name == name
	switch {
	case hasAnnotations(in):
		p.Spec.RuntimeConfigRef = &v1.RuntimeConfigReference{
			APIVersion: new(v1beta1.GroupVersion.String()), Kind: new(v1beta1.DeploymentRuntimeConfigKind), Name: name,
		}
	case named:
		p.Spec.RuntimeConfigRef = &v1.RuntimeConfigReference{
			APIVersion: new(v1beta1.GroupVersion.String()), Kind: new(v1beta1.DeploymentRuntimeConfigKind), Name: v1.DefaultRuntimeConfigName,
		}
	}
}

// localReferences returns references to Secrets.
func localReferences(secrets []packagesv1alpha1.SecretReference) []corev1.LocalObjectReference {
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
	if exists && live.Annotations[AnnotationInstalledBy] != installedBy(in) {
		return ErrProviderExists.New(nil, "the DeploymentRuntimeConfig %s exists, and this object did not create it", name)
	}
	want := live.DeepCopy()
	want.Name = name
	metav1.SetMetaDataAnnotation(&want.ObjectMeta, AnnotationInstalledBy, installedBy(in))
	want.Spec.ServiceAccountTemplate = &v1beta1.ServiceAccountTemplate{Metadata: &v1beta1.ObjectMeta{Annotations: in.Spec.ServiceAccount.Annotations}}
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

// deleteConfig deletes the runtime configuration of an install object.
func (r *ClusterInstalls) deleteConfig(ctx context.Context, in *packagesv1alpha1.ClusterPackageInstall) error {
	live := &v1beta1.DeploymentRuntimeConfig{}
	err := r.API.Live.Get(ctx, types.NamespacedName{Name: r.providerName(in)}, live)
	if err != nil || live.Annotations[AnnotationInstalledBy] != installedBy(in) {
		return client.IgnoreNotFound(err)
	}
	return r.API.Delete(ctx, live)
}
