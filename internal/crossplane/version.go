// Package crossplane finds out about the Crossplane that runs in a cluster.
package crossplane

import (
	"context"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/failure"
	"github.com/xpkg-dev/xpkg/internal/oci"
)

// ErrVersion is the failure of a cluster that does not say which version of
// Crossplane it runs.
var ErrVersion = failure.Register(failure.Code{
	Name: "CrossplaneVersion", Class: failure.Unavailable,
	Cause: "The package is made for certain versions of Crossplane, and the cluster cannot be asked which one runs.",
	Fix:   "Allow the package manager to read Deployments in its namespace, or start it with --crossplane-version.",
})

const (
	// deployment is the name of Crossplane's Deployment, and versionLabel the label
	// with its version (Crossplane's Helm chart).
	deployment   = "crossplane"
	versionLabel = "app.kubernetes.io/version"
)

// Version is that of the Crossplane in a namespace. It is empty where none runs,
// and fails with CrossplaneVersion where nobody may ask.
func Version(ctx context.Context, reader client.Reader, namespace string) (string, error) {
	var d appsv1.Deployment
	err := reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: deployment}, &d)
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", ErrVersion.New(err, "cannot tell which version of Crossplane runs")
	}
	return versionOf(d), nil
}

// versionOf reads the version of Crossplane off its Deployment: its label, or else
// the tag of its image.
func versionOf(d appsv1.Deployment) string {
	if v := d.Labels[versionLabel]; v != "" {
		return v
	}
	for _, container := range d.Spec.Template.Spec.Containers {
		ref, err := oci.ParseReference(container.Image, oci.ParseOptions{DefaultRegistry: "docker.io"})
		if err == nil && strings.HasSuffix(ref.Repository, "crossplane") {
			return ref.Tag
		}
	}
	return ""
}
