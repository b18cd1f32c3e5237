package storage

import (
	"encoding/json"
	"fmt"
	"strings"
)

// document is what the registry reads of a manifest or an index.
type document struct {
	MediaType    string            `json:"mediaType"`
	ArtifactType string            `json:"artifactType"`
	Config       *Descriptor       `json:"config"`
	Layers       []Descriptor      `json:"layers"`
	Manifests    []Descriptor      `json:"manifests"`
	Subject      *Descriptor       `json:"subject"`
	Annotations  map[string]string `json:"annotations"`
}

// parseManifest parses a manifest or an index that a client pushes, with its declared media type; "" means that of the
// content. It returns the media type.
func parseManifest(content []byte, declared string) (*document, string, error) {
	var m document
	if err := json.Unmarshal(content, &m); err != nil {
		return nil, "", fmt.Errorf("%w: %w", ErrManifestInvalid, err)
	}
	mediaType := strings.ToLower(declared)
	if mediaType == "" {
		mediaType = m.detect()
	}
	switch mediaType {
	case ociManifest, dockerManifest:
		if m.Config == nil {
			return nil, "", fmt.Errorf("%w: it has no configuration", ErrManifestInvalid)
		}
		m.Manifests = nil
	case ociIndex, dockerList:
		m.Config, m.Layers = nil, nil
	default:
		return nil, "", fmt.Errorf("%w: the media type %.150q is not supported", ErrManifestInvalid, mediaType)
	}
	for _, d := range m.parts() {
		if _, err := ParseDigest(string(d.Digest)); err != nil {
			return nil, "", fmt.Errorf("%w: %w", ErrManifestInvalid, err)
		}
	}
	if m.Subject != nil {
		if _, err := ParseDigest(string(m.Subject.Digest)); err != nil {
			return nil, "", fmt.Errorf("%w: the subject: %w", ErrManifestInvalid, err)
		}
	}
	return &m, mediaType, nil
}

// detect returns the media type of a document that no client has declared.
func (m *document) detect() string {
	switch {
	case m.MediaType != "":
		return m.MediaType
	case len(m.Manifests) > 0 && strings.HasPrefix(m.Manifests[0].MediaType, "application/vnd.docker."):
		return dockerList
	case len(m.Manifests) > 0:
		return ociIndex
	case m.Config != nil && strings.HasPrefix(m.Config.MediaType, "application/vnd.docker."):
		return dockerManifest
	case m.Config != nil:
		return ociManifest
	}
	return ""
}

// parts returns the content that the document needs.
func (m *document) parts() []Descriptor {
	parts := append(m.Layers[:len(m.Layers):len(m.Layers)], m.Manifests...)
	if m.Config != nil {
		parts = append(parts, *m.Config)
	}
	return parts
}

// referrer returns the entry of a manifest in the index of the referrers of its subject.
func (m *document) referrer(d Descriptor) Descriptor {
	d.ArtifactType, d.Annotations = m.ArtifactType, m.Annotations
	if d.ArtifactType == "" && m.Config != nil {
		d.ArtifactType = m.Config.MediaType
	}
	return d
}
