package oci

import (
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/oci/internal/text"
)

// AnnotationKey marks the layers and manifests that belong to a package (xpkg
// specification, "Manifests").
const AnnotationKey = "io.crossplane.xpkg"

// Values of AnnotationKey with a defined meaning.
const (
	// AnnotationBase marks the layer that contains package.yaml.
	AnnotationBase = "base"
	// AnnotationExamples marks the layer of examples, which contains ExamplesFile.
	AnnotationExamples = "upbound"
	// AnnotationExtensions marks the manifest of an index that contains extensions of
	// third parties (xpkg specification, "Manifests").
	AnnotationExtensions = "xpkg-extensions"
)

// Descriptor names content by digest, size and media type (OCI image
// specification, "OCI Content Descriptors").
type Descriptor struct {
	MediaType    MediaType         `json:"mediaType"`
	ArtifactType string            `json:"artifactType,omitempty"`
	Digest       Digest            `json:"digest"`
	Size         int64             `json:"size"`
	URLs         []string          `json:"urls,omitempty"`
	Annotations  map[string]string `json:"annotations,omitempty"`
	Data         []byte            `json:"data,omitempty"`
	Platform     *Platform         `json:"platform,omitempty"`
}

// DescriptorOf returns the descriptor of content.
func DescriptorOf(t MediaType, content []byte) Descriptor {
	return Descriptor{MediaType: t, Digest: DigestOf(content), Size: int64(len(content))}
}

// Platform is the operating system and architecture of an image (OCI image specification,
// "Image Index"). It is comparable when OSFeatures is empty.
type Platform struct {
	Architecture string   `json:"architecture"`
	OS           string   `json:"os"`
	OSVersion    string   `json:"os.version,omitempty"`
	OSFeatures   []string `json:"os.features,omitempty"`
	Variant      string   `json:"variant,omitempty"`
}

// DefaultPlatform returns the platform that is selected by default from an index (xpkg
// specification, "Indexes").
func DefaultPlatform() Platform { return Platform{OS: "linux", Architecture: "amd64"} }

// ParsePlatform parses "os/architecture" or "os/architecture/variant". It also accepts
// the form of older tools, "linux_amd64".
func ParsePlatform(s string) (Platform, error) {
	parts := strings.Split(strings.ReplaceAll(s, "_", "/"), "/")
	if len(parts) < 2 || len(parts) > 3 {
		return Platform{}, ErrInvalidReference.New(nil, "platform %q is not os/architecture", text.Clip(s)).
			WithDo("Write the platform as os/architecture, for example linux/arm64.")
	}
	for _, part := range parts {
		if part == "" || !isLowerAlnum(rune(part[0])) || strings.ContainsFunc(part, notPlatformRune) {
			return Platform{}, ErrInvalidReference.New(nil, "platform %q is not os/architecture", text.Clip(s)).
				WithDo("Write the platform as os/architecture, for example linux/arm64.")
		}
	}
	p := Platform{OS: parts[0], Architecture: parts[1]}
	if len(parts) == 3 {
		p.Variant = parts[2]
	}
	return p, nil
}

// IsZero reports whether p is the zero value.
func (p Platform) IsZero() bool { return p.OS == "" && p.Architecture == "" }

// String returns os/architecture, followed by the variant if there is one.
func (p Platform) String() string {
	s := p.OS + "/" + p.Architecture
	if p.Variant != "" {
		s += "/" + p.Variant
	}
	return s
}

// Satisfies reports whether an image for p can be used for want. Empty fields of want are
// not compared.
func (p Platform) Satisfies(want Platform) bool {
	return p.OS == want.OS && p.Architecture == want.Architecture &&
		(want.Variant == "" || p.Variant == want.Variant) &&
		(want.OSVersion == "" || p.OSVersion == want.OSVersion)
}

// unknown reports whether p is the platform of an attestation that a build tool added.
func (p Platform) unknown() bool { return p.OS == "unknown" || p.Architecture == "unknown" }

func notPlatformRune(r rune) bool {
	return !isLowerAlnum(r) && r != '.' && r != '-'
}
