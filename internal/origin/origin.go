// Package origin finds where the content of a package is, as the ImageConfigs and
// secrets of a cluster say it.
package origin

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/content"
	"github.com/xpkg-dev/xpkg/internal/credentials"
	"github.com/xpkg-dev/xpkg/internal/imageconfig"
	"github.com/xpkg-dev/xpkg/internal/oci"
)

// Finder finds origins.
type Finder struct {
	// Reader reads the ImageConfigs; one that answers from a cache is best.
	Reader client.Reader
	// Secrets reads pull secrets. It should ask the cluster itself, so that a new
	// secret holds at once and no secret is kept. Nil means Reader.
	Secrets client.Reader
	// Namespace is where the secrets are: that of the package manager (packages
	// guide, "spec.packagePullSecrets").
	Namespace string
}

// Find gives the origin of an image for a package with these pull secrets, and
// what the ImageConfigs say about it.
//
// The ImageConfigs are listed once. Secrets are read when a registry has to be
// asked and not before, each time: content that is at hand costs no call, and
// needs no secret to be there. A secret that is missing or malformed then fails
// with PullSecretNotFound or PullSecretInvalid.
//
// Find itself fails with ImageConfigInvalid, and with InvalidReference for an
// image that is none.
func (f Finder) Find(ctx context.Context, image string, pullSecrets []string) (content.Origin, imageconfig.Route, error) {
	configs, err := f.configs(ctx)
	if err != nil {
		return content.Origin{}, imageconfig.Route{}, err
	}
	return f.among(configs, image, pullSecrets)
}

// among is Find with these ImageConfigs.
func (f Finder) among(configs []v1beta1.ImageConfig, image string, pullSecrets []string) (content.Origin, imageconfig.Route, error) {
	// Prefixes are compared with the one spelling of a host. What is no reference
	// can become one by rewriting.
	if ref, err := oci.ParseReference(image, oci.ParseOptions{}); err == nil {
		image = ref.String()
	}
	route, err := imageconfig.Choose(image, pullSecrets, configs)
	if err != nil {
		return content.Origin{}, imageconfig.Route{}, err
	}
	o, err := f.origin(image, route)
	return o, route, err
}

// configs lists the ImageConfigs. A cluster that does not know the kind has none.
func (f Finder) configs(ctx context.Context) ([]v1beta1.ImageConfig, error) {
	var list v1beta1.ImageConfigList
	err := f.Reader.List(ctx, &list)
	if err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("list image configs: %w", err)
	}
	return list.Items, nil
}

// origin makes places of the sources of a route.
func (f Finder) origin(image string, route imageconfig.Route) (content.Origin, error) {
	var o content.Origin
	for _, s := range route.Sources {
		ref, err := oci.ParseReference(s.Image, oci.ParseOptions{})
		switch {
		case err != nil && s.Image != image:
			return content.Origin{}, imageconfig.ErrImageConfigInvalid.New(err, "the ImageConfigs make %q of the image %s", s.Image, image)
		case err != nil:
			return content.Origin{}, err
		}
		o.Ref = ref // The last source is the image itself.
		o.Places = append(o.Places, content.Place{
			Ref: ref, Secrets: f.keychain(s.PullSecrets), CABundle: s.CABundle, PlainHTTP: s.PlainHTTP,
		})
	}
	return o, nil
}

// keychain gives what makes a keychain of the named secrets; nil for none.
func (f Finder) keychain(names []string) func(context.Context) (*credentials.Keychain, error) {
	if len(names) == 0 {
		return nil
	}
	return func(ctx context.Context) (*credentials.Keychain, error) {
		secrets := make([]corev1.Secret, len(names))
		for i, name := range names {
			if err := f.secret(ctx, name, &secrets[i]); err != nil {
				return nil, err
			}
		}
		return credentials.New(secrets...)
	}
}

func (f Finder) secret(ctx context.Context, name string, into *corev1.Secret) error {
	reader := f.Secrets
	if reader == nil {
		reader = f.Reader
	}
	err := reader.Get(ctx, types.NamespacedName{Namespace: f.Namespace, Name: name}, into)
	switch {
	case apierrors.IsNotFound(err):
		return credentials.ErrPullSecretNotFound.New(nil, "there is no pull secret %s in the namespace %s", name, f.Namespace)
	case err != nil:
		return fmt.Errorf("read pull secret %s: %w", name, err)
	}
	return nil
}
