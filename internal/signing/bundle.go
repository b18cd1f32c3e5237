package signing

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	bundlev1 "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	commonv1 "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	dssev1 "github.com/sigstore/protobuf-specs/gen/pb-go/dsse"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/xpkg-dev/xpkg/internal/signature"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// A Statement is what is stated about an image: that it is signed, or an attestation.
type Statement struct {
	// PredicateType is the type of the predicate; empty for a signature.
	PredicateType string
	// Predicate is a JSON object; empty for a signature.
	Predicate json.RawMessage
}

// The types of a statement and of its envelope (github.com/in-toto/attestation, spec/v1).
const (
	statementType = "https://in-toto.io/Statement/v1"
	envelopeType  = "application/vnd.in-toto+json"
)

const (
	mediaTypeBundle   = signature.MediaTypeBundle + ".v0.3+json"
	annotationContent = "dev.sigstore.bundle.content"
	annotationType    = "dev.sigstore.bundle.predicateType"
)

func (s Statement) predicateType() string {
	if s.PredicateType == "" {
		return signature.SignPredicate
	}
	return s.PredicateType
}

// Bundle returns a Sigstore bundle with a statement about the content with a digest, in JSON.
func (k *Key) Bundle(d oci.Digest, s Statement) ([]byte, error) {
	type subject struct {
		Digest map[string]string `json:"digest"`
	}
	predicate := s.Predicate
	if len(predicate) == 0 {
		predicate = json.RawMessage("{}")
	}
	statement, err := json.Marshal(struct {
		Type          string          `json:"_type"`
		Subject       []subject       `json:"subject"`
		PredicateType string          `json:"predicateType"`
		Predicate     json.RawMessage `json:"predicate"`
	}{statementType, []subject{{map[string]string{"sha256": d.Hex()}}}, s.predicateType(), predicate})
	if err != nil {
		return nil, fmt.Errorf("encode a statement: %w", err)
	}
	// The encoding of DSSE (github.com/secure-systems-lab/dsse, protocol.md).
	encoded := fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(envelopeType), envelopeType, len(statement), statement)
	made, err := k.signer.SignMessage(bytes.NewReader(encoded))
	if err != nil {
		return nil, ErrKey.New(err, "cannot sign with the private key")
	}
	return protojson.Marshal(&bundlev1.Bundle{
		MediaType: mediaTypeBundle,
		Content: &bundlev1.Bundle_DsseEnvelope{DsseEnvelope: &dssev1.Envelope{
			Payload: statement, PayloadType: envelopeType, Signatures: []*dssev1.Signature{{Sig: made}},
		}},
		VerificationMaterial: &bundlev1.VerificationMaterial{Content: &bundlev1.VerificationMaterial_PublicKey{
			PublicKey: &commonv1.PublicKeyIdentifier{Hint: k.hint},
		}},
	})
}

// Attach signs a statement about an image and pushes the bundle, as an artifact that refers to the image, to the
// repository of a reference. The image itself may be pushed afterwards.
func (k *Key) Attach(
	ctx context.Context, client *remote.Client, ref oci.Reference, about oci.Descriptor, s Statement,
) (oci.Digest, error) {
	bundle, err := k.Bundle(about.Digest, s)
	if err != nil {
		return oci.Digest{}, err
	}
	// As cosign 3 writes it.
	a, err := image.NewReferrer(about, mediaTypeBundle, mediaTypeBundle, bundle, map[string]string{
		annotationContent: "dsse-envelope", annotationType: s.predicateType(),
	})
	if err != nil {
		return oci.Digest{}, err
	}
	return client.Attach(ctx, ref.WithTag(""), a)
}
