package image

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/assembly"
)

// ErrInvalidImageInput is the code for a build with invalid input.
var ErrInvalidImageInput = errcode.Code{
	Name: "InvalidImageInput", Class: errcode.Invalid,
	Cause: "The inputs of an image build are not compatible.",
	Fix:   "Correct the setting in the message.",
}

// Input is the input of a package image.
type Input struct {
	// PackageYAML is the stream of the package. It is not parsed here.
	PackageYAML []byte
	// Registry are the files of a package of the first generation, by their paths below .registry. They are in a
	// layer without an annotation, instead of PackageYAML.
	Registry []File
	// Examples is a stream of examples; if it is empty, the image has no layer for it.
	Examples []byte
	// Extra are further annotated layers for third parties, on top of the others.
	Extra []ExtraLayer
	// Base is the runtime image to which the layers of the package are added; nil for a
	// package without a runtime.
	Base *Image
	// Files are files of the runtime that are added to the base, in a layer of their own.
	Files []File
	// Process replaces the program of the base; nil keeps it.
	Process *Process
	// Platform is the platform of the image; zero means linux/amd64. With a Base it must
	// be zero or the platform of the base.
	Platform oci.Platform
	// Created is the time in the configuration. If it is zero, the configuration has no
	// time, so that builds are reproducible.
	Created time.Time
	// Annotations are added to the manifest.
	Annotations map[string]string
}

// ExtraLayer is an annotated layer for consumers other than Crossplane (xpkg
// specification, "Manifests").
type ExtraLayer struct {
	// Annotation is the value of io.crossplane.xpkg, any but "base".
	Annotation string
	Files      []File
}

// Image is an image that was built or loaded, ready to be pushed or written. It
// is an [oci.Artifact].
type Image struct {
	content  assembly.Assembly
	platform oci.Platform
	manifest oci.Document
	raw      []byte
	config   []byte
}

// Root implements [oci.Artifact].
func (i *Image) Root() oci.Descriptor { return i.content.Desc }

// Open implements [oci.Artifact].
func (i *Image) Open(ctx context.Context, d oci.Descriptor) (io.ReadCloser, error) {
	return i.content.Open(ctx, d)
}

// Digest returns the digest of the manifest.
func (i *Image) Digest() oci.Digest { return i.content.Desc.Digest }

// Platform returns the platform in the configuration of the image.
func (i *Image) Platform() oci.Platform { return i.platform }

// Manifest returns the manifest of the image.
func (i *Image) Manifest() (oci.Manifest, error) { return oci.NewManifest(i.raw, &i.manifest) }

// RawManifest returns the bytes of the manifest, whose digest identifies the image.
func (i *Image) RawManifest() []byte { return slices.Clone(i.raw) }

// RawConfig returns the bytes of the configuration.
func (i *Image) RawConfig() []byte { return slices.Clone(i.config) }

// Build returns the image of a package (xpkg specification, "OCI Image Format"). The
// annotation of the layer with package.yaml is in the manifest, so every tool that copies
// the image keeps it. The configuration has labels from which older tools restore the
// annotations. Equal input has an equal digest on every machine and at any time.
func Build(ctx context.Context, in Input) (*Image, error) {
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
		img.content.Add(layer.desc.Digest, assembly.BytesSource(layer.data))
		if annotation := layer.desc.Annotations[oci.AnnotationKey]; annotation != "" {
			labels[labelKey(layer.desc.Digest)] = annotation
		}
	}
	if err := config.addLayers(layers, in.Created); err != nil {
		return nil, err
	}
	if err := config.addLabels(labels); err != nil {
		return nil, err
	}
	if in.Process != nil {
		if err := config.setProcess(*in.Process); err != nil {
			return nil, err
		}
	}
	if !in.Created.IsZero() {
		if err := config.set("created", in.Created.UTC().Format(time.RFC3339)); err != nil {
			return nil, err
		}
	}
	return img, img.seal(config)
}

// buildLayers packs the layers of the input: files of the runtime, package.yaml and the others.
func (in *Input) buildLayers() ([]builtLayer, error) {
	mediaType := oci.MediaTypeOCILayerGzip
	if in.Base != nil && in.Base.manifest.MediaType == oci.MediaTypeDockerManifest {
		mediaType = oci.MediaTypeDockerLayerGzip
	}
	wanted := []ExtraLayer{{Annotation: oci.AnnotationBase, Files: []File{{Path: oci.PackageFile, Data: in.PackageYAML}}}}
	if in.Registry != nil {
		wanted = []ExtraLayer{{Files: registryFiles(in.Registry)}}
	}
	if len(in.Files) > 0 {
		wanted = append([]ExtraLayer{{Files: in.Files}}, wanted...)
	}
	if len(in.Examples) > 0 {
		wanted = append(wanted, ExtraLayer{Annotation: oci.AnnotationExamples, Files: []File{{
			Path: oci.ExamplesFile, Data: in.Examples,
		}}})
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

// registryFiles returns files with their paths in the image.
func registryFiles(files []File) []File {
	out := make([]File, len(files))
	for i, f := range files {
		out[i] = File{Path: oci.RegistryFolder + "/" + f.Path, Data: f.Data}
	}
	return out
}

// check rejects extra layers that would change the package: a layer with the base
// annotation, or with package.yaml, which readers of the whole file system would read
// instead.
func (e ExtraLayer) check() error {
	if e.Annotation == "" || e.Annotation == oci.AnnotationBase {
		return ErrInvalidImageInput.New(nil, "an extra layer cannot be annotated %q", e.Annotation)
	}
	seen := map[string]bool{}
	for _, f := range e.Files {
		switch {
		case f.Path == "" || path.Clean("/"+f.Path) != "/"+f.Path:
			return ErrInvalidImageInput.New(nil, "an extra layer cannot contain the path %q", f.Path)
		case f.Path == oci.PackageFile || strings.HasPrefix(path.Base(f.Path), ".wh."):
			return ErrInvalidImageInput.New(nil, "an extra layer cannot contain %q, which would change the package", f.Path)
		case seen[f.Path]:
			return ErrInvalidImageInput.New(nil, "an extra layer contains %q twice", f.Path)
		}
		seen[f.Path] = true
	}
	return nil
}

// start returns the image to which the new layers are added.
func (in *Input) start(ctx context.Context) (*Image, Config, error) {
	if in.Base != nil {
		return in.startFromBase(ctx)
	}
	platform := in.Platform
	if platform.IsZero() {
		platform = oci.DefaultPlatform()
	}
	config, err := newConfig(platform)
	img := &Image{platform: platform, manifest: oci.Document{
		SchemaVersion: 2, MediaType: oci.MediaTypeOCIManifest,
		Config: &oci.Descriptor{MediaType: oci.MediaTypeOCIConfig}, Annotations: maps.Clone(in.Annotations),
	}}
	return img, config, err
}

// seal encodes the configuration and the manifest. The image does not change afterwards.
func (i *Image) seal(config Config) error {
	var err error
	if i.config, err = config.bytes(); err != nil {
		return err
	}
	return i.sealRaw()
}

// sealRaw is like seal, but keeps the bytes of the configuration.
func (i *Image) sealRaw() error {
	var err error
	i.manifest.Config.Digest = oci.DigestOf(i.config)
	i.manifest.Config.Size = int64(len(i.config))
	if i.raw, err = json.Marshal(i.manifest); err != nil {
		return fmt.Errorf("cannot write the manifest: %w", err)
	}
	i.setRoot()
	i.content.Add(i.manifest.Config.Digest, assembly.BytesSource(i.config))
	i.content.Add(i.content.Desc.Digest, assembly.BytesSource(i.raw))
	return nil
}

func (i *Image) setRoot() {
	i.content.Desc = oci.Descriptor{MediaType: i.manifest.MediaType, Digest: oci.DigestOf(i.raw), Size: int64(len(i.raw))}
	if !i.platform.IsZero() {
		p := i.platform
		i.content.Desc.Platform = &p
	}
}
