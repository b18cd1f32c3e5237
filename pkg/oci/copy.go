package oci

import "context"

// Destination is a place that an artifact can be copied to.
type Destination interface {
	// Write copies all content of an artifact, byte for byte, and returns the digest of
	// its root.
	Write(ctx context.Context, a Artifact) (Digest, error)
}

// Copy copies an artifact to a destination. Manifests are never encoded again, so
// digests, annotations and signatures stay valid.
func Copy(ctx context.Context, to Destination, from Artifact) (Digest, error) {
	return to.Write(ctx, from)
}
