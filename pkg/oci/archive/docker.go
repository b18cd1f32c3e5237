package archive

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/assembly"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ctxio"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/text"
)

// loadDocker builds the manifest that a docker save archive lacks: Docker schema 2 media
// types, gzip layers, and the annotations from the labels of the configuration.
func (a *Archive) loadDocker(ctx context.Context, manifests []byte, limits oci.Limits) error {
	if version, err := a.readFile("version", limits); err == nil &&
		bytes.HasPrefix(version, []byte("Directory Transport Version")) {
		return ErrNotAnArchive.New(
			nil, "the folder has the format of the transport dir: of skopeo, which xpkg does not support",
		).
			WithDo("Convert it to an OCI layout with `skopeo copy`, and use the layout as oci:FOLDER.")
	}
	var entries []dockerManifest
	if err := json.Unmarshal(manifests, &entries); err != nil {
		return oci.ErrInvalidManifest.New(err, "cannot read %s", dockerManifests)
	}
	switch {
	case len(entries) == 0:
		return oci.ErrEmptyIndex.New(nil, "%s has no entry", dockerManifests)
	case len(entries) > 1:
		return oci.ErrAmbiguousPlatform.New(nil, "the archive has %d images", len(entries)).
			WithDo("Save each image in its own archive.")
	case len(entries[0].Layers) > limits.Layers:
		return oci.ErrManifestTooLarge.New(
			nil, "the archive has %d layers, at most %d are allowed (--max-layers)", len(entries[0].Layers), limits.Layers,
		)
	}
	raw, err := a.readFile(entries[0].Config, limits)
	if err != nil {
		return missingFile(err, entries[0].Config)
	}
	var layers []image.Layer
	for _, name := range entries[0].Layers {
		layer, err := a.dockerLayer(ctx, name)
		if err != nil {
			return err
		}
		layers = append(layers, layer)
	}
	img, err := image.FromConfig(raw, layers)
	if err != nil {
		return err
	}
	a.content = assembly.Assembly{Desc: img.Root(), Parts: []oci.Artifact{img}}
	return nil
}

// dockerLayer returns the layer in a file. It detects the compression, and compresses
// plain tars.
func (a *Archive) dockerLayer(ctx context.Context, name string) (image.Layer, error) {
	open := func(context.Context) (io.ReadCloser, error) {
		r, _, err := a.files.open(name)
		return r, missingFile(err, name)
	}
	r, err := open(ctx)
	if err != nil {
		return image.Layer{}, err
	}
	defer r.Close()
	buffered := bufio.NewReader(ctxio.Reader(ctx, r))
	start, err := buffered.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return image.Layer{}, err
	}
	d := oci.Descriptor{MediaType: oci.MediaTypeDockerLayerGzip}
	switch oci.DetectCompression(start) {
	case oci.Uncompressed:
		return image.GzipLayer(ctx, open, oci.MediaTypeDockerLayerGzip)
	case oci.Zstd:
		d.MediaType = oci.MediaTypeOCILayerZstd
	}
	d.Digest, d.Size, err = oci.DigestReader(buffered)
	return image.Layer{Descriptor: d, Open: open}, err
}

func missingFile(err error, name string) error {
	if errors.Is(err, fs.ErrNotExist) {
		return ErrNotAnArchive.New(nil, "%s names %q, which the archive does not contain", dockerManifests, text.Clip(name))
	}
	return err
}
