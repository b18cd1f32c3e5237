package firstgen

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/origin"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// workload returns the description of the controller of a Package. Everything that it refers to is in the namespace of
// the Package: pull secrets, volumes, and its ServiceAccount. An image that another system runs may not be readable.
func (r *Packages) workload(ctx context.Context, p *packagesv1alpha1.Package, external bool) (runtime.Workload, error) {
	config, image, err := configOf(p)
	if err != nil {
		return runtime.Workload{}, err
	}
	owner := ownerOf(p)
	w := runtime.Workload{
		Owner: plan.Requester{Package: owner, Revision: owner, Siblings: []string{p.Name}}, Namespace: p.Namespace,
		Config: config, Settle: r.SettleTime, External: external,
	}
	ref, err := r.Options.Reference("", image)
	if err != nil {
		return runtime.Workload{}, ErrController.New(err, "the controller of the Package %s has an invalid image", p.Name)
	}
	pod := config.Spec.DeploymentTemplate.Spec.Template.Spec
	for _, s := range pod.ImagePullSecrets {
		w.PullSecrets = append(w.PullSecrets, s.Name)
	}
	w.PullPolicy = pod.Containers[0].ImagePullPolicy
	if w.Origin, err = r.originOf(ctx, p.Namespace, ref, w.PullSecrets); err != nil {
		return runtime.Workload{}, err
	}
	// A tag is resolved once: the status records the digest.
	w.Digest, err = r.digestOf(ctx, w.Origin, p.Status.RuntimeImage)
	if external && runtime.IsUnreadable(err) {
		err = nil
	}
	return w, err
}

// originOf returns the origin of an image with the pull secrets of a namespace.
func (b *Base) originOf(
	ctx context.Context, namespace string, ref oci.Reference, secrets []string,
) (fetch.Origin, error) {
	finder := origin.Finder{Reader: b.API.Client, Secrets: b.API.Live, Namespace: namespace}
	o, _, err := finder.Find(ctx, ref.String(), secrets)
	return o, err
}

// digestOf returns the digest of an image, which is that of the recorded image if this is the same with a digest.
func (b *Base) digestOf(ctx context.Context, o fetch.Origin, recorded string) (oci.Digest, error) {
	if ref, err := oci.ParseReference(recorded, oci.ParseOptions{}); err == nil && !ref.Digest.IsZero() &&
		ref == o.Ref.WithDigest(ref.Digest) {
		return ref.Digest, nil
	}
	return b.Packages.Content.Resolve(ctx, o, 0)
}

// configOf returns the Deployment of a Package as the configuration of a runtime, and the image of its controller. The
// package manager chooses the ServiceAccount, the selector and the name.
func configOf(p *packagesv1alpha1.Package) (*v1beta1.DeploymentRuntimeConfig, string, error) {
	spec := &appsv1.DeploymentSpec{}
	if err := json.Unmarshal(p.Spec.Controller.Deployment.Spec.Raw, spec); err != nil {
		return nil, "", ErrController.New(err, "cannot read the Deployment of the Package %s", p.Name)
	}
	pod := &spec.Template.Spec
	at := controllerIndex(pod.Containers)
	if at < 0 {
		return nil, "", ErrController.New(nil, "the Deployment of the Package %s has no container", p.Name)
	}
	controller := &pod.Containers[at]
	image := controller.Image
	if image == "" {
		return nil, "", ErrController.New(nil, "the container %s of the Package %s has no image", controller.Name, p.Name)
	}
	for i, c := range pod.Containers {
		if i != at && c.Name == manifests.Container {
			return nil, "",
				ErrController.New(nil, "the Package %s has a second container with the name %s", p.Name, manifests.Container)
		}
	}
	controller.Name, controller.Image = manifests.Container, ""
	pod.ServiceAccountName, pod.DeprecatedServiceAccount, pod.AutomountServiceAccountToken = "", "", nil
	spec.Selector = nil
	if spec.Strategy.Type == "" {
		// Two versions of a controller must not work on the same objects.
		spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType
	}
	config := &v1beta1.DeploymentRuntimeConfig{}
	config.Spec.DeploymentTemplate = &v1beta1.DeploymentTemplate{Spec: spec}
	if annotations := accountAnnotations(p); len(annotations) > 0 {
		config.Spec.ServiceAccountTemplate = &v1beta1.ServiceAccountTemplate{Metadata: &v1beta1.ObjectMeta{
			Annotations: annotations,
		}}
	}
	return config, image, nil
}

// accountAnnotations returns the annotations of the ServiceAccount of a Package.
func accountAnnotations(p *packagesv1alpha1.Package) map[string]string {
	out := map[string]string{}
	for _, options := range []*packagesv1alpha1.ServiceAccountOptions{
		p.Spec.Controller.ServiceAccount, p.Spec.ServiceAccount,
	} {
		if options != nil {
			maps.Copy(out, options.Annotations)
		}
	}
	return out
}

// controllerIndex returns the index of the container of the controller, and -1 without containers: the one with the
// name of runtime containers, otherwise the first one.
func controllerIndex(all []corev1.Container) int {
	if len(all) == 0 {
		return -1
	}
	return max(0, slices.IndexFunc(all, func(c corev1.Container) bool { return c.Name == manifests.Container }))
}
