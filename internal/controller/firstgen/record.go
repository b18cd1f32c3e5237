package firstgen

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller/requeue"
	"github.com/xpkg-dev/xpkg/internal/controller/status"
	"github.com/xpkg-dev/xpkg/internal/provide"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/runtimedefaults"
	"github.com/xpkg-dev/xpkg/pkg/version"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// appMetadata returns the description of a package.
func appMetadata(m xpkg.Meta) packagesv1alpha1.AppMetadata {
	p := m.Presentation()
	out := packagesv1alpha1.AppMetadata{
		Title: p.Title, OverviewShort: p.Summary, Overview: p.Description, Readme: p.Readme, Category: p.Category,
		Version: p.Version,
		Company: p.Company, Keywords: p.Keywords, Website: p.Website, Source: p.Source, License: p.License,
		PackageType: p.PackageType,
		Maintainers: contributors(p.Maintainers), Owners: contributors(p.Owners),
		PermissionScope: m.Annotations[xpkg.AnnotationPermissionScope],
	}
	if icon, ok := iconOf(p.Icon); ok {
		out.Icons = []packagesv1alpha1.Icon{icon}
	}
	return out
}

// contributors parses names with mail addresses in angle brackets, separated by commas.
func contributors(text string) []packagesv1alpha1.Contributor {
	var out []packagesv1alpha1.Contributor
	for part := range strings.SplitSeq(text, ",") {
		name, mail, _ := strings.Cut(part, "<")
		c := packagesv1alpha1.Contributor{
			Name: strings.TrimSpace(name), Email: strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(mail), ">")),
		}
		if c != (packagesv1alpha1.Contributor{}) {
			out = append(out, c)
		}
	}
	return out
}

// iconOf returns the icon in a data URI in Base64.
func iconOf(uri string) (packagesv1alpha1.Icon, bool) {
	head, data, ok := strings.Cut(strings.TrimPrefix(uri, "data:"), ",")
	mediaType, isBase64 := strings.CutSuffix(head, ";base64")
	return packagesv1alpha1.Icon{Base64IconData: data, MediaType: mediaType},
		ok && isBase64 && strings.HasPrefix(uri, "data:")
}

// requirements returns the kinds and the packages that a package requires, each in its order. A package with a
// constraint that is not a version has no tag, because a reference cannot express it.
func requirements(m xpkg.Meta) []packagesv1alpha1.InstallSpec {
	var out []packagesv1alpha1.InstallSpec
	for _, k := range m.Kinds {
		out = append(out, packagesv1alpha1.InstallSpec{CRD: k.String()})
	}
	for _, d := range dependency.Required(m.DependsOn) {
		name := d.Package
		if v := version.Parse(d.Constraint); v.Usable() {
			name += ":" + d.Constraint
		}
		out = append(out, packagesv1alpha1.InstallSpec{Package: name})
	}
	return out
}

// newRecord returns the Package that records an install object, with the given content.
func newRecord(in packagesv1alpha1.Install, c content) (*packagesv1alpha1.Package, error) {
	kinds, err := definedKinds(c.pkg)
	if err != nil {
		return nil, err
	}
	record := &packagesv1alpha1.Package{}
	record.Namespace, record.Name = in.GetNamespace(), in.GetName()
	record.Annotations = map[string]string{state.AnnotationInstalledBy: state.InstalledBy(in)}
	record.Spec = packagesv1alpha1.PackageSpec{AppMetadata: appMetadata(c.pkg.Meta), CRDs: kinds}
	// A package that states no version has the one of its tag.
	record.Spec.Version = cmp.Or(record.Spec.Version, c.origin.Tag)
	record.Spec.DependsOn = requirements(c.pkg.Meta)
	record.Spec.Permissions.Rules = c.pkg.Meta.PermissionRequests
	record.Spec.ServiceAccount = in.InstallSpec().ServiceAccount
	record.Spec.Controller.ServiceAccount = record.Spec.ServiceAccount // Crossplane v0.12 has it here.
	record.Spec.Controller.Deployment, err = controllerOf(in, c)
	return record, err
}

// labelController is the label of the Pods of a controller with the name of its install object.
const labelController = "core.crossplane.io/name"

// controllerOf returns the Deployment of the controller of a package with the settings of an install object, or nil if
// the package has no controller.
func controllerOf(in packagesv1alpha1.Install, c content) (*packagesv1alpha1.ControllerDeployment, error) {
	defaults, err := runtimedefaults.Parse(c.pkg.Meta.Annotations)
	if err != nil || defaults != nil && defaults.None {
		return nil, err
	}
	config := manifests.WithDefaults(nil, defaults)
	spec := appsv1.DeploymentSpec{}
	if config != nil {
		spec = *config.Spec.DeploymentTemplate.Spec
	}
	labels := map[string]string{labelController: in.GetName()}
	spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	spec.Template.Labels = labels
	pod := &spec.Template.Spec
	if len(pod.Containers) == 0 {
		pod.Containers = []corev1.Container{{Name: manifests.Container}}
	}
	pod.Containers[0].Image = imageOf(in, c, defaults)
	if policy := in.InstallSpec().ImagePullPolicy; policy != "" {
		pod.Containers[0].ImagePullPolicy = policy
	}
	pod.ImagePullSecrets = localReferences(in.InstallSpec().ImagePullSecrets)
	raw, err := json.Marshal(spec)
	return &packagesv1alpha1.ControllerDeployment{Name: in.GetName(), Spec: runtime.RawExtension{Raw: raw}}, err
}

// imageOf returns the image of the controller of a package for an install object: the image that its metadata names,
// otherwise the image of the package with its digest.
func imageOf(in packagesv1alpha1.Install, c content, defaults *runtimedefaults.Defaults) string {
	image := c.pkg.Meta.ControllerImage
	switch {
	case image == "":
		return c.origin.WithDigest(c.digest).String()
	case defaults != nil && defaults.ImageInPackageRegistry:
		return imageIn(in, c, image)
	}
	return image
}

// ensureRecord creates the record of an install object, or restores it, with the given owners, of which the install
// object is one. It fails with PackageRecordNotOwned if the Package exists and is not the record of this object.
func (b *Base) ensureRecord(
	ctx context.Context, in packagesv1alpha1.Install, want *packagesv1alpha1.Package, owners []metav1.OwnerReference,
) (*packagesv1alpha1.Package, error) {
	live := &packagesv1alpha1.Package{}
	err := b.API.Client.Get(ctx, client.ObjectKeyFromObject(want), live)
	if apierrors.IsNotFound(err) {
		want.OwnerReferences = owners
		err := b.API.Client.Create(ctx, want)
		if apierrors.IsAlreadyExists(err) {
			return nil, requeue.ErrStale
		}
		if err != nil {
			return nil, fmt.Errorf("create the record %s: %w", want.Name, err)
		}
		return want, nil
	}
	if err != nil {
		return nil, err
	}
	if !isRecordOf(live, in) {
		return nil, recordExists(live)
	}
	changed := live.DeepCopy()
	changed.Spec, changed.OwnerReferences = want.Spec, owners
	metav1.SetMetaDataAnnotation(&changed.ObjectMeta, state.AnnotationInstalledBy, state.InstalledBy(in))
	if equality.Semantic.DeepEqual(changed.ObjectMeta, live.ObjectMeta) && sameJSON(live.Spec, want.Spec) {
		return live, nil
	}
	if err := b.API.Client.Update(ctx, changed); err != nil {
		return nil, fmt.Errorf("restore the record %s: %w", want.Name, err)
	}
	return changed, nil
}

// checkRecord fails with PackageRecordNotOwned if the record of an install object, or the StackDefinition of a package
// with templates, cannot be written, before anything is installed. It reads from the API server until there is a
// record.
func (b *Base) checkRecord(ctx context.Context, in packagesv1alpha1.Install) error {
	reader := b.API.Live
	if in.InstallStatus().PackageRecord != nil {
		reader = b.API.Client
	} else if err := b.checkDefinition(ctx, in); err != nil {
		return err
	}
	live := &packagesv1alpha1.Package{}
	err := reader.Get(ctx, client.ObjectKeyFromObject(in), live)
	if err == nil && !isRecordOf(live, in) {
		return recordExists(live)
	}
	return client.IgnoreNotFound(err)
}

func recordExists(p *packagesv1alpha1.Package) error {
	return ErrRecordExists.New(nil, "the Package %s exists, and is not the record of this object", p.Name)
}

// isRecordOf reports whether a Package is the record of an install object.
func isRecordOf(p *packagesv1alpha1.Package, in packagesv1alpha1.Install) bool {
	return isMarked(p, in)
}

// isMarked reports whether an annotation or an owner reference of an object names an install object.
func isMarked(o metav1.Object, in packagesv1alpha1.Install) bool {
	return o.GetAnnotations()[state.AnnotationInstalledBy] == state.InstalledBy(in) ||
		slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool {
			return r.Kind == in.PackageKind() &&
				r.Name == in.GetName()
		})
}

// deleteRecord deletes the record of an install object, and its StackDefinition.
func (b *Base) deleteRecord(ctx context.Context, in packagesv1alpha1.Install) error {
	live := &packagesv1alpha1.Package{}
	in.InstallStatus().PackageRecord = nil
	err := b.API.Client.Get(ctx, client.ObjectKeyFromObject(in), live)
	if err != nil || !isRecordOf(live, in) {
		return client.IgnoreNotFound(err)
	}
	if isTemplating(live) {
		if err := b.deleteDefinitions(ctx, in); err != nil {
			return err
		}
	}
	if live.DeletionTimestamp != nil {
		return nil
	}
	return b.API.Delete(ctx, live)
}

// ownerReference returns the reference of an install object as an owner.
func ownerReference(in packagesv1alpha1.Install, controller bool) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: packagesv1alpha1.GroupVersion.String(), Kind: in.PackageKind(), Name: in.GetName(), UID: in.GetUID(),
		Controller: new(controller), BlockOwnerDeletion: new(true),
	}
}

// sameJSON reports whether two objects are equal as JSON.
func sameJSON(a, b any) bool {
	x, errX := normalized(a)
	y, errY := normalized(b)
	return errX == nil && errY == nil && equality.Semantic.DeepEqual(x, y)
}

func normalized(object any) (map[string]any, error) {
	raw, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	return out, json.Unmarshal(raw, &out)
}

// usedProvider returns the Provider that the status of an install object names, or nil if it does not exist.
func (b *Base) usedProvider(ctx context.Context, in packagesv1alpha1.Install) (*v1.Provider, error) {
	name := in.InstallStatus().Provider
	if name == "" {
		return nil, nil
	}
	p := &v1.Provider{}
	err := b.API.Client.Get(ctx, types.NamespacedName{Name: name}, p)
	if apierrors.IsNotFound(err) {
		// The cache may not contain a new Provider yet.
		err = b.API.Live.Get(ctx, types.NamespacedName{Name: name}, p)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read Provider %s: %w", name, err)
	}
	return p, nil
}

// deleteUnprovided deletes the record of an install object that used a Provider that does not exist any more. If the
// status of the object names no Provider, because a backup restored the object without it, the reason of the failure
// must be that there is none.
func (b *Base) deleteUnprovided(ctx context.Context, in packagesv1alpha1.Install, failure error) error {
	if in.InstallStatus().Provider == "" && !errors.Is(failure, provide.ErrNoProvider) &&
		!errors.Is(failure, provide.ErrAmbiguous) {
		return nil
	}
	in.InstallStatus().Provider = ""
	return b.deleteRecord(ctx, in)
}

// reportRecord writes the status of the record of an install object, if there is one whose controller is another
// object.
func (b *Base) reportRecord(
	ctx context.Context, in packagesv1alpha1.Install, controller *packagesv1alpha1.ObjectReference, s revision.Summary,
) error {
	set := func(record *packagesv1alpha1.Package) (changed bool) {
		if !isRecordOf(record, in) || isTemplating(record) {
			return false
		}
		before := record.Status.DeepCopy()
		record.Status.ControllerRef = controller
		status.Set(record, b.API.Time(), s)
		return !equality.Semantic.DeepEqual(*before, record.Status)
	}
	record, key := &packagesv1alpha1.Package{}, client.ObjectKeyFromObject(in)
	err := b.API.Client.Get(ctx, key, record)
	if err == nil && !set(record) || apierrors.IsNotFound(err) && in.InstallStatus().PackageRecord == nil {
		return nil
	}
	if client.IgnoreNotFound(err) == nil {
		// The cache may not contain the last change yet.
		err = b.API.Live.Get(ctx, key, record)
	}
	if err != nil || !set(record) {
		return client.IgnoreNotFound(err)
	}
	if err := b.API.Client.Status().Update(ctx, record); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("write the status of the record %s: %w", record.Name, err))
	}
	b.API.Status.Writes.Wrote(record)
	return nil
}

func referenceTo(p *packagesv1alpha1.Package) *packagesv1alpha1.ObjectReference {
	return &packagesv1alpha1.ObjectReference{
		APIVersion: packagesv1alpha1.GroupVersion.String(), Kind: packagesv1alpha1.PackageKind, Namespace: p.Namespace,
		Name: p.Name, UID: string(p.UID),
	}
}
