package image

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/assembly"
)

// Index is a new index, ready to be pushed or written. It is an [oci.Artifact].
type Index struct {
	content  assembly.Assembly
	document oci.Document
}

// Root implements [oci.Artifact].
func (x *Index) Root() oci.Descriptor { return x.content.Desc }

// Open implements [oci.Artifact].
func (x *Index) Open(ctx context.Context, d oci.Descriptor) (io.ReadCloser, error) {
	return x.content.Open(ctx, d)
}

// Digest returns the digest of the index.
func (x *Index) Digest() oci.Digest { return x.content.Desc.Digest }

// NewIndex joins the images of one package for several platforms (xpkg specification,
// "Indexes"). The order of the images does not affect the result.
func NewIndex(images ...*Image) (*Index, error) {
	index := &Index{document: oci.Document{SchemaVersion: 2, MediaType: oci.MediaTypeOCIIndex}}
	for _, img := range images {
		index.put(img.content.Desc, img)
	}
	return index, index.seal()
}

// put adds a manifest and the content that it refers to.
func (x *Index) put(d oci.Descriptor, a oci.Artifact) {
	x.document.Manifests = append(x.document.Manifests, d)
	x.content.Parts = append(x.content.Parts, a)
}

// seal checks the entries and writes the index.
func (x *Index) seal() error {
	if len(x.document.Manifests) == 0 {
		return oci.ErrEmptyIndex.New(nil, "an index requires at least one image")
	}
	slices.SortStableFunc(x.document.Manifests, func(a, b oci.Descriptor) int {
		return cmp.Or(cmp.Compare(indexRank(a), indexRank(b)), cmp.Compare(platformName(a), platformName(b)))
	})
	seen := map[string]bool{}
	for _, d := range x.document.Manifests {
		if d.IsExtensions() || d.IsAttestation() {
			continue
		}
		if name := platformName(d); seen[name] {
			return oci.ErrAmbiguousPlatform.New(nil, "two of the images are for %s", name)
		}
		seen[platformName(d)] = true
	}
	raw, err := json.Marshal(x.document)
	if err != nil {
		return fmt.Errorf("cannot write the index: %w", err)
	}
	x.content.Desc = oci.Descriptor{MediaType: x.document.MediaType, Digest: oci.DigestOf(raw), Size: int64(len(raw))}
	x.content.Add(x.content.Desc.Digest, assembly.BytesSource(raw))
	return nil
}

// indexRank orders images first and extensions last, because some clients use the first
// manifest without a platform as the package.
func indexRank(d oci.Descriptor) int {
	switch {
	case d.IsExtensions():
		return 2
	case d.IsAttestation():
		return 1
	}
	return 0
}

func platformName(d oci.Descriptor) string {
	if d.Platform == nil {
		return "no platform"
	}
	return d.Platform.String()
}

// BuildExtensions returns the image of the extensions manifest: layers for third parties
// that Crossplane does not download (xpkg specification, "Manifests").
func BuildExtensions(layers []ExtraLayer) (*Image, error) {
	img := &Image{manifest: oci.Document{
		SchemaVersion: 2, MediaType: oci.MediaTypeOCIManifest, Config: &oci.Descriptor{MediaType: oci.MediaTypeOCIConfig},
		Annotations: map[string]string{oci.AnnotationKey: oci.AnnotationExtensions},
	}}
	built := make([]builtLayer, 0, len(layers))
	for _, l := range layers {
		if err := l.check(); err != nil {
			return nil, err
		}
		layer, err := buildLayer(l.Files, oci.MediaTypeOCILayerGzip, l.Annotation)
		if err != nil {
			return nil, err
		}
		built = append(built, layer)
		img.manifest.Layers = append(img.manifest.Layers, layer.desc)
		img.content.Add(layer.desc.Digest, assembly.BytesSource(layer.data))
	}
	config, err := newConfig(oci.Platform{})
	if err != nil {
		return nil, err
	}
	if err := config.addLayers(built, Input{}.Created); err != nil {
		return nil, err
	}
	return img, img.seal(config)
}

// AppendExtensions returns the index of a package with an extensions manifest as its last
// entry, which replaces a previous one. It converts a single image to an index first. All
// other content keeps its bytes.
func AppendExtensions(ctx context.Context, pkg oci.Artifact, extensions *Image, limits oci.Limits) (*Index, error) {
	root := pkg.Root()
	_, doc, err := oci.ReadDocument(ctx, pkg, root, limits)
	if err != nil {
		return nil, err
	}
	index := &Index{document: oci.Document{SchemaVersion: 2, MediaType: oci.MediaTypeOCIIndex}}
	if doc.IsIndex() {
		index.document = *doc
		index.document.Manifests = slices.DeleteFunc(slices.Clone(doc.Manifests), oci.Descriptor.IsExtensions)
		index.content.Parts = append(index.content.Parts, pkg)
	} else {
		img, err := Load(ctx, pkg, oci.Platform{}, limits)
		if err != nil {
			return nil, err
		}
		index.put(img.content.Desc, img)
	}
	entry := extensions.content.Desc
	entry.Platform = nil
	entry.Annotations = map[string]string{oci.AnnotationKey: oci.AnnotationExtensions}
	index.put(entry, extensions)
	return index, index.seal()
}
