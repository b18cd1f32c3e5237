package oci

import (
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/text"
)

// ErrAmbiguousBaseLayer is the code for a manifest with two base layers.
var ErrAmbiguousBaseLayer = errcode.Code{
	Name: "AmbiguousBaseLayer", Class: errcode.Invalid,
	Cause: "Two layers of a manifest are annotated io.crossplane.xpkg: base.",
	Fix:   "Build the package again from a runtime image that is not a package itself.",
}

// ErrForeignLayer is the code for a nondistributable layer.
var ErrForeignLayer = errcode.Code{
	Name: "ForeignLayer", Class: errcode.Invalid,
	Cause: "The content of the package is not in the registry but at another address.",
	Fix:   "Publish the package again with ordinary layers; addresses in manifests are never followed.",
}

// Manifest is the validated image manifest of a package.
type Manifest struct {
	// Digest identifies the manifest, and Root the content that the reference
	// named: an index above it, or the manifest itself.
	Digest, Root Digest
	MediaType    MediaType
	Config       Descriptor
	Layers       []Descriptor
	Annotations  map[string]string
	// Base is the layer that contains package.yaml; nil if no layer is annotated, so that
	// the file is in the file system of all layers.
	Base *Descriptor
	// Platform is the platform of the chosen index entry, or nil without an index.
	Platform *Platform
	// Raw is the manifest as it was published.
	Raw []byte
}

// NewManifest returns a verified image manifest as the manifest of a package. It fails if
// the manifest cannot be one.
func NewManifest(raw []byte, doc *Document) (Manifest, error) {
	digest := DigestOf(raw)
	m := Manifest{
		Digest: digest, Root: digest, MediaType: doc.MediaType, Config: *doc.Config,
		Layers: doc.Layers, Annotations: doc.Annotations, Raw: raw,
	}
	for i, layer := range m.Layers {
		if layer.Annotations[AnnotationKey] != AnnotationBase {
			continue
		}
		if m.Base != nil {
			return Manifest{}, ErrAmbiguousBaseLayer.New(
				nil, "manifest %s has two base layers, %s and %s", digest.Short(), m.Base.Digest.Short(), layer.Digest.Short(),
			)
		}
		m.Base = &m.Layers[i]
	}
	// An OCI 1.1 artifact has its own type and an empty configuration. An annotated layer
	// marks it as a package.
	if m.Base == nil || m.Config.MediaType != types.OCIEmptyJSON {
		if err := doc.checkConfig(m.Base != nil); err != nil {
			return Manifest{}, err
		}
	}
	if len(m.Layers) == 0 {
		return Manifest{}, ErrNoPackageYAML.New(nil, "manifest %s has no layers", digest.Short())
	}
	return m, m.checkLayers()
}

// CheckImage fails with ErrNotAPackage, which names the kind of content, if a manifest is
// not an image manifest.
func (d *Document) CheckImage() error { return d.checkConfig(false) }

// checkConfig is like CheckImage. If anyType is true, it accepts an image with any
// artifact type.
func (d *Document) checkConfig(anyType bool) error {
	if !anyType && d.ArtifactType != "" && !strings.HasPrefix(d.ArtifactType, "application/vnd.oci.image.") {
		return ErrNotAPackage.New(nil, "the content is an artifact of type %q", text.Clip(d.ArtifactType))
	}
	switch config := d.Config.MediaType; config {
	case MediaTypeOCIConfig, MediaTypeDockerConfig:
		return nil
	case "application/vnd.cncf.helm.config.v1+json":
		return ErrNotAPackage.New(nil, "the content is a Helm chart")
	case types.OCIEmptyJSON:
		return ErrNotAPackage.New(nil, "the content is an artifact without an image configuration")
	case types.DockerPluginConfig:
		return ErrNotAPackage.New(nil, "the content is a Docker plugin")
	default:
		return ErrNotAPackage.New(
			nil, "the content has a configuration of type %q, which is not an image configuration", text.Clip(string(config)),
		)
	}
}

// checkLayers rejects layers that cannot be read, before they are fetched.
func (m *Manifest) checkLayers() error {
	for _, layer := range m.contentLayers() {
		if !layer.MediaType.IsDistributable() {
			return ErrForeignLayer.New(nil, "layer %s is of type %q", layer.Digest.Short(), layer.MediaType)
		}
		if _, ok := LayerCompression(layer.MediaType); !ok {
			return ErrNotAPackage.New(
				nil, "layer %s is of type %q, which is not a tar", layer.Digest.Short(), text.Clip(string(layer.MediaType)),
			)
		}
	}
	return nil
}

// contentLayers returns the layers that can contain package.yaml, the top one first.
func (m *Manifest) contentLayers() []Descriptor {
	if m.Base != nil {
		return []Descriptor{*m.Base}
	}
	layers := make([]Descriptor, 0, len(m.Layers))
	for i := len(m.Layers) - 1; i >= 0; i-- {
		layers = append(layers, m.Layers[i])
	}
	return layers
}
