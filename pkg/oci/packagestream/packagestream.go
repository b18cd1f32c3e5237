// Package packagestream returns the stream of objects of a package image, of any generation of the format.
//
// The stream of today's format is the file package.yaml. An image of the first generation has a folder .registry
// instead, and its stream is the package of that folder, converted by package firstgen. Everything that reads packages
// reads streams, so both kinds of image have the same pipeline.
package packagestream

import (
	"context"
	"errors"

	"github.com/xpkg-dev/xpkg/pkg/firstgen"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// Options configures Read.
type Options struct {
	// Limits bounds the content of the image, and Format the parsed files of the first generation.
	Limits oci.Limits
	Format xpkg.Limits
	// Reserve, if not nil, is called with a number of bytes before memory is allocated for them. It can block, and
	// each call replaces the one before it.
	Reserve func(bytes int64) error
}

// Content is the content of a package image.
type Content struct {
	// Stream is package.yaml, or the stream of the converted package.
	Stream []byte
	// First is the package of the first generation; nil for an image with package.yaml.
	First *firstgen.Package
}

// Read returns the stream of a package image; see [ReadContent].
func Read(ctx context.Context, a oci.Artifact, m oci.Manifest, opts Options) ([]byte, error) {
	c, err := ReadContent(ctx, a, m, opts)
	return c.Stream, err
}

// ReadContent returns the content of a package image. It verifies the digest of each layer before it parses the layer.
// Equal images have equal streams.
func ReadContent(ctx context.Context, a oci.Artifact, m oci.Manifest, opts Options) (Content, error) {
	stream, err := oci.PackageYAMLWithin(ctx, a, m, opts.Limits, opts.Reserve)
	if !errors.Is(err, oci.ErrNoPackageYAML) {
		return Content{Stream: stream}, err
	}
	pkg, folderErr := FirstGeneration(ctx, a, m, opts)
	switch {
	case errors.Is(folderErr, firstgen.ErrNoRegistryFolder):
		return Content{}, err
	case folderErr != nil:
		return Content{}, folderErr
	}
	c, err := firstgen.Convert(pkg, firstgen.ConvertOptions{})
	if err != nil {
		return Content{}, err
	}
	return Content{c.Stream(), pkg}, nil
}

// FirstGeneration returns the package in the folder .registry of an image. It fails with NoRegistryFolder for an image
// without one.
func FirstGeneration(ctx context.Context, a oci.Artifact, m oci.Manifest, opts Options) (*firstgen.Package, error) {
	files, err := oci.ReadRegistryFolder(ctx, a, m, opts.Limits, firstgen.IsRelevant, opts.Reserve)
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, firstgen.ErrNoRegistryFolder.New(nil, "manifest %s has no folder %s", m.Digest.Short(), firstgen.Folder)
	}
	return firstgen.ReadFiles(files, firstgen.Options{Limits: opts.Format})
}
