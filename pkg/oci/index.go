package oci

import (
	"fmt"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/text"
)

// ErrEmptyIndex is the code for an index without an image.
var ErrEmptyIndex = errcode.Code{
	Name: "EmptyIndex", Class: errcode.Invalid,
	Cause: "An image index refers to no image.",
	Fix:   "Publish the package again; an index must contain at least one image.",
}

// ErrPlatformNotFound is the code for an index of several images without one for the
// requested platform.
var ErrPlatformNotFound = errcode.Code{
	Name: "PlatformNotFound", Class: errcode.NotFound,
	Cause: "An image index offers several platforms, and the requested one is not among them.",
	Fix:   "Use one of the platforms in the message, or publish the package for linux/amd64 too.",
}

// ErrAmbiguousPlatform is the code for an index with two images for one
// platform.
var ErrAmbiguousPlatform = errcode.Code{
	Name: "AmbiguousPlatform", Class: errcode.Invalid,
	Cause: "An image index offers two different images for the same platform.",
	Fix:   "Publish the package again with one image for each platform.",
}

// attestationKey marks the manifests that build tools add beside images.
const attestationKey = "vnd.docker.reference.type"

// Choose returns the manifest of an index that is the package (xpkg specification, "Indexes"): a
// single manifest regardless of its platform, or the manifest for the platform if there are
// several. It ignores the extensions manifest and attestations. A zero platform means linux/amd64.
func (d *Document) Choose(platform Platform) (Descriptor, error) {
	if platform.IsZero() {
		platform = DefaultPlatform()
	}
	images := d.images()
	switch len(images) {
	case 0:
		return Descriptor{}, ErrEmptyIndex.New(nil, "the index has %d entries and no image among them", len(d.Manifests))
	case 1:
		return images[0], nil
	}
	matches := slices.DeleteFunc(slices.Clone(images), func(m Descriptor) bool {
		return m.Platform == nil || !m.Platform.Satisfies(platform)
	})
	if len(matches) == 0 {
		return Descriptor{},
			ErrPlatformNotFound.New(fmt.Errorf("it has %s", platforms(images)), "the index has no image for %s", platform)
	}
	return narrow(matches, platform)
}

// narrow selects among several images for one platform. It prefers the image without a variant and
// an OS version.
func narrow(matches []Descriptor, platform Platform) (Descriptor, error) {
	exact := slices.DeleteFunc(slices.Clone(matches), func(m Descriptor) bool {
		return m.Platform.Variant != platform.Variant || m.Platform.OSVersion != platform.OSVersion
	})
	if len(exact) > 0 {
		matches = exact
	}
	for _, m := range matches[1:] {
		if m.Digest != matches[0].Digest {
			return Descriptor{}, ErrAmbiguousPlatform.New(nil, "the index has %d images for %s", len(matches), platform)
		}
	}
	return matches[0], nil
}

// images returns the entries that can be the package or an index that contains it.
func (d *Document) images() []Descriptor {
	return slices.DeleteFunc(slices.Clone(d.Manifests), func(m Descriptor) bool {
		return m.IsExtensions() || m.IsAttestation() || !(m.MediaType.IsImage() || m.MediaType.IsIndex())
	})
}

// IsExtensions reports whether an index entry is the extensions manifest of third parties (xpkg
// specification, "Manifests"), which is annotated and has no platform.
func (d Descriptor) IsExtensions() bool {
	return d.Annotations[AnnotationKey] == AnnotationExtensions && (d.Platform == nil || d.Platform.IsZero())
}

// IsAttestation reports whether an index entry is the attestation that a build tool
// added beside an image.
func (d Descriptor) IsAttestation() bool {
	return d.Annotations[attestationKey] != "" || (d.Platform != nil && d.Platform.unknown())
}

func platforms(images []Descriptor) string {
	var names []string
	for _, m := range images {
		if m.Platform == nil {
			names = append(names, "one without a platform")
			continue
		}
		names = append(names, text.Clip(m.Platform.String()))
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}
