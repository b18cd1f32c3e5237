// Package crossplane describes the Crossplane core of a cluster: its version, the fence that prevents it
// from writing packages, and conflicts with the manager.
package crossplane

import (
	"context"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// ErrVersion is the code for a cluster whose version of Crossplane cannot be determined.
var ErrVersion = errcode.Code{
	Name: "CrossplaneVersion", Class: errcode.Unavailable,
	Cause: "The package constrains the version of Crossplane, and the version that runs in the cluster cannot be determined.",
	Fix:   "Allow the package manager to read Deployments in its namespace, or set the flag --crossplane-version of `xpkg manager`.",
}

const (
	// DeploymentName is the name of Crossplane's Deployment, and versionLabel the label
	// with its version (Crossplane's Helm chart).
	DeploymentName = "crossplane"
	versionLabel   = "app.kubernetes.io/version"
)

// Version returns the version of Crossplane in a namespace, and "" if Crossplane does not
// run there. It fails with CrossplaneVersion if the Deployments cannot be read.
func Version(ctx context.Context, reader client.Reader, namespace string) (string, error) {
	var d appsv1.Deployment
	err := reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: DeploymentName}, &d)
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", ErrVersion.New(err, "cannot determine the version of Crossplane")
	}
	return versionOf(d), nil
}

// versionOf returns the version of Crossplane from its Deployment: its label, or the tag of its image.
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
