package oci

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/xpkg-dev/xpkg/internal/failure"
)

// ErrInvalidImageInput is the failure of an image that cannot be built of what
// was given.
var ErrInvalidImageInput = failure.Register(failure.Code{
	Name: "InvalidImageInput", Class: failure.Invalid,
	Cause: "The parts that an image is to be built of do not fit together.",
	Fix:   "Change what the message names.",
})

// examplesPath is where tools of the field look for examples.
const examplesPath = ".up/examples.yaml"

// ImageInput is what a package image is built of.
type ImageInput struct {
	// PackageYAML is the stream of the package. It is not parsed here.
	PackageYAML []byte
	// Examples is a stream of examples; no layer is made when it is empty.
	Examples []byte
	// Extra are further annotated layers for third parties, on top of the others.
	Extra []ExtraLayer
	// Base is the runtime image that the package is put on top of; nil for a
	// package without a program.
	Base *Image
	// Platform is what the image says it runs on; linux/amd64 when it is zero.
	// With a Base it must be zero or that of the base.
	Platform Platform
	// Created is the time in the configuration; nothing is written when it is
	// zero, which is what makes two builds of the same input the same.
	Created time.Time
	// Annotations are put on the manifest.
	Annotations map[string]string
}

// ExtraLayer is an annotated layer for consumers other than Crossplane (xpkg
// specification, "Manifests").
type ExtraLayer struct {
	// Annotation is the value of io.crossplane.xpkg, any but "base".
	Annotation string
	Files      []LayerFile
}

// Image is an image that was built or loaded, ready to be pushed or written. It
// is an [Artifact].
type Image struct {
	content
	platform Platform
	manifest Document
	raw      []byte
	config   []byte
}

// Platform is what the configuration of the image names.
func (i *Image) Platform() Platform { return i.platform }

// Manifest is the image as the reading rules see it.
func (i *Image) Manifest() (Manifest, error) { return newManifest(i.raw, &i.manifest) }

// RawManifest are the bytes whose digest identifies the image.
func (i *Image) RawManifest() []byte { return slices.Clone(i.raw) }

// RawConfig are the bytes of the configuration.
func (i *Image) RawConfig() []byte { return slices.Clone(i.config) }

// BuildImage makes the image of a package (xpkg specification, "OCI Image
// Format"). The layer with package.yaml is annotated in the manifest itself, so
// that every tool that copies the image keeps the annotation; the configuration
// has the labels from which older tools make annotations again. Equal input gives
// an equal digest on every machine and at any time.
func BuildImage(ctx context.Context, in ImageInput) (*Image, error) {
	layers, err := in.buildLayers()
	if err != nil {
		return nil, err
	}
	img, config, err := in.start(ctx)
	if err != nil {
		return nil, err
	}
	labels := map[string]string{}
	for _, layer := range layers {
		img.manifest.Layers = append(img.manifest.Layers, layer.desc)
		img.add(layer.desc.Digest, bytesSource(layer.data))
		labels[AnnotationKey+":"+layer.desc.Digest.String()] = layer.desc.Annotations[AnnotationKey]
	}
	if err := config.addLayers(layers, in.Created); err != nil {
		return nil, err
	}
	if err := config.addLabels(labels); err != nil {
		return nil, err
	}
	if !in.Created.IsZero() {
		if err := config.set("created", in.Created.UTC().Format(time.RFC3339)); err != nil {
			return nil, err
		}
	}
	return img, img.seal(config)
}

// buildLayers packs what was given, the package first.
func (in *ImageInput) buildLayers() ([]builtLayer, error) {
	mediaType := MediaTypeOCILayerGzip
	if in.Base != nil && in.Base.manifest.MediaType == MediaTypeDockerManifest {
		mediaType = MediaTypeDockerLayerGzip
	}
	wanted := []ExtraLayer{{Annotation: AnnotationBase, Files: []LayerFile{{Path: streamName, Data: in.PackageYAML}}}}
	if len(in.Examples) > 0 {
		wanted = append(wanted, ExtraLayer{Annotation: AnnotationExamples, Files: []LayerFile{{Path: examplesPath, Data: in.Examples}}})
	}
	for _, extra := range in.Extra {
		if err := extra.check(); err != nil {
			return nil, err
		}
		wanted = append(wanted, extra)
	}
	layers := make([]builtLayer, 0, len(wanted))
	for _, w := range wanted {
		layer, err := buildLayer(w.Files, mediaType, w.Annotation)
		if err != nil {
			return nil, err
		}
		layers = append(layers, layer)
	}
	return layers, nil
}

// check keeps extra layers from changing what the package is: they must not have
// the base's annotation, and not its file, which readers of the whole filesystem
// would take instead.
func (e ExtraLayer) check() error {
	if e.Annotation == "" || e.Annotation == AnnotationBase {
		return ErrInvalidImageInput.New(nil, "an extra layer cannot be annotated %q", e.Annotation)
	}
	seen := map[string]bool{}
	for _, f := range e.Files {
		switch {
		case f.Path == "" || path.Clean("/"+f.Path) != "/"+f.Path:
			return ErrInvalidImageInput.New(nil, "an extra layer cannot hold the path %q", f.Path)
		case f.Path == streamName || strings.HasPrefix(path.Base(f.Path), ".wh."):
			return ErrInvalidImageInput.New(nil, "an extra layer cannot hold %q, which would change the package", f.Path)
		case seen[f.Path]:
			return ErrInvalidImageInput.New(nil, "an extra layer holds %q twice", f.Path)
		}
		seen[f.Path] = true
	}
	return nil
}

// start gives the image that the layers are put on.
func (in *ImageInput) start(ctx context.Context) (*Image, imageConfig, error) {
	if in.Base != nil {
		return in.startFromBase(ctx)
	}
	platform := in.Platform
	if platform.IsZero() {
		platform = DefaultPlatform()
	}
	config, err := newConfig(platform)
	img := &Image{platform: platform, manifest: Document{
		SchemaVersion: 2, MediaType: MediaTypeOCIManifest,
		Config: &Descriptor{MediaType: MediaTypeOCIConfig}, Annotations: maps.Clone(in.Annotations),
	}}
	return img, config, err
}

// seal writes the configuration and the manifest and makes the image final.
func (i *Image) seal(config imageConfig) error {
	var err error
	if i.config, err = config.bytes(); err != nil {
		return err
	}
	return i.sealRaw()
}

// sealRaw is seal for a configuration whose bytes must stay as they are.
func (i *Image) sealRaw() error {
	var err error
	i.manifest.Config.Digest = DigestOf(i.config)
	i.manifest.Config.Size = int64(len(i.config))
	if i.raw, err = json.Marshal(i.manifest); err != nil {
		return fmt.Errorf("cannot write the manifest: %w", err)
	}
	i.setRoot()
	i.add(i.manifest.Config.Digest, bytesSource(i.config))
	i.add(i.root.Digest, bytesSource(i.raw))
	return nil
}

func (i *Image) setRoot() {
	i.root = Descriptor{MediaType: i.manifest.MediaType, Digest: DigestOf(i.raw), Size: int64(len(i.raw))}
	if !i.platform.IsZero() {
		p := i.platform
		i.root.Platform = &p
	}
}
