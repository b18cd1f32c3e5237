package firstgen

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	"github.com/xpkg-dev/xpkg/pkg/firstgen"
)

// Names in the Pod of a templating controller. Published controllers have the flags, and read the StackDefinition in
// the variables.
const (
	templatingContainer = "package-behavior-manager"
	templatesContainer  = "package-behavior-copy-to-manager"
	templatesVolume     = "behaviors"
	templatesMount      = "/behaviors"
	envDefinition       = "SD_NAME"
	envNamespace        = "SD_NAMESPACE"
)

// ensureContent creates the record of an install object for a content, or restores it. The record of a package with
// templates is controlled by a StackDefinition, from which the templating controller reads its settings.
func (b *Base) ensureContent(
	ctx context.Context, in packagesv1alpha1.Install, c content,
) (*packagesv1alpha1.Package, error) {
	record, err := newRecord(in, c)
	if err != nil {
		return nil, err
	}
	t, err := firstgen.ParseTemplating(c.pkg.Meta.Annotations)
	if err != nil {
		return nil, err
	}
	if t == nil {
		return b.ensurePlainRecord(ctx, in, record)
	}
	behavior, err := b.behaviorOf(ctx, in, c, t)
	if err != nil {
		return nil, err
	}
	if err := setTemplating(in, record, behavior, t.DependsOn); err != nil {
		return nil, err
	}
	definition, err := b.ensureDefinition(ctx, in, packagesv1alpha1.StackDefinitionSpec{
		PackageSpec: record.Spec, Behavior: behavior,
	})
	if err != nil {
		return nil, err
	}
	return b.ensureRecord(ctx, in, record, []metav1.OwnerReference{definition, ownerReference(in, false)})
}

// ensurePlainRecord creates or restores the record of a package without templates. The StackDefinition of an earlier
// version of the package is deleted.
func (b *Base) ensurePlainRecord(
	ctx context.Context, in packagesv1alpha1.Install, record *packagesv1alpha1.Package,
) (*packagesv1alpha1.Package, error) {
	had, err := b.hasDefinition(ctx, in)
	if err != nil {
		return nil, err
	}
	record, err = b.ensureRecord(ctx, in, record, []metav1.OwnerReference{ownerReference(in, true)})
	if err == nil && had {
		err = b.deleteDefinitions(ctx, in)
	}
	return record, err
}

// isTemplating reports whether a record is that of a package with templates.
func isTemplating(record *packagesv1alpha1.Package) bool {
	c := metav1.GetControllerOf(record)
	return c != nil && c.Kind == packagesv1alpha1.StackDefinitionKind
}

// behaviorOf returns the templates and the templating controller of a package, with the images that run: those that
// name no registry are in the source of the install object, or else in the registry of the package. The image of the
// templates has a digest, which is resolved once: the StackDefinition records it.
func (b *Base) behaviorOf(
	ctx context.Context, in packagesv1alpha1.Install, c content, t *firstgen.Templating,
) (packagesv1alpha1.Behavior, error) {
	out := packagesv1alpha1.Behavior{}
	raw, err := json.Marshal(t.Behavior)
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		return out, ErrController.New(err, "cannot use the engine of the package")
	}
	out.Engine.ControllerImage = imageIn(
		in, c, cmp.Or(out.Engine.ControllerImage, b.Options.TemplatingImage, DefaultTemplatingImage),
	)
	if out.Source.Image == "" {
		out.Source.Image = c.origin.WithDigest(c.digest).String()
		return out, nil
	}
	out.Source.Image, err = b.pinnedTemplates(ctx, in, imageIn(in, c, out.Source.Image))
	return out, err
}

// pinnedTemplates returns an image with its digest.
func (b *Base) pinnedTemplates(ctx context.Context, in packagesv1alpha1.Install, image string) (string, error) {
	ref, err := b.Options.Reference("", image)
	if err != nil {
		return "", err
	}
	recorded, err := b.definition(ctx, in)
	if err != nil {
		return "", err
	}
	o, err := b.originOf(ctx, in.GetNamespace(), ref, secretNames(in.InstallSpec().ImagePullSecrets))
	if err != nil {
		return "", err
	}
	digest, err := b.digestOf(ctx, o, recorded.Spec.Behavior.Source.Image)
	return o.Ref.WithDigest(digest).String(), err
}

// setTemplating sets the controller of the record of a package with templates, the kinds of the objects that the
// templates create, and the permission to read the StackDefinition.
func setTemplating(
	in packagesv1alpha1.Install, record *packagesv1alpha1.Package, behavior packagesv1alpha1.Behavior, kinds []string,
) error {
	raw, err := json.Marshal(templatingDeployment(in, behavior))
	if err != nil {
		return err
	}
	spec := &record.Spec
	spec.Controller.Deployment = &packagesv1alpha1.ControllerDeployment{Name: in.GetName(), Spec: runtime.RawExtension{
		Raw: raw,
	}}
	for _, crd := range kinds {
		if d := (packagesv1alpha1.InstallSpec{
			CRD: crd,
		}); !slices.ContainsFunc(spec.DependsOn, func(have packagesv1alpha1.InstallSpec) bool { return have.CRD == crd }) {
			spec.DependsOn = append(spec.DependsOn, d)
		}
	}
	spec.Permissions.Rules = append(spec.Permissions.Rules, definitionRule(in.GetName()))
	return nil
}

// templatingDeployment returns the Deployment of a templating controller: an init container copies the templates out of
// their image.
func templatingDeployment(in packagesv1alpha1.Install, behavior packagesv1alpha1.Behavior) appsv1.DeploymentSpec {
	labels := map[string]string{labelController: in.GetName()}
	mounts := []corev1.VolumeMount{{Name: templatesVolume, MountPath: templatesMount}}
	policy := in.InstallSpec().ImagePullPolicy
	return appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{
				InitContainers: []corev1.Container{{
					Name: templatesContainer, Image: behavior.Source.Image, ImagePullPolicy: policy, VolumeMounts: mounts,
					Command:         []string{"cp", "-R", behavior.Source.Path + "/.", templatesMount},
					SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: new(false)},
				}},
				Containers: []corev1.Container{{
					Name: templatingContainer, Image: behavior.Engine.ControllerImage, ImagePullPolicy: policy, VolumeMounts: mounts,
					Args: []string{
						"--resources-dir", templatesMount, "--stack-definition-namespace", "$(" + envNamespace + ")",
						"--stack-definition-name", "$(" + envDefinition + ")",
					},
					Env: []corev1.EnvVar{{Name: envNamespace, Value: in.GetNamespace()}, {Name: envDefinition, Value: in.GetName()}},
				}},
				Volumes: []corev1.Volume{{Name: templatesVolume, VolumeSource: corev1.VolumeSource{
					EmptyDir: &corev1.EmptyDirVolumeSource{},
				}}},
				ImagePullSecrets: localReferences(in.InstallSpec().ImagePullSecrets),
			},
		},
	}
}

// definitionRule returns the permission to read a StackDefinition.
func definitionRule(name string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: definitionGroups(), Resources: []string{definitionResource}, ResourceNames: []string{name},
		Verbs: []string{"get", "list", "watch"},
	}
}

// readsDefinitions reports whether a rule only permits reading StackDefinitions, which contain no secrets.
func readsDefinitions(rule rbacv1.PolicyRule) bool {
	within := func(values, allowed []string) bool {
		return len(values) > 0 && !slices.ContainsFunc(values, func(v string) bool { return !slices.Contains(allowed, v) })
	}
	return within(rule.APIGroups, definitionGroups()) && within(rule.Resources, []string{definitionResource}) &&
		within(rule.Verbs, []string{"get", "list", "watch"})
}
