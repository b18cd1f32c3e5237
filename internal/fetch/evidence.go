package fetch

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/xpkg-dev/xpkg/internal/signature"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

const (
	// maxItems limits the artifacts that are read for one image, and the signatures in each.
	maxItems = 64
	// maxItem limits the size of an item in bytes. Bills of materials can be large.
	maxItem = 4 << 20
	// evidenceTimeout limits the time for the evidence of one image.
	evidenceTimeout = 30 * time.Second
)

// collect calls accept with the evidence about a digest in the repository of a reference: the bundles that refer to it
// and, if accept refuses these, also what is under the tags of cosign. It returns the error of accept. It fails with
// [signature.ErrUnknown] if the registry does not tell, or if accept refuses and a part of the evidence cannot be read.
func collect(
	ctx context.Context, client *remote.Client, ref oci.Reference, accept func(signature.Evidence) error,
) error {
	ctx, cancel := context.WithTimeout(ctx, evidenceTimeout)
	defer cancel()
	evidence, unreadable, err := bundles(ctx, client, ref)
	if err != nil {
		return unknown(err, ref)
	}
	if err := accept(evidence); err == nil || !moreMayHelp(err) {
		return err
	}
	for _, suffix := range []string{".sig", ".att"} {
		tagged, err := tagged(ctx, client, ref, suffix)
		if err != nil {
			return unknown(err, ref)
		}
		evidence = append(evidence, tagged...)
	}
	if err := accept(evidence); !moreMayHelp(err) || unreadable == nil {
		return err
	}
	return unknown(unreadable, ref)
}

// moreMayHelp reports whether an image can be accepted with more evidence.
func moreMayHelp(err error) bool {
	return errors.Is(err, signature.ErrNotSigned) || errors.Is(err, signature.ErrNotTrusted)
}

func unknown(err error, ref oci.Reference) error {
	return signature.ErrUnknown.New(err, "the signatures of %s are unknown", ref)
}

// bundles returns the bundles that refer to a digest, and why others cannot be read. The types in the list are claims,
// and wrong in some registries, so the manifests decide.
func bundles(
	ctx context.Context, client *remote.Client, ref oci.Reference,
) (out signature.Evidence, unreadable error, err error) {
	found, err := client.CertainReferrers(ctx, ref)
	if errors.Is(err, remote.ErrRepositoryNotFound) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	isBundle := func(d oci.Descriptor) bool { return strings.HasPrefix(d.ArtifactType, signature.MediaTypeBundle) }
	slices.SortStableFunc(found, func(a, b oci.Descriptor) int {
		switch {
		case isBundle(a) == isBundle(b):
			return a.Digest.Compare(b.Digest)
		case isBundle(a):
			return -1
		}
		return 1
	})
	if len(found) > maxItems {
		unreadable = fmt.Errorf("%d artifacts refer to the image, and %d of them are read", len(found), maxItems)
		found = found[:maxItems]
	}
	for _, d := range found {
		bundles, err := bundlesIn(ctx, client, ref, d.Digest)
		switch {
		case ctx.Err() != nil:
			return nil, nil, ctx.Err()
		case err != nil:
			unreadable = fmt.Errorf("%s refers to the image and cannot be read: %w", d.Digest, err)
		}
		out = append(out, bundles...)
	}
	return out, unreadable, nil
}

// bundlesIn returns the bundles in an artifact. It has none unless it refers to the digest of the reference: any client
// can write the list of a registry without the referrers API.
func bundlesIn(
	ctx context.Context, client *remote.Client, ref oci.Reference, d oci.Digest,
) (signature.Evidence, error) {
	a, err := client.Artifact(ctx, ref.WithTag("").WithDigest(d))
	if errors.Is(err, oci.ErrManifestNotFound) {
		return nil, nil // It was deleted since the list, or the list is wrong.
	}
	if err != nil {
		return nil, err
	}
	_, doc, err := oci.ReadDocument(ctx, a, a.Root(), oci.Limits{})
	if err != nil || doc.IsIndex() || doc.Subject == nil || doc.Subject.Digest != ref.Digest {
		return nil, err
	}
	var out signature.Evidence
	for _, layer := range doc.Layers[:min(len(doc.Layers), maxItems)] {
		if !strings.HasPrefix(string(layer.MediaType), signature.MediaTypeBundle) {
			continue
		}
		data, err := oci.ReadSmall(ctx, a, layer, oci.Limits{Manifest: maxItem})
		if err != nil {
			return nil, err
		}
		out = append(out, signature.Item{Bundle: data})
	}
	return out, nil
}

// tagged returns the signatures or attestations under a tag of cosign.
func tagged(ctx context.Context, client *remote.Client, ref oci.Reference, suffix string) (signature.Evidence, error) {
	a, err := client.Artifact(ctx, ref.WithDigest(oci.Digest{}).WithTag(oci.ArtifactTag(ref.Digest, suffix)))
	if errors.Is(err, remote.ErrTagNotFound) || errors.Is(err, remote.ErrRepositoryNotFound) ||
		errors.Is(err, oci.ErrManifestNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	_, doc, err := oci.ReadDocument(ctx, a, a.Root(), oci.Limits{})
	if err != nil {
		return nil, err
	}
	var out signature.Evidence
	for _, layer := range doc.Layers[:min(len(doc.Layers), maxItems)] {
		isAttestation := layer.MediaType == signature.MediaTypeEnvelope
		if _, err := base64.StdEncoding.DecodeString(layer.Annotations[signature.AnnotationSignature]); err != nil ||
			!isAttestation && layer.MediaType != signature.MediaTypePayload {
			continue
		}
		data, err := oci.ReadSmall(ctx, a, layer, oci.Limits{Manifest: maxItem})
		if err != nil {
			return nil, err
		}
		out = append(out, signature.Item{
			Payload: data, IsAttestation: isAttestation && suffix == ".att", Annotations: layer.Annotations,
		})
	}
	return out, nil
}
