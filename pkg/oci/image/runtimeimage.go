package image

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/assembly"
)

// startFromBase starts from a runtime image. It compresses uncompressed layers, as in the
// output of `docker save`.
func (in *Input) startFromBase(ctx context.Context) (*Image, Config, error) {
	base := in.Base
	config, err := ParseConfig(base.config)
	if err != nil {
		return nil, Config{}, err
	}
	if err := base.checkRuntime(config); err != nil {
		return nil, Config{}, err
	}
	if !in.Platform.IsZero() && !base.platform.Satisfies(in.Platform) {
		return nil, Config{}, ErrInvalidImageInput.New(
			nil, "the runtime image is for %s, but the package is built for %s", base.platform, in.Platform,
		)
	}
	img := &Image{platform: base.platform, manifest: base.manifest}
	img.manifest.Config = &oci.Descriptor{MediaType: base.manifest.Config.MediaType}
	img.manifest.Annotations = maps.Clone(base.manifest.Annotations)
	if len(in.Annotations) > 0 && img.manifest.Annotations == nil {
		img.manifest.Annotations = map[string]string{}
	}
	maps.Copy(img.manifest.Annotations, in.Annotations)
	img.manifest.Layers, img.manifest.Subject = nil, nil
	for _, layer := range base.manifest.Layers {
		open := base.content.Sources[layer.Digest]
		if gzipped, ok := gzipForm[layer.MediaType]; ok {
			compressed, err := GzipLayer(ctx, open, gzipped)
			if err != nil {
				return nil, Config{}, err
			}
			layer, open = compressed.Descriptor, compressed.Open
		}
		img.manifest.Layers = append(img.manifest.Layers, layer)
		img.content.Add(layer.Digest, open)
	}
	return img, config, nil
}

var gzipForm = map[oci.MediaType]oci.MediaType{
	oci.MediaTypeOCILayer:    oci.MediaTypeOCILayerGzip,
	oci.MediaTypeDockerLayer: oci.MediaTypeDockerLayerGzip,
}

// checkRuntime refuses a runtime image that is a package: the result would have
// two base layers.
func (i *Image) checkRuntime(config Config) error {
	labels, err := config.Labels()
	if err != nil {
		return err
	}
	isPackage := slices.ContainsFunc(
		i.manifest.Layers, func(d oci.Descriptor) bool { return d.Annotations[oci.AnnotationKey] == oci.AnnotationBase },
	)
	for key, value := range labels {
		isPackage = isPackage || (strings.HasPrefix(key, oci.AnnotationKey+":") && value == oci.AnnotationBase)
	}
	if isPackage {
		return ErrInvalidImageInput.New(nil, "the runtime image %s is already a package", i.content.Desc.Digest.Short()).
			WithDo("Pass an image that contains only the runtime.")
	}
	return nil
}

// Load returns the image of an artifact for a platform, for example a runtime image from
// an archive.
func Load(ctx context.Context, a oci.Artifact, platform oci.Platform, limits oci.Limits) (*Image, error) {
	limits = limits.WithDefaults()
	desc, raw, doc, err := oci.FindImage(ctx, a, platform, limits)
	if err != nil {
		return nil, err
	}
	config, err := oci.ReadSmall(ctx, a, *doc.Config, limits)
	if err != nil {
		return nil, err
	}
	parsed, err := ParseConfig(config)
	if err != nil {
		return nil, err
	}
	img := &Image{manifest: *doc, raw: raw, config: config}
	if img.platform, err = parsed.Platform(); err != nil {
		return nil, err
	}
	img.setRoot()
	img.content.Add(desc.Digest, assembly.BytesSource(raw))
	img.content.Add(doc.Config.Digest, assembly.BytesSource(config))
	for _, layer := range doc.Layers {
		img.content.Add(layer.Digest, assembly.ArtifactSource(a, layer))
	}
	return img, nil
}

// Layer is a layer with its content.
type Layer struct {
	Descriptor oci.Descriptor
	// Open opens the bytes that the descriptor names. It can be called any number of
	// times.
	Open func(ctx context.Context) (io.ReadCloser, error)
}

// FromConfig returns a Docker schema 2 image with a configuration, whose bytes it keeps,
// and layers, bottom layer first. The labels io.crossplane.xpkg:DIGEST of the
// configuration become annotations of the layers with these digests, as in an image that
// `docker push` or skopeo creates from an archive.
func FromConfig(config []byte, layers []Layer) (*Image, error) {
	parsed, err := ParseConfig(config)
	if err != nil {
		return nil, err
	}
	img := &Image{config: config, manifest: oci.Document{
		SchemaVersion: 2, MediaType: oci.MediaTypeDockerManifest,
		Config: &oci.Descriptor{MediaType: oci.MediaTypeDockerConfig},
	}}
	for _, layer := range layers {
		img.manifest.Layers = append(img.manifest.Layers, layer.Descriptor)
		img.content.Add(layer.Descriptor.Digest, layer.Open)
	}
	if err := img.annotateFromLabels(parsed); err != nil {
		return nil, err
	}
	if img.platform, err = parsed.Platform(); err != nil {
		return nil, err
	}
	return img, img.sealRaw()
}

// annotateFromLabels annotates the layers that the labels io.crossplane.xpkg:<digest of
// the layer> name.
func (i *Image) annotateFromLabels(config Config) error {
	labels, err := config.Labels()
	if err != nil {
		return err
	}
	for n := range i.manifest.Layers {
		layer := &i.manifest.Layers[n]
		if value, ok := labels[oci.AnnotationKey+":"+layer.Digest.String()]; ok {
			layer.Annotations = map[string]string{oci.AnnotationKey: value}
		}
	}
	return nil
}

// WithoutPackage returns the image without the layers and the labels of a package, so that it can be the runtime image
// of another one. It has no history and no annotations.
func (i *Image) WithoutPackage() (*Image, error) {
	config, err := ParseConfig(i.config)
	if err != nil {
		return nil, err
	}
	labels, err := config.Labels()
	if err != nil {
		return nil, err
	}
	root := rootFS{}
	if err := config.Get("rootfs", &root); err != nil {
		return nil, err
	}
	if len(root.DiffIDs) != len(i.manifest.Layers) {
		return nil, oci.ErrInvalidManifest.New(nil, "the configuration of the image has %d layers, and the manifest has %d",
			len(root.DiffIDs), len(i.manifest.Layers))
	}
	out := &Image{platform: i.platform, manifest: i.manifest}
	out.manifest.Layers, out.manifest.Annotations, out.manifest.Subject = nil, nil, nil
	out.manifest.Config = &oci.Descriptor{MediaType: i.manifest.Config.MediaType}
	kept := rootFS{Type: root.Type, DiffIDs: []oci.Digest{}}
	for n, layer := range i.manifest.Layers {
		if layer.Annotations[oci.AnnotationKey] != "" || labels[labelKey(layer.Digest)] != "" {
			continue
		}
		out.manifest.Layers = append(out.manifest.Layers, layer)
		out.content.Add(layer.Digest, i.content.Sources[layer.Digest])
		kept.DiffIDs = append(kept.DiffIDs, root.DiffIDs[n])
	}
	for key := range labels {
		if strings.HasPrefix(key, oci.AnnotationKey+":") {
			delete(labels, key)
		}
	}
	delete(config.fields, "history")
	if err := errors.Join(config.set("rootfs", kept), config.setLabels(labels)); err != nil {
		return nil, err
	}
	return out, out.seal(config)
}

// labelKey is the label of a layer of a package.
func labelKey(layer oci.Digest) string { return oci.AnnotationKey + ":" + layer.String() }
