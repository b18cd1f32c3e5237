package runtime

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1alpha1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// ErrRuntimeConfig is the code for a runtime configuration that does not exist.
var ErrRuntimeConfig = errcode.Code{
	Name: "RuntimeConfigNotFound", Class: errcode.NotFound,
	Cause: "The runtime configuration that a package or an ImageConfig names does not exist, or is of a kind that configures no runtimes.",
	Fix:   "Create the DeploymentRuntimeConfig or ControllerConfig that the message names; the package continues automatically.",
}

// Config returns the configuration of the runtime of a revision, or nil if there is none. The
// configuration that an ImageConfig names, ofImage, takes precedence over the one that the package
// names. A package that names none uses its controllerConfigRef or, without one, the configuration
// "default", which need not exist (packages guide, "spec.controllerConfigRef").
func Config(
	ctx context.Context, reader client.Reader, rev v1.PackageRevision, ofImage *v1.RuntimeConfigReference,
) (*v1beta1.DeploymentRuntimeConfig, error) {
	spec := rev.RuntimeSpec()
	ref := spec.RuntimeConfigRef
	if ofImage != nil {
		ref = ofImage
	}
	if ref == nil || ofImage == nil && ref.Name == v1.DefaultRuntimeConfigName {
		if old := spec.ControllerConfigRef; old != nil {
			return controllerConfig(ctx, reader, old.Name)
		}
	}
	if ref == nil {
		ref = &v1.RuntimeConfigReference{Name: v1.DefaultRuntimeConfigName}
	}
	if kind := ref.Kind; kind != nil && *kind != "" && *kind != v1beta1.DeploymentRuntimeConfigKind {
		return nil, ErrRuntimeConfig.New(
			nil, "the runtime configuration %s is a %s and not a %s", ref.Name, *kind, v1beta1.DeploymentRuntimeConfigKind,
		)
	}
	config := &v1beta1.DeploymentRuntimeConfig{}
	err := reader.Get(ctx, client.ObjectKey{Name: ref.Name}, config)
	switch {
	case apierrors.IsNotFound(err) && ref.Name == v1.DefaultRuntimeConfigName:
		return nil, nil
	case apierrors.IsNotFound(err):
		return nil, ErrRuntimeConfig.New(nil, "there is no DeploymentRuntimeConfig %s", ref.Name)
	case err != nil:
		return nil, fmt.Errorf("read DeploymentRuntimeConfig %s: %w", ref.Name, err)
	}
	return config, nil
}

func controllerConfig(
	ctx context.Context, reader client.Reader, name string,
) (*v1beta1.DeploymentRuntimeConfig, error) {
	config := &v1alpha1.ControllerConfig{}
	err := reader.Get(ctx, client.ObjectKey{Name: name}, config)
	switch {
	case apierrors.IsNotFound(err):
		return nil, ErrRuntimeConfig.New(nil, "there is no ControllerConfig %s", name)
	case err != nil:
		return nil, fmt.Errorf("read ControllerConfig %s: %w", name, err)
	}
	return manifests.FromControllerConfig(config), nil
}
