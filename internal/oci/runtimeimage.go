package oci

import (
	"context"
	"maps"
	"slices"
	"strings"
)

// startFromBase takes over a runtime image. Layers that are not compressed, as
// `docker save` writes them, are compressed.
func (in *ImageInput) startFromBase(ctx context.Context) (*Image, imageConfig, error) {
	base := in.Base
	config, err := parseConfig(base.config)
	if err != nil {
		return nil, imageConfig{}, err
	}
	if err := base.checkRuntime(config); err != nil {
		return nil, imageConfig{}, err
	}
	if !in.Platform.IsZero() && !base.platform.Satisfies(in.Platform) {
		return nil, imageConfig{}, ErrInvalidImageInput.New(nil, "the runtime image is for %s and the package is built for %s", base.platform, in.Platform)
	}
	img := &Image{platform: base.platform, manifest: base.manifest}
	img.manifest.Config = &Descriptor{MediaType: base.manifest.Config.MediaType}
	img.manifest.Annotations = maps.Clone(base.manifest.Annotations)
	if len(in.Annotations) > 0 && img.manifest.Annotations == nil {
		img.manifest.Annotations = map[string]string{}
	}
	maps.Copy(img.manifest.Annotations, in.Annotations)
	img.manifest.Layers, img.manifest.Subject = nil, nil
	for _, layer := range base.manifest.Layers {
		open := base.sources[layer.Digest]
		if gzipped, ok := gzipForm[layer.MediaType]; ok {
			if layer, open, err = recompress(ctx, open, gzipped); err != nil {
				return nil, imageConfig{}, err
			}
		}
		img.manifest.Layers = append(img.manifest.Layers, layer)
		img.add(layer.Digest, open)
	}
	return img, config, nil
}

var gzipForm = map[MediaType]MediaType{
	MediaTypeOCILayer:    MediaTypeOCILayerGzip,
	MediaTypeDockerLayer: MediaTypeDockerLayerGzip,
}

// checkRuntime refuses a runtime image that is a package: the result would have
// two base layers.
func (i *Image) checkRuntime(config imageConfig) error {
	labels, err := config.labels()
	if err != nil {
		return err
	}
	isPackage := slices.ContainsFunc(i.manifest.Layers, func(d Descriptor) bool { return d.Annotations[AnnotationKey] == AnnotationBase })
	for key, value := range labels {
		isPackage = isPackage || (strings.HasPrefix(key, AnnotationKey+":") && value == AnnotationBase)
	}
	if isPackage {
		return ErrInvalidImageInput.New(nil, "the runtime image %s is a package already", i.root.Digest.Short()).
			WithDo("Name the image of the program alone.")
	}
	return nil
}

// LoadImage gives the image of an artifact that the reading rules choose for the
// platform, for example a runtime image from an archive.
func LoadImage(ctx context.Context, a Artifact, platform Platform, limits Limits) (*Image, error) {
	limits = limits.WithDefaults()
	desc, raw, doc, err := chooseImage(ctx, a, platform, limits)
	if err != nil {
		return nil, err
	}
	config, err := readSmall(ctx, a, *doc.Config, limits)
	if err != nil {
		return nil, err
	}
	parsed, err := parseConfig(config)
	if err != nil {
		return nil, err
	}
	img := &Image{manifest: *doc, raw: raw, config: config}
	if img.platform, err = parsed.platform(); err != nil {
		return nil, err
	}
	img.setRoot()
	img.add(desc.Digest, bytesSource(raw))
	img.add(doc.Config.Digest, bytesSource(config))
	for _, layer := range doc.Layers {
		img.add(layer.Digest, artifactSource(a, layer))
	}
	return img, nil
}
