package process

import (
	"context"
	"crypto/x509"
	"maps"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/xpkg-dev/xpkg/internal/content"
	"github.com/xpkg-dev/xpkg/internal/oci"
)

// fetch brings an image into the store from the first place that has it. The failure
// is that of the last place, the origin itself.
func (r *Roots) fetch(ctx context.Context, origin content.Origin, digest oci.Digest) (image oci.ProgramImage, err error) {
	places := origin.Places
	if len(places) == 0 {
		places = content.Plain(origin.Ref).Places
	}
	for _, place := range places {
		image, err = r.fetchFrom(ctx, place, digest)
		if err == nil || ctx.Err() != nil || oci.ErrStoreWrite.Is(err) {
			break
		}
	}
	return image, err
}

func (r *Roots) fetchFrom(ctx context.Context, place content.Place, digest oci.Digest) (oci.ProgramImage, error) {
	remote, err := r.connect(ctx, place)
	if err != nil {
		return oci.ProgramImage{}, err
	}
	defer remote.Close()
	return remote.FetchProgram(ctx, place.Ref.WithDigest(digest), r.opts.Store, r.opts.Platform, r.opts.Limits)
}

// connect makes a client for a place. Images of programs are fetched rarely, so
// there is nothing to gain from keeping it.
func (r *Roots) connect(ctx context.Context, place content.Place) (*oci.Remote, error) {
	keychain := place.Keychain
	if place.Secrets != nil {
		var err error
		if keychain, err = place.Secrets(ctx); err != nil {
			return nil, err
		}
	}
	opts := r.opts.Remote
	switch {
	case keychain == nil:
	case opts.Keychain == nil:
		opts.Keychain = keychain
	default:
		opts.Keychain = authn.NewMultiKeychain(keychain, opts.Keychain)
	}
	if place.CABundle == "" && !place.PlainHTTP {
		return oci.NewRemote(opts), nil
	}
	settings := oci.HostOptions{PlainHTTP: place.PlainHTTP}
	if place.CABundle != "" {
		settings.RootCAs = x509.NewCertPool()
		if !settings.RootCAs.AppendCertsFromPEM([]byte(place.CABundle)) {
			return nil, content.ErrCABundleInvalid.New(nil, "the caBundle for registry %s holds no certificate", place.Ref.Host())
		}
	}
	hosts := maps.Clone(opts.Hosts)
	if hosts == nil {
		hosts = map[string]oci.HostOptions{}
	}
	hosts[place.Ref.Host()] = settings
	opts.Hosts = hosts
	return oci.NewRemote(opts), nil
}
