package archive

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ctxio"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/tarfile"
)

// The files of an OCI layout (OCI image specification, "Image Layout") and of the
// archive that `docker load` reads.
const (
	layoutFile      = "oci-layout"
	indexFile       = "index.json"
	blobsFolder     = "blobs/sha256"
	dockerManifests = "manifest.json"

	layoutContent = `{"imageLayoutVersion":"1.0.0"}`
)

// WriteOptions configures an archive.
type WriteOptions struct {
	// Name is a reference with a tag for tools that need one: `docker load` assigns it to
	// the image. It is not part of the content.
	Name string
}

// dockerManifest is an entry of manifest.json.
type dockerManifest struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// Write writes an artifact as a tar that is both an OCI layout, which keeps every byte
// and so the digest, and a docker save archive, which `docker load` and older tools read.
// For an index of several platforms, those tools see the image that Crossplane would
// choose. Equal artifacts have equal archives. Write verifies all content while it
// writes. After an error the output is incomplete, and the caller removes it.
func Write(ctx context.Context, w io.Writer, a oci.Artifact, opts WriteOptions, limits oci.Limits) error {
	limits = limits.WithDefaults()
	parts, err := list(ctx, a, limits)
	if err != nil {
		return err
	}
	manifests, err := dockerManifestOf(ctx, a, opts, limits)
	if err != nil {
		return err
	}
	index, err := layoutIndex(a.Root(), opts.Name)
	if err != nil {
		return err
	}
	tw := tar.NewWriter(w)
	for _, f := range []image.File{
		{Path: layoutFile, Data: []byte(layoutContent)}, {Path: indexFile, Data: index},
		{Path: dockerManifests, Data: manifests},
	} {
		if err := writeEntry(tw, f.Path, int64(len(f.Data)), bytes.NewReader(f.Data)); err != nil {
			return err
		}
	}
	for _, d := range parts {
		if err := writeBlob(ctx, tw, a, d); err != nil {
			return err
		}
	}
	if err := tw.Close(); err != nil {
		return fmt.Errorf("cannot write the archive: %w", err)
	}
	return nil
}

// list returns the descriptors of all content of an artifact, ordered by digest.
func list(ctx context.Context, a oci.Artifact, limits oci.Limits) ([]oci.Descriptor, error) {
	var parts []oci.Descriptor
	err := oci.Walk(ctx, a, limits, func(_ context.Context, d oci.Descriptor, _ []byte) error {
		parts = append(parts, d)
		return nil
	})
	slices.SortFunc(parts, func(a, b oci.Descriptor) int { return cmp.Compare(a.Digest.Hex(), b.Digest.Hex()) })
	return parts, err
}

// layoutIndex returns index.json with the descriptor of the root.
func layoutIndex(root oci.Descriptor, name string) ([]byte, error) {
	if name != "" {
		root.Annotations = map[string]string{refName: tagOf(name)}
	}
	data, err := json.Marshal(oci.Document{SchemaVersion: 2, MediaType: oci.MediaTypeOCIIndex, Manifests: []oci.Descriptor{
		root,
	}})
	if err != nil {
		return nil, fmt.Errorf("cannot write %s: %w", indexFile, err)
	}
	return data, nil
}

func tagOf(name string) string {
	ref, err := oci.ParseReference(name, oci.ParseOptions{DefaultRegistry: "docker.io"})
	if err != nil || ref.Tag == "" {
		return name
	}
	return ref.Tag
}

// dockerManifestOf returns manifest.json. It lists no image for an artifact that is not
// an image, such as an index of extensions.
func dockerManifestOf(ctx context.Context, a oci.Artifact, opts WriteOptions, limits oci.Limits) ([]byte, error) {
	entries := []dockerManifest{}
	_, _, doc, err := oci.FindImage(ctx, a, oci.Platform{}, limits)
	switch {
	case err == nil:
		entry := dockerManifest{Config: blobName(doc.Config.Digest), Layers: []string{}}
		if opts.Name != "" {
			entry.RepoTags = []string{opts.Name}
		}
		for _, layer := range doc.Layers {
			entry.Layers = append(entry.Layers, blobName(layer.Digest))
		}
		entries = append(entries, entry)
	case !errors.Is(err, oci.ErrEmptyIndex) && !errors.Is(err, oci.ErrPlatformNotFound) &&
		!errors.Is(err, oci.ErrNotAPackage):
		return nil, err
	}
	data, err := json.Marshal(entries)
	if err != nil {
		return nil, fmt.Errorf("cannot write %s: %w", dockerManifests, err)
	}
	return data, nil
}

func writeBlob(ctx context.Context, tw *tar.Writer, a oci.Artifact, d oci.Descriptor) (err error) {
	r, err := a.Open(ctx, d)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return writeEntry(tw, blobName(d.Digest), d.Size, oci.VerifyReader(ctxio.Reader(ctx, r), d))
}

func writeEntry(tw *tar.Writer, name string, size int64, r io.Reader) error {
	if err := tw.WriteHeader(tarfile.Header(name, size)); err != nil {
		return fmt.Errorf("cannot write the archive: %w", err)
	}
	if _, err := io.Copy(tw, r); err != nil {
		if errcode.Known(err) {
			return err
		}
		return fmt.Errorf("cannot write the archive: %w", err)
	}
	return nil
}

func blobName(d oci.Digest) string { return path.Join(blobsFolder, d.Hex()) }
