package firstgen

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// Install is the content of install.yaml.
type Install struct {
	deployment *appsv1.Deployment
	// doc is the document of install.yaml.
	doc xpkg.Document
}

// InstallOptions are the settings of an install object that change the Deployment of a package.
type InstallOptions struct {
	// Image is the reference of the package. Containers without an image run it.
	Image string
	// Source is the registry of the install object. It is added to images that name no registry. It may be empty.
	Source string
	// PullPolicy replaces the pull policy of every container unless it is empty.
	PullPolicy corev1.PullPolicy
	// PullSecrets are added to the pull secrets of the Deployment.
	PullSecrets []corev1.LocalObjectReference
}

// Deployment returns the Deployment of the controller with the settings of an install object. The result shares no
// memory with i.
func (i *Install) Deployment(opts InstallOptions) *appsv1.Deployment {
	d := i.deployment.DeepCopy()
	spec := &d.Spec.Template.Spec
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for n := range containers {
			c := &containers[n]
			if c.Image == "" {
				c.Image = opts.Image
			} else {
				c.Image = WithRegistry(c.Image, opts.Source)
			}
			if opts.PullPolicy != "" {
				c.ImagePullPolicy = opts.PullPolicy
			}
		}
	}
	for _, s := range opts.PullSecrets {
		if !slices.Contains(spec.ImagePullSecrets, s) {
			spec.ImagePullSecrets = append(spec.ImagePullSecrets, s)
		}
	}
	return d
}

// WithRegistry returns the reference of an image in a registry, which can have a path, unless the image names another
// one or the registry is empty.
func WithRegistry(image, registry string) string {
	if registry = strings.TrimSuffix(registry, "/"); registry == "" || hasRegistry(image) {
		return image
	}
	return registry + "/" + image
}

// hasRegistry reports whether the reference of an image names a registry, as container engines decide it.
func hasRegistry(image string) bool {
	first, _, isPath := strings.Cut(image, "/")
	return isPath && (strings.ContainsAny(first, ".:") || first == "localhost")
}

// readInstall reads install.yaml; it returns nil after reporting that the file is not a single Deployment.
func (r *reader) readInstall(f file) *Install {
	doc, ok := r.document(f, ErrInvalidInstall)
	if !ok {
		return nil
	}
	d := &appsv1.Deployment{}
	if !r.decodeDocument(doc, ErrInvalidInstall, d) {
		return nil
	}
	group, _, _ := strings.Cut(d.APIVersion, "/")
	switch {
	case d.Kind != "Deployment" || group != "apps" && group != "extensions":
		r.report(
			xpkg.Error, ErrInvalidInstall, f.path, doc.Line, "the file contains %.100q of %.100q, want a Deployment of apps/v1",
			d.Kind, d.APIVersion,
		)
		return nil
	case d.Name == "" || !isDNSSubdomain(d.Name):
		r.report(xpkg.Error, ErrInvalidInstall, f.path, doc.Line, "the Deployment has the invalid name %.100q", d.Name)
		return nil
	case len(d.Spec.Template.Spec.Containers) == 0:
		r.report(xpkg.Error, ErrInvalidInstall, f.path, doc.Line, "the Deployment has no containers")
		return nil
	}
	at := controllerIndex(d.Spec.Template.Spec.Containers)
	if image := d.Spec.Template.Spec.Containers[at].Image; image != "" {
		if _, err := oci.ParseReference(image, oci.ParseOptions{
			DefaultRegistry: "docker.io", AllowUntagged: true,
		}); err != nil {
			r.report(
				xpkg.Error, ErrInvalidInstall, f.path, lines(doc)(containerField(at)+".image"),
				"%.100q is not the reference of an image", errcode.HideCredentials(image),
			)
			return nil
		}
	}
	d.APIVersion = appsv1.SchemeGroupVersion.String()
	return &Install{d, doc}
}
