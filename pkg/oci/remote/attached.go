package remote

import (
	"context"
	"errors"
	"reflect"
	"slices"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/assembly"
)

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
	both, err := image.NewLayered(layers, old.Annotations)
	if err != nil {
		return nil, err
	}
	return &assembly.Assembly{Desc: both.Root(), Parts: []oci.Artifact{both, a, there}}, nil
}
