package unpack

import (
	"context"
	"errors"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/text"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

// ErrWrongPlatform is the code for an image for another platform.
var ErrWrongPlatform = errcode.Code{
	Name: "WrongPlatform", Class: errcode.Unsupported,
	Cause: "The runtime image was built for another operating system or processor.",
	Fix:   "Publish the image for this platform too, or run the package on a machine of its platform.",
}

// RuntimeImage is a runtime image whose manifest and configuration are verified. Its
// layers are not.
type RuntimeImage struct {
	// Digest identifies the chosen manifest. Root identifies the requested content: an
	// index above it, or the manifest itself.
	Digest, Root oci.Digest
	// Platform is the platform in the configuration of the image.
	Platform oci.Platform
	Config   RuntimeConfig
	// Layers are the layers of the file system, bottom layer first.
	Layers []oci.Descriptor
}

// RuntimeConfig is the part of the configuration that describes the process (OCI image
// specification, "Image Configuration").
type RuntimeConfig struct {
	Entrypoint []string `json:"Entrypoint,omitempty"`
	Cmd        []string `json:"Cmd,omitempty"`
	// Env has entries NAME=VALUE.
	Env        []string `json:"Env,omitempty"`
	WorkingDir string   `json:"WorkingDir,omitempty"`
	User       string   `json:"User,omitempty"`
	StopSignal string   `json:"StopSignal,omitempty"`
	// Labels are the labels of the image, such as its version.
	Labels map[string]string `json:"Labels,omitempty"`
}

// Fetch stores a runtime image with all of its layers, unlike [remote.Client.Fetch],
// which stores only the layer of the package. The reference needs a digest. It fails with
// ErrWrongPlatform if the image is not for the platform.
func Fetch(
	ctx context.Context, r *remote.Client, ref oci.Reference, store *store.Store, platform oci.Platform, limits Limits,
) (RuntimeImage, error) {
	if ref.Digest.IsZero() {
		return RuntimeImage{}, oci.ErrInvalidReference.New(nil, "reference %s has no digest to fetch", ref)
	}
	image, err := Describe(ctx, r, ref, store, platform, limits)
	if err != nil {
		return RuntimeImage{}, err
	}
	return image, r.FetchBlobs(ctx, ref, image.Layers, store)
}

// Describe is like Fetch, but does not fetch layers.
func Describe(
	ctx context.Context, r *remote.Client, ref oci.Reference, store *store.Store, platform oci.Platform, limits Limits,
) (RuntimeImage, error) {
	a, err := r.Cached(ctx, ref, store)
	if err != nil {
		return RuntimeImage{}, err
	}
	return Find(ctx, a, platform, r.Limits(), limits)
}

// Find returns the runtime image of an artifact. It neither opens nor fetches layers.
func Find(
	ctx context.Context, a oci.Artifact, platform oci.Platform, limits oci.Limits, unpack Limits,
) (RuntimeImage, error) {
	limits = limits.WithDefaults()
	desc, _, doc, err := oci.FindImage(ctx, a, platform, limits)
	if errors.Is(err, oci.ErrPlatformNotFound) {
		return RuntimeImage{}, ErrWrongPlatform.New(err, "image %s is not for %s", a.Root().Digest.Short(), platform)
	}
	if err != nil {
		return RuntimeImage{}, err
	}
	image := RuntimeImage{Digest: desc.Digest, Root: a.Root().Digest, Layers: doc.Layers}
	if err := doc.CheckImage(); err != nil {
		return RuntimeImage{}, err
	}
	if err := image.checkLayers(unpack.withDefaults()); err != nil {
		return RuntimeImage{}, err
	}
	return image, image.readConfig(ctx, a, *doc.Config, platform, limits)
}

// checkLayers rejects layers that can never be unpacked, before they are fetched.
func (p *RuntimeImage) checkLayers(limits Limits) error {
	left := limits.Download
	for _, layer := range p.Layers {
		if !layer.MediaType.IsDistributable() {
			return oci.ErrForeignLayer.New(nil, "layer %s is of type %q", layer.Digest.Short(), layer.MediaType)
		}
		if _, ok := oci.LayerCompression(layer.MediaType); !ok {
			return oci.ErrNotAPackage.New(
				nil, "layer %s is of type %q, which is not a tar", layer.Digest.Short(), text.Clip(string(layer.MediaType)),
			)
		}
		if layer.Size > left {
			return ErrImageTooLarge.New(nil, "the layers of image %s have more than %d bytes", p.Digest.Short(), limits.Download)
		}
		left -= layer.Size
	}
	return nil
}

// readConfig reads the configuration of the process and the platform. An image without a
// platform is accepted for every platform.
func (p *RuntimeImage) readConfig(
	ctx context.Context, a oci.Artifact, d oci.Descriptor, platform oci.Platform, limits oci.Limits,
) error {
	raw, err := oci.ReadSmall(ctx, a, d, limits)
	if err != nil {
		return err
	}
	config, err := image.ParseConfig(raw)
	if err != nil {
		return err
	}
	if p.Platform, err = config.Platform(); err != nil {
		return err
	}
	if !p.Platform.IsZero() && !(oci.Platform{OS: p.Platform.OS, Architecture: p.Platform.Architecture}).
		Satisfies(oci.Platform{OS: platform.OS, Architecture: platform.Architecture}) {
		return ErrWrongPlatform.New(
			nil, "image %s is for %s, and this machine is %s", p.Digest.Short(), text.Clip(p.Platform.String()), platform,
		)
	}
	return config.Get("config", &p.Config)
}
