package oci

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

// ArchiveOptions changes what is written beside the content.
type ArchiveOptions struct {
	// Name is a reference with a tag for tools that want one: `docker load` gives
	// the image this name. It is not part of the content.
	Name string
}

// dockerManifest is an entry of manifest.json.
type dockerManifest struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// WriteArchive writes an artifact as a tar that is two things at once: an OCI
// layout, which keeps every byte and so the digest, and the archive that
// `docker load` and tools of the same age read. For an index of several platforms
// such tools see the image that Crossplane would choose. Equal artifacts give
// equal bytes. All content is verified as it is written; when that fails, what
// was written is of no use and the caller removes it.
func WriteArchive(ctx context.Context, w io.Writer, a Artifact, opts ArchiveOptions, limits Limits) error {
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
	for _, f := range []LayerFile{
		{Path: layoutFile, Data: []byte(layoutContent)}, {Path: indexFile, Data: index}, {Path: dockerManifests, Data: manifests},
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

// list gives everything that an artifact is made of, in the order of the digests.
func list(ctx context.Context, a Artifact, limits Limits) ([]Descriptor, error) {
	var parts []Descriptor
	err := walk(ctx, a, limits, func(_ context.Context, d Descriptor, _ []byte) error {
		parts = append(parts, d)
		return nil
	})
	slices.SortFunc(parts, func(a, b Descriptor) int { return cmp.Compare(a.Digest.Hex(), b.Digest.Hex()) })
	return parts, err
}

// layoutIndex is index.json, which names the root.
func layoutIndex(root Descriptor, name string) ([]byte, error) {
	if name != "" {
		root.Annotations = map[string]string{refName: tagOf(name)}
	}
	data, err := json.Marshal(Document{SchemaVersion: 2, MediaType: MediaTypeOCIIndex, Manifests: []Descriptor{root}})
	if err != nil {
		return nil, fmt.Errorf("cannot write %s: %w", indexFile, err)
	}
	return data, nil
}

func tagOf(name string) string {
	ref, err := ParseReference(name, ParseOptions{DefaultRegistry: dockerHub})
	if err != nil || ref.Tag == "" {
		return name
	}
	return ref.Tag
}

// dockerManifestOf is manifest.json. An artifact that is no image at all, such as
// an index of extensions, has none to list.
func dockerManifestOf(ctx context.Context, a Artifact, opts ArchiveOptions, limits Limits) ([]byte, error) {
	entries := []dockerManifest{}
	_, _, doc, err := chooseImage(ctx, a, Platform{}, limits)
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
	case !ErrEmptyIndex.Is(err) && !ErrPlatformNotFound.Is(err) && !ErrNotAPackage.Is(err):
		return nil, err
	}
	data, err := json.Marshal(entries)
	if err != nil {
		return nil, fmt.Errorf("cannot write %s: %w", dockerManifests, err)
	}
	return data, nil
}

func writeBlob(ctx context.Context, tw *tar.Writer, a Artifact, d Descriptor) (err error) {
	r, err := a.Open(ctx, d)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return writeEntry(tw, blobName(d.Digest), d.Size, verifyReader(contextReader{ctx, r}, d))
}

func writeEntry(tw *tar.Writer, name string, size int64, r io.Reader) error {
	if err := tw.WriteHeader(tarHeader(name, size)); err != nil {
		return fmt.Errorf("cannot write the archive: %w", err)
	}
	if _, err := io.Copy(tw, r); err != nil {
		if failureOf(err) {
			return err
		}
		return fmt.Errorf("cannot write the archive: %w", err)
	}
	return nil
}

func blobName(d Digest) string { return path.Join(blobsFolder, d.Hex()) }
