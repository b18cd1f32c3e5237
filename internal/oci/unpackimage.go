package oci

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/xpkg-dev/xpkg/internal/failure"
)

// ErrWrongPlatform is the failure of an image whose program cannot run here.
var ErrWrongPlatform = failure.Register(failure.Code{
	Name: "WrongPlatform", Class: failure.Unsupported,
	Cause: "The image of a program was built for another operating system or processor than that of this machine.",
	Fix:   "Publish the image for this platform too, or run the package on a machine of its platform.",
})

// ProgramImage is the image of a program, of which everything is verified but the
// layers.
type ProgramImage struct {
	// Digest identifies the manifest that was chosen, and Root what was asked for:
	// an index above it, or the manifest itself.
	Digest, Root Digest
	// Platform is what the image says it runs on.
	Platform Platform
	Config   ProgramConfig
	// Layers make the filesystem, the lowest first.
	Layers []Descriptor
}

// ProgramConfig says how the program of an image is started (OCI image
// specification, "Image Configuration").
type ProgramConfig struct {
	Entrypoint []string `json:"Entrypoint,omitempty"`
	Cmd        []string `json:"Cmd,omitempty"`
	// Env has entries NAME=VALUE.
	Env        []string `json:"Env,omitempty"`
	WorkingDir string   `json:"WorkingDir,omitempty"`
	User       string   `json:"User,omitempty"`
	StopSignal string   `json:"StopSignal,omitempty"`
}

// fetchedAtOnce is how many layers are downloaded at the same time.
const fetchedAtOnce = 3

// FetchProgram brings the whole image of a program into the store, with all of its
// layers, unlike [Remote.Fetch], which takes what makes the package. The reference
// needs a digest. It fails with WrongPlatform when the image is not for the
// platform, also when it is the only one there is.
func (r *Remote) FetchProgram(ctx context.Context, ref Reference, store *Store, platform Platform, limits UnpackLimits) (ProgramImage, error) {
	if ref.Digest.IsZero() {
		return ProgramImage{}, ErrInvalidReference.New(nil, "reference %s has no digest to fetch", ref)
	}
	a, err := r.into(ctx, ref, store)
	if err != nil {
		return ProgramImage{}, err
	}
	image, err := FindProgram(ctx, a, platform, r.opts.Limits, limits)
	if err != nil {
		return ProgramImage{}, err
	}
	downloads, ctx := errgroup.WithContext(ctx)
	downloads.SetLimit(fetchedAtOnce)
	for _, layer := range image.Layers {
		downloads.Go(func() error {
			if store.Has(layer.Digest) {
				return nil
			}
			return a.fetchOnce(ctx, layer)
		})
	}
	return image, downloads.Wait()
}

// FindProgram gives the image of a program in an artifact. Layers are neither
// opened nor fetched.
func FindProgram(ctx context.Context, a Artifact, platform Platform, limits Limits, unpack UnpackLimits) (ProgramImage, error) {
	limits = limits.WithDefaults()
	desc, _, doc, err := chooseImage(ctx, a, platform, limits)
	if ErrPlatformNotFound.Is(err) {
		return ProgramImage{}, ErrWrongPlatform.New(err, "image %s is not for %s", a.Root().Digest.Short(), platform)
	}
	if err != nil {
		return ProgramImage{}, err
	}
	image := ProgramImage{Digest: desc.Digest, Root: a.Root().Digest, Layers: doc.Layers}
	if err := (&Manifest{Config: *doc.Config}).checkConfig(doc); err != nil {
		return ProgramImage{}, err
	}
	if err := image.checkLayers(unpack.WithDefaults()); err != nil {
		return ProgramImage{}, err
	}
	return image, image.readConfig(ctx, a, *doc.Config, platform, limits)
}

// checkLayers refuses what can never be unpacked, before it is fetched.
func (p *ProgramImage) checkLayers(limits UnpackLimits) error {
	left := limits.Download
	for _, layer := range p.Layers {
		if !layer.MediaType.IsDistributable() {
			return ErrForeignLayer.New(nil, "layer %s is of type %q", layer.Digest.Short(), layer.MediaType)
		}
		if _, ok := layerCompression(layer.MediaType); !ok {
			return ErrNotAPackage.New(nil, "layer %s is of type %q, which is not a tar", layer.Digest.Short(), clip(string(layer.MediaType)))
		}
		if layer.Size > left {
			return ErrImageTooLarge.New(nil, "the layers of image %s have more than %d bytes", p.Digest.Short(), limits.Download)
		}
		left -= layer.Size
	}
	return nil
}

// readConfig reads how the program is started, and for which platform it is. An
// image that names no platform is taken at its word that it runs anywhere.
func (p *ProgramImage) readConfig(ctx context.Context, a Artifact, d Descriptor, platform Platform, limits Limits) error {
	raw, err := readSmall(ctx, a, d, limits)
	if err != nil {
		return err
	}
	config, err := parseConfig(raw)
	if err != nil {
		return err
	}
	if p.Platform, err = config.platform(); err != nil {
		return err
	}
	if !p.Platform.IsZero() && !(Platform{OS: p.Platform.OS, Architecture: p.Platform.Architecture}).Satisfies(Platform{OS: platform.OS, Architecture: platform.Architecture}) {
		return ErrWrongPlatform.New(nil, "image %s is for %s, and this machine is %s", p.Digest.Short(), clip(p.Platform.String()), platform)
	}
	return config.get("config", &p.Config)
}
