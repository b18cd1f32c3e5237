// Package origin locates the content of a package from the ImageConfigs and secrets of a
// cluster.
package origin

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/credentials"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/imageconfig"
	"github.com/xpkg-dev/xpkg/internal/signature"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// Finder finds origins.
type Finder struct {
	// Reader reads the ImageConfigs. It should be a cached reader.
	Reader client.Reader
	// Secrets reads pull secrets. It should be a live reader, so that a new secret is
	// effective at once and secrets are not cached. Nil means Reader.
	Secrets client.Reader
	// Namespace is the namespace of the secrets, which is the namespace of the package
	// manager (packages guide, "spec.packagePullSecrets").
	Namespace string
	// LeavesSecrets leaves requirements for signatures whose secrets the client may not read to
	// the manager, which verifies all of them.
	LeavesSecrets bool
}

// Find returns the origin of an image for a package with these pull secrets, and the
// result of evaluating the ImageConfigs for it.
//
// The ImageConfigs are listed once. Secrets are read only when a registry is contacted,
// each time: content that is available locally costs no call and does not require the
// secret to exist. A secret that is missing or malformed then fails with
// PullSecretNotFound or PullSecretInvalid.
//
// Find itself fails with ImageConfigInvalid, and with InvalidReference for an image that
// is not a valid reference.
func (f Finder) Find(ctx context.Context, image string, pullSecrets []string) (fetch.Origin, imageconfig.Route, error) {
	configs, err := f.configs(ctx)
	if err != nil {
		return fetch.Origin{}, imageconfig.Route{}, err
	}
	return f.among(configs, image, pullSecrets)
}

// among is like Find, with the given ImageConfigs.
func (f Finder) among(
	configs []v1beta1.ImageConfig, image string, pullSecrets []string,
) (fetch.Origin, imageconfig.Route, error) {
	// Prefixes are compared with the canonical spelling of a host. A name that is not a
	// reference can become one by rewriting.
	if ref, err := oci.ParseReference(image, oci.ParseOptions{}); err == nil {
		image = ref.String()
	}
	route, err := imageconfig.Choose(image, pullSecrets, configs)
	if err != nil {
		return fetch.Origin{}, imageconfig.Route{}, err
	}
	o, err := f.origin(image, route)
	return o, route, err
}

// configs lists the ImageConfigs. The result is empty if the cluster does not serve the
// kind.
func (f Finder) configs(ctx context.Context) ([]v1beta1.ImageConfig, error) {
	var list v1beta1.ImageConfigList
	err := f.Reader.List(ctx, &list)
	if err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("list image configs: %w", err)
	}
	return list.Items, nil
}

// origin converts the sources of a route to places.
func (f Finder) origin(image string, route imageconfig.Route) (fetch.Origin, error) {
	o := fetch.Origin{Signed: f.signed(route.Verifications)}
	for _, s := range route.Sources {
		ref, err := oci.ParseReference(s.Image, oci.ParseOptions{})
		switch {
		case err != nil && s.Image != image:
			return fetch.Origin{}, imageconfig.ErrImageConfigInvalid.New(
				err, "the ImageConfigs rewrite the image %s to %q, which is not a valid reference", image, s.Image,
			)
		case err != nil:
			return fetch.Origin{}, err
		}
		o.Ref = ref // The last source is the image itself.
		o.Endpoints = append(o.Endpoints, fetch.Endpoint{
			Ref: ref, Secrets: f.keychain(s.PullSecrets), CABundle: s.CABundle, PlainHTTP: s.PlainHTTP,
		})
	}
	return o, nil
}

// keychain returns a function that reads the named secrets, and nil if there are none.
func (f Finder) keychain(names []string) func(context.Context) (*credentials.Keychain, error) {
	if len(names) == 0 {
		return nil
	}
	return func(ctx context.Context) (*credentials.Keychain, error) {
		var secrets []corev1.Secret
		var missing []error
		for _, name := range names {
			var secret corev1.Secret
			err := f.secret(ctx, name, &secret)
			switch {
			case errors.Is(err, credentials.ErrPullSecretNotFound):
				missing = append(missing, err)
			case err != nil:
				return nil, err
			default:
				secrets = append(secrets, secret)
			}
		}
		return credentials.New(secrets, missing...)
	}
}

func (f Finder) secret(ctx context.Context, name string, into *corev1.Secret) error {
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return credentials.ErrPullSecretNotFound.New(errors.New(problems[0]), "%.100q is not the name of a pull secret", name)
	}
	err := f.secrets().Get(ctx, types.NamespacedName{Namespace: f.Namespace, Name: name}, into)
	switch {
	case apierrors.IsNotFound(err):
		return credentials.ErrPullSecretNotFound.New(nil, "pull secret %s does not exist in namespace %s", name, f.Namespace)
	case err != nil:
		return fmt.Errorf("read pull secret %s: %w", name, err)
	}
	return nil
}

// secrets returns the reader of secrets.
func (f Finder) secrets() client.Reader {
	if f.Secrets != nil {
		return f.Secrets
	}
	return f.Reader
}

// signed returns a function that reads the requirements with the keys in their secrets, and nil if there are none.
func (f Finder) signed(all []imageconfig.Verification) func(context.Context) ([]signature.Requirement, error) {
	if len(all) == 0 {
		return nil
	}
	return func(ctx context.Context) ([]signature.Requirement, error) {
		var out []signature.Requirement
		for _, v := range all {
			r, err := signature.NewRequirement(ctx, v.Config, v.Cosign, f.value)
			switch {
			case apierrors.IsForbidden(err) && f.LeavesSecrets:
			case err != nil:
				return nil, err
			default:
				out = append(out, r)
			}
		}
		return out, nil
	}
}

// value returns a value of a secret.
func (f Finder) value(ctx context.Context, s v1beta1.SecretKeySelector) ([]byte, error) {
	var secret corev1.Secret
	reader := f.secrets()
	err := reader.Get(ctx, types.NamespacedName{Namespace: f.Namespace, Name: s.Name}, &secret)
	data, ok := secret.Data[s.Key]
	switch {
	case apierrors.IsNotFound(err):
		if f.Namespace == "" {
			return nil, signature.ErrTrust.New(nil, "the Secret %s is in none of the files of ImageConfigs", s.Name).
				WithDo("Add the Secret to one of the files, after a line with three hyphens.")
		}
		return nil, signature.ErrTrust.New(nil, "the Secret %s does not exist in namespace %s", s.Name, f.Namespace)
	case err != nil:
		return nil, fmt.Errorf("read the Secret %s: %w", s.Name, err)
	case !ok:
		return nil, signature.ErrTrust.New(nil, "the Secret %s in namespace %s has no value %s", s.Name, f.Namespace, s.Key)
	}
	return data, nil
}
