package oci

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
)

// Index is an index that was made here, ready to be pushed or written. It is an
// [Artifact].
type Index struct {
	content
	document Document
}

// NewIndex joins the images of one package for several platforms (xpkg
// specification, "Indexes"). The order in which they are given does not matter.
func NewIndex(images ...*Image) (*Index, error) {
	index := &Index{document: Document{SchemaVersion: 2, MediaType: MediaTypeOCIIndex}}
	for _, img := range images {
		index.put(img.root, img)
	}
	return index, index.seal()
}

// put adds a manifest and what hangs from it.
func (x *Index) put(d Descriptor, a Artifact) {
	x.document.Manifests = append(x.document.Manifests, d)
	x.parts = append(x.parts, a)
}

// seal checks the entries and writes the index.
func (x *Index) seal() error {
	if len(x.document.Manifests) == 0 {
		return ErrEmptyIndex.New(nil, "there is no image to make an index of")
	}
	slices.SortStableFunc(x.document.Manifests, func(a, b Descriptor) int {
		return cmp.Or(cmp.Compare(indexRank(a), indexRank(b)), cmp.Compare(platformName(a), platformName(b)))
	})
	seen := map[string]bool{}
	for _, d := range x.document.Manifests {
		if d.isExtensions() || d.isAttestation() {
			continue
		}
		if name := platformName(d); seen[name] {
			return ErrAmbiguousPlatform.New(nil, "two of the images are for %s", name)
		}
		seen[platformName(d)] = true
	}
	raw, err := json.Marshal(x.document)
	if err != nil {
		return fmt.Errorf("cannot write the index: %w", err)
	}
	x.root = Descriptor{MediaType: x.document.MediaType, Digest: DigestOf(raw), Size: int64(len(raw))}
	x.add(x.root.Digest, bytesSource(raw))
	return nil
}

// indexRank puts images first and the extensions last: clients exist that take
// the first manifest without a platform for the package.
func indexRank(d Descriptor) int {
	switch {
	case d.isExtensions():
		return 2
	case d.isAttestation():
		return 1
	}
	return 0
}

func platformName(d Descriptor) string {
	if d.Platform == nil {
		return "no platform"
	}
	return d.Platform.String()
}

// BuildExtensions makes the image of the extensions manifest: layers for third
// parties that no client of Crossplane downloads (xpkg specification,
// "Manifests").
func BuildExtensions(layers []ExtraLayer) (*Image, error) {
	img := &Image{manifest: Document{
		SchemaVersion: 2, MediaType: MediaTypeOCIManifest, Config: &Descriptor{MediaType: MediaTypeOCIConfig},
		Annotations: map[string]string{AnnotationKey: AnnotationExtensions},
	}}
	built := make([]builtLayer, 0, len(layers))
	for _, l := range layers {
		if err := l.check(); err != nil {
			return nil, err
		}
		layer, err := buildLayer(l.Files, MediaTypeOCILayerGzip, l.Annotation)
		if err != nil {
			return nil, err
		}
		built = append(built, layer)
		img.manifest.Layers = append(img.manifest.Layers, layer.desc)
		img.add(layer.desc.Digest, bytesSource(layer.data))
	}
	config, err := newConfig(Platform{})
	if err != nil {
		return nil, err
	}
	if err := config.addLayers(built, ImageInput{}.Created); err != nil {
		return nil, err
	}
	return img, img.seal(config)
}

// Append gives the index of a package with an extensions manifest as its last
// entry, in place of the one that it may have had. A package that is a single
// image becomes an index first. Everything else keeps its bytes.
func Append(ctx context.Context, pkg Artifact, extensions *Image, limits Limits) (*Index, error) {
	root := pkg.Root()
	_, doc, err := ReadDocument(ctx, pkg, root, limits)
	if err != nil {
		return nil, err
	}
	index := &Index{document: Document{SchemaVersion: 2, MediaType: MediaTypeOCIIndex}}
	if doc.IsIndex() {
		index.document = *doc
		index.document.Manifests = slices.DeleteFunc(slices.Clone(doc.Manifests), Descriptor.isExtensions)
		index.parts = append(index.parts, pkg)
	} else {
		img, err := LoadImage(ctx, pkg, Platform{}, limits)
		if err != nil {
			return nil, err
		}
		index.put(img.root, img)
	}
	entry := extensions.root
	entry.Platform = nil
	entry.Annotations = map[string]string{AnnotationKey: AnnotationExtensions}
	index.put(entry, extensions)
	return index, index.seal()
}
