package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// mediaTypeConfig is the type of the configuration of the artifacts under the tags of cosign.
const mediaTypeConfig oci.MediaType = "application/vnd.oci.image.config.v1+json"

// PushAttached pushes an artifact under the tag by which it belongs to a subject. Signatures and attestations, whose
// tags end with .sig and .att, are added to those that the tag has already: each layer is one of them.
func (r *Client) PushAttached(ctx context.Context, to oci.Reference, a oci.Artifact) error {
	if _, suffix, ok := oci.ParseArtifactTag(to.Tag); ok && (suffix == ".sig" || suffix == ".att") {
		both, err := r.joined(ctx, to, a)
		if err != nil || both == nil {
			return err
		}
		a = both
	}
	_, err := r.Push(ctx, to.WithDigest(oci.Digest{}), a)
	return err
}

// joined returns an artifact with the layers of the one under a tag, and with those of another one. It returns nil if
// the tag has all of them.
func (r *Client) joined(ctx context.Context, to oci.Reference, a oci.Artifact) (oci.Artifact, error) {
	there, err := r.Artifact(ctx, to.WithDigest(oci.Digest{}))
	if errors.Is(err, ErrTagNotFound) || errors.Is(err, ErrRepositoryNotFound) || errors.Is(err, oci.ErrManifestNotFound) {
		return a, nil
	}
	if err != nil {
		return nil, err
	}
	if there.Root().Digest == a.Root().Digest {
		return nil, nil
	}
	_, old, err := oci.ReadDocument(ctx, there, there.Root(), r.opts.Limits)
	if err != nil {
		return nil, err
	}
	_, next, err := oci.ReadDocument(ctx, a, a.Root(), r.opts.Limits)
	if err != nil || old.IsIndex() || next.IsIndex() {
		return a, err
	}
	layers := slices.Clone(old.Layers)
	for _, l := range next.Layers {
		if !slices.ContainsFunc(layers, func(o oci.Descriptor) bool {
			return o.Digest == l.Digest && reflect.DeepEqual(o.Annotations, l.Annotations)
		}) {
			layers = append(layers, l)
		}
	}
	if len(layers) == len(old.Layers) {
		return nil, nil
	}
	var ids []string
	for _, l := range layers {
		ids = append(ids, `"`+l.Digest.String()+`"`)
	}
	config := []byte(
		`{"architecture":"","os":"","rootfs":{"type":"layers","diff_ids":[` + strings.Join(ids, ",") + `]},"config":{}}`,
	)
	described := oci.DescriptorOf(mediaTypeConfig, config)
	raw, err := json.Marshal(oci.Document{
		SchemaVersion: 2, MediaType: oci.MediaTypeOCIManifest, Config: &described, Layers: layers,
		Annotations: old.Annotations,
	})
	if err != nil {
		return nil, err
	}
	out := joinedArtifact{
		root: oci.DescriptorOf(oci.MediaTypeOCIManifest, raw), small: map[oci.Digest][]byte{described.Digest: config},
		added: map[oci.Digest]bool{}, there: there, other: a,
	}
	out.small[out.root.Digest] = raw
	for _, l := range next.Layers {
		out.added[l.Digest] = true
	}
	return out, nil
}

// joinedArtifact has a manifest and a configuration of its own, and the layers of two artifacts.
type joinedArtifact struct {
	root         oci.Descriptor
	small        map[oci.Digest][]byte
	added        map[oci.Digest]bool
	there, other oci.Artifact
}

// Root implements [oci.Artifact].
func (j joinedArtifact) Root() oci.Descriptor { return j.root }

// Open implements [oci.Artifact].
func (j joinedArtifact) Open(ctx context.Context, d oci.Descriptor) (io.ReadCloser, error) {
	if content, ok := j.small[d.Digest]; ok {
		return io.NopCloser(bytes.NewReader(content)), nil
	}
	if j.added[d.Digest] {
		return j.other.Open(ctx, d)
	}
	return j.there.Open(ctx, d)
}
