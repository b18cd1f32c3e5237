package oci

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
)

// loadDocker makes the manifest that an archive of the older kind lacks: media
// types of Docker schema 2, layers in gzip, and the annotations that the labels
// of the configuration ask for.
func (a *Archive) loadDocker(ctx context.Context, manifests []byte, limits Limits) error {
	var entries []dockerManifest
	if err := json.Unmarshal(manifests, &entries); err != nil {
		return ErrInvalidManifest.New(err, "cannot read %s", dockerManifests)
	}
	switch {
	case len(entries) == 0:
		return ErrEmptyIndex.New(nil, "%s has no entry", dockerManifests)
	case len(entries) > 1:
		return ErrAmbiguousPlatform.New(nil, "the archive has %d images", len(entries)).WithDo("Save one image into one archive.")
	case len(entries[0].Layers) > limits.Layers:
		return ErrManifestTooLarge.New(nil, "the archive has %d layers and may have %d (--max-layers)", len(entries[0].Layers), limits.Layers)
	}
	raw, err := a.readFile(entries[0].Config, limits)
	if err != nil {
		return missingFile(err, entries[0].Config)
	}
	config, err := parseConfig(raw)
	if err != nil {
		return err
	}
	img := Image{config: raw, manifest: Document{
		SchemaVersion: 2, MediaType: MediaTypeDockerManifest,
		Config: &Descriptor{MediaType: MediaTypeDockerConfig},
	}}
	for _, name := range entries[0].Layers {
		layer, open, err := a.dockerLayer(ctx, name)
		if err != nil {
			return err
		}
		img.manifest.Layers = append(img.manifest.Layers, layer)
		img.add(layer.Digest, open)
	}
	if err := img.annotateFromLabels(config); err != nil {
		return err
	}
	if img.platform, err = config.platform(); err != nil {
		return err
	}
	if err := img.sealRaw(); err != nil {
		return err
	}
	a.content = img.content
	return nil
}

// dockerLayer describes a layer file by what is in it. Plain tars are compressed.
func (a *Archive) dockerLayer(ctx context.Context, name string) (Descriptor, source, error) {
	open := func(context.Context) (io.ReadCloser, error) {
		r, _, err := a.files.open(name)
		return r, missingFile(err, name)
	}
	r, err := open(ctx)
	if err != nil {
		return Descriptor{}, nil, err
	}
	defer r.Close() //nolint:errcheck // It was only read.
	buffered := bufio.NewReader(contextReader{ctx, r})
	start, err := buffered.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return Descriptor{}, nil, err
	}
	d := Descriptor{MediaType: MediaTypeDockerLayerGzip}
	switch sniff(start) {
	case Uncompressed:
		return recompress(ctx, open, MediaTypeDockerLayerGzip)
	case Zstd:
		d.MediaType = MediaTypeOCILayerZstd
	}
	d.Digest, d.Size, err = DigestReader(buffered)
	return d, open, err
}

func missingFile(err error, name string) error {
	if errors.Is(err, fs.ErrNotExist) {
		return ErrNotAnArchive.New(nil, "%s names %q, which the archive does not hold", dockerManifests, clip(name))
	}
	return err
}

// annotateFromLabels puts the annotations on the layers that the labels
// io.crossplane.xpkg:<digest of the layer> name.
func (i *Image) annotateFromLabels(config imageConfig) error {
	labels, err := config.labels()
	if err != nil {
		return err
	}
	for n := range i.manifest.Layers {
		layer := &i.manifest.Layers[n]
		if value, ok := labels[AnnotationKey+":"+layer.Digest.String()]; ok {
			layer.Annotations = map[string]string{AnnotationKey: value}
		}
	}
	return nil
}
