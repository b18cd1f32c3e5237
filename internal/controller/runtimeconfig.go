package controller

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

// ErrRuntimeConfig is the failure of a configuration of a program that is not there.
var ErrRuntimeConfig = errcode.Code{
	Name: "RuntimeConfigNotFound", Class: errcode.NotFound,
	Cause: "The configuration that a package, or an ImageConfig, names for its program does not exist, or is of a kind that configures no programs.",
	Fix:   "Create the DeploymentRuntimeConfig or ControllerConfig that the message names; the package continues by itself.",
}

// runtimeConfig is what configures the program of a revision. What an ImageConfig
// names wins over what the package names. Every package names the configuration
// "default" that names no other, so an older controllerConfigRef wins over that; it
// need not exist (packages guide, "spec.controllerConfigRef").
func (r *revisionReconciler) runtimeConfig(ctx context.Context, rev v1.PackageRevision, ofImage *v1.RuntimeConfigReference) (*v1beta1.DeploymentRuntimeConfig, error) {
	spec := rev.RuntimeSpec()
	ref := spec.RuntimeConfigRef
	if ofImage != nil {
		ref = ofImage
	}
	if ref == nil || ofImage == nil && ref.Name == v1.DefaultRuntimeConfigName {
		if old := spec.ControllerConfigRef; old != nil {
			return r.controllerConfig(ctx, old.Name)
		}
	}
	if ref == nil {
		ref = &v1.RuntimeConfigReference{Name: v1.DefaultRuntimeConfigName}
	}
	if kind := value(ref.Kind); kind != "" && kind != v1beta1.DeploymentRuntimeConfigKind {
		return nil, ErrRuntimeConfig.New(nil, "the runtime configuration %s is a %s and not a %s", ref.Name, kind, v1beta1.DeploymentRuntimeConfigKind)
	}
	config := &v1beta1.DeploymentRuntimeConfig{}
	err := r.client.Get(ctx, client.ObjectKey{Name: ref.Name}, config)
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

func (r *revisionReconciler) controllerConfig(ctx context.Context, name string) (*v1beta1.DeploymentRuntimeConfig, error) {
	config := &v1alpha1.ControllerConfig{}
	err := r.client.Get(ctx, client.ObjectKey{Name: name}, config)
	switch {
	case apierrors.IsNotFound(err):
		return nil, ErrRuntimeConfig.New(nil, "there is no ControllerConfig %s", name)
	case err != nil:
		return nil, fmt.Errorf("read ControllerConfig %s: %w", name, err)
	}
	return manifests.FromControllerConfig(config), nil
}
