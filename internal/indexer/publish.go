package indexer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// Publishing is the next state of an index.
type Publishing struct {
	// Former is the state that the catalog continues; nil for the first, or to start a new snapshot.
	Former *catalog.Reader
	// FormerCatalog is the content of Former.
	FormerCatalog *catalog.Catalog
	// Replaced is the state that the catalog replaces without its content, because it is damaged; zero if there is none,
	// or if Former is set.
	Replaced Replaced
	Catalog  catalog.Catalog
	// Created and Expires are the times of the configuration. An Expires of zero means never.
	Created, Expires time.Time
	// Snapshot asks for a new snapshot instead of a longer journal.
	Snapshot bool
}

// Replaced is a state of an index of which only the place among the states is known.
type Replaced struct {
	Sequence int64
	Digest   oci.Digest
}

// ReadReplaced returns the state of an index that cannot be opened. It is zero if its configuration cannot be read
// either; clients then have to forget the index.
func ReadReplaced(ctx context.Context, client *remote.Client, ref oci.Reference) Replaced {
	current, err := client.Resolve(ctx, ref)
	if err != nil {
		return Replaced{}
	}
	config, err := ReadConfig(ctx, client, ref.WithDigest(current.Digest))
	if err != nil || config.Sequence == math.MaxInt64 {
		return Replaced{}
	}
	return Replaced{config.Sequence, current.Digest}
}

// RenewalIsDue reports whether an index without changes has to be published again: because more than half of its time
// has passed, or because its time changes.
func RenewalIsDue(c catalog.Config, validFor time.Duration) bool {
	if c.Expires.IsZero() {
		return validFor > 0
	}
	valid := c.Expires.Sub(c.Created)
	return validFor > 0 && validFor != valid || time.Since(c.Created) > valid/2
}

// Encode returns the image of the next state: the former snapshot with a longer journal, or a new snapshot when that is
// due. It sets the sequence and the digest of the previous state.
func (p *Publishing) Encode() (catalog.Image, []catalog.Event, error) {
	c := p.Catalog
	c.Config.Created, c.Config.Expires = p.Created.UTC().Truncate(time.Second), p.Expires.UTC().Truncate(time.Second)
	if p.Former == nil {
		c.Config.Sequence, c.Config.Previous = p.Replaced.Sequence+1, p.Replaced.Digest
		image, err := catalog.Encode(&c)
		return image, nil, err
	}
	m := p.Former.Manifest()
	c.Config.Sequence, c.Config.Previous = p.Former.Config().Sequence+1, m.Digest
	if p.Snapshot {
		c.Config.Shards = 0
		image, err := catalog.Encode(&c)
		return image, nil, err
	}
	events := catalog.Diff(p.FormerCatalog, &c)
	open, err := p.Former.OpenJournal()
	if err != nil {
		return catalog.Image{}, nil, err
	}
	if len(events) > 0 || len(m.Journal) > 0 {
		image, extended, err := catalog.Append(&m, open, c.Config, events)
		if err != nil || extended {
			return image, events, err
		}
	}
	c.Config.Shards = 0
	image, err := catalog.Encode(&c)
	return image, events, err
}

// Publish pushes an image to a repository and moves the tag of the reference to it, last of all. It fails with
// ErrIndexChanged if the tag does not refer to the former state any more; without a former state, it replaces any.
// Layers of the former state that the repository lacks are read from it.
func Publish(
	ctx context.Context, client *remote.Client, ref oci.Reference, image *catalog.Image, former *catalog.Reader,
) error {
	if former != nil {
		if err := CheckCurrent(ctx, client, ref, former.Manifest().Digest); err != nil {
			return err
		}
	}
	_, err := client.Push(ctx, ref, newArtifact(image, former))
	return err
}

// Current returns the digest of the state that the tag of an index refers to; zero if there is no tag.
func Current(ctx context.Context, client *remote.Client, ref oci.Reference) (oci.Digest, error) {
	current, err := client.Resolve(ctx, ref)
	if IsAbsent(err) {
		return oci.Digest{}, nil
	}
	return current.Digest, err
}

// CheckCurrent fails with ErrIndexChanged if the tag of an index does not refer to a state; zero means that there is no
// tag.
func CheckCurrent(ctx context.Context, client *remote.Client, ref oci.Reference, expected oci.Digest) error {
	current, err := Current(ctx, client, ref)
	if err == nil && current != expected {
		err = ErrIndexChanged.New(nil, "%s changed while it was updated", ref)
	}
	return err
}

// maxConfigSize is the maximum size of the configuration of an index in bytes.
const maxConfigSize = 4 << 20

// ReadConfig returns the configuration of the state of an index with the digest of a reference, without the checks of
// [Client.Open].
func ReadConfig(ctx context.Context, client *remote.Client, ref oci.Reference) (catalog.Config, error) {
	_, config, err := readState(ctx, client, ref)
	return config, err
}

// readState returns the manifest and the configuration of the state with the digest of a reference.
func readState(
	ctx context.Context, client *remote.Client, ref oci.Reference,
) (catalog.Manifest, catalog.Config, error) {
	a, err := client.Artifact(ctx, ref)
	if err != nil {
		return catalog.Manifest{}, catalog.Config{}, err
	}
	raw, err := oci.ReadSmall(ctx, a, a.Root(), oci.Limits{Manifest: maxManifestSize})
	if err != nil {
		return catalog.Manifest{}, catalog.Config{}, err
	}
	m, err := catalog.ParseManifest(raw)
	if err != nil {
		return catalog.Manifest{}, catalog.Config{}, err
	}
	text, err := oci.ReadSmall(ctx, a, m.Config, oci.Limits{Manifest: maxConfigSize})
	if err != nil {
		return catalog.Manifest{}, catalog.Config{}, err
	}
	config, err := catalog.ParseConfig(text)
	return m, config, err
}

// IsAbsent reports whether an error means that a tag or its repository does not exist.
func IsAbsent(err error) bool {
	return errors.Is(err, remote.ErrTagNotFound) || errors.Is(err, remote.ErrRepositoryNotFound)
}

// artifact is an index as an OCI artifact.
type artifact struct {
	root   oci.Descriptor
	blobs  map[oci.Digest][]byte
	former *catalog.Reader
}

func newArtifact(image *catalog.Image, former *catalog.Reader) *artifact {
	m := &image.Manifest
	a := &artifact{
		root:  oci.Descriptor{MediaType: oci.MediaTypeOCIManifest, Digest: m.Digest, Size: int64(len(m.Raw))},
		blobs: map[oci.Digest][]byte{m.Digest: m.Raw}, former: former,
	}
	for _, b := range image.Blobs {
		a.blobs[b.Digest] = b.Data
	}
	return a
}

// Root implements [oci.Artifact].
func (a *artifact) Root() oci.Descriptor { return a.root }

// Open implements [oci.Artifact].
func (a *artifact) Open(_ context.Context, d oci.Descriptor) (io.ReadCloser, error) {
	data, known := a.blobs[d.Digest]
	if !known && a.former != nil {
		var err error
		if data, err = a.former.Blob(d); err != nil {
			return nil, err
		}
	} else if !known {
		return nil, oci.ErrBlobNotFound.New(nil, "the index does not contain %s", d.Digest)
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}
