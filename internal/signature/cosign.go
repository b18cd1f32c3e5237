package signature

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"

	bundlev1 "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	commonv1 "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	dssev1 "github.com/sigstore/protobuf-specs/gen/pb-go/dsse"
	rekorv1 "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/verify"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// The annotations of the layers under the tags of cosign 1 and 2 (github.com/sigstore/cosign, specs/SIGNATURE_SPEC.md).
const (
	AnnotationSignature   = "dev.cosignproject.cosign/signature"
	annotationCertificate = "dev.sigstore.cosign/certificate"
	annotationLog         = "dev.sigstore.cosign/bundle"
	annotationTimestamp   = "dev.sigstore.cosign/rfc3161timestamp"
)

// The media types of evidence. That of bundles is followed by their version.
const (
	MediaTypeBundle                 = "application/vnd.dev.sigstore.bundle"
	MediaTypeEnvelope oci.MediaType = "application/vnd.dsse.envelope.v1+json"
	MediaTypePayload  oci.MediaType = "application/vnd.dev.cosign.simplesigning.v1+json"
)

// PayloadType is the type of what a signature under a tag signs.
const PayloadType = "cosign container image signature"

func (i Item) signature() []byte {
	out, _ := base64.StdEncoding.DecodeString(i.Annotations[AnnotationSignature])
	return out
}

// entity returns an item as a bundle, with the artifact that its signature must be of, and the type of its predicate.
// A payload under the tag of signatures must name the digest.
func (i Item) entity(d oci.Digest) (
	entity verify.SignedEntity, artifact verify.ArtifactPolicyOption, predicate string, err error,
) {
	image, err := hex.DecodeString(d.Hex())
	if err != nil {
		return nil, nil, "", err
	}
	ofImage := verify.WithArtifactDigest("sha256", image)
	switch {
	case i.Bundle != nil:
		b := &bundle.Bundle{}
		if err := b.UnmarshalJSON(i.Bundle); err != nil {
			return nil, nil, "", fmt.Errorf("read a bundle: %w", err)
		}
		return b, ofImage, predicateOf(b.GetDsseEnvelope().GetPayload()), nil
	case i.IsAttestation:
		var envelope struct {
			PayloadType string `json:"payloadType"`
			Payload     []byte `json:"payload"`
			Signatures  []struct {
				Sig []byte `json:"sig"`
			} `json:"signatures"`
		}
		if err := json.Unmarshal(i.Payload, &envelope); err != nil {
			return nil, nil, "", fmt.Errorf("read an attestation: %w", err)
		}
		out := &dssev1.Envelope{PayloadType: envelope.PayloadType, Payload: envelope.Payload}
		for _, s := range envelope.Signatures {
			out.Signatures = append(out.Signatures, &dssev1.Signature{Sig: s.Sig})
		}
		b, err := i.bundle(&bundlev1.Bundle{Content: &bundlev1.Bundle_DsseEnvelope{DsseEnvelope: out}})
		return b, ofImage, predicateOf(envelope.Payload), err
	}
	var payload struct {
		Critical struct {
			Image struct {
				Digest string `json:"docker-manifest-digest"`
			} `json:"image"`
			Type string `json:"type"`
		} `json:"critical"`
	}
	if err := json.Unmarshal(i.Payload, &payload); err != nil {
		return nil, nil, SignPredicate, fmt.Errorf("read a signature: %w", err)
	}
	if c := payload.Critical; c.Type != PayloadType || c.Image.Digest != d.String() {
		return nil, nil, SignPredicate, errors.New("it is a signature of something else")
	}
	sum := sha256.Sum256(i.Payload)
	b, err := i.bundle(&bundlev1.Bundle{Content: &bundlev1.Bundle_MessageSignature{
		MessageSignature: &commonv1.MessageSignature{
			MessageDigest: &commonv1.HashOutput{Algorithm: commonv1.HashAlgorithm_SHA2_256, Digest: sum[:]},
			Signature:     i.signature(),
		},
	}})
	return b, verify.WithArtifact(bytes.NewReader(i.Payload)), SignPredicate, err
}

// predicateOf returns the type of the predicate of a statement: that of a signature if there is no statement.
func predicateOf(statement []byte) string {
	if statement == nil {
		return SignPredicate
	}
	var s struct {
		PredicateType string `json:"predicateType"`
	}
	_ = json.Unmarshal(statement, &s)
	return s.PredicateType
}

// bundle adds the proofs in the annotations to a bundle.
func (i Item) bundle(b *bundlev1.Bundle) (*bundle.Bundle, error) {
	b.MediaType = "application/vnd.dev.sigstore.bundle+json;version=0.1"
	b.VerificationMaterial = &bundlev1.VerificationMaterial{}
	if text := i.Annotations[annotationCertificate]; text != "" {
		block, _ := pem.Decode([]byte(text))
		if block == nil {
			return nil, errors.New("its certificate is not in PEM")
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return nil, fmt.Errorf("its certificate: %w", err)
		}
		b.VerificationMaterial.Content = &bundlev1.VerificationMaterial_X509CertificateChain{
			X509CertificateChain: &commonv1.X509CertificateChain{Certificates: []*commonv1.X509Certificate{
				{RawBytes: block.Bytes},
			}},
		}
	} else {
		b.VerificationMaterial.Content = &bundlev1.VerificationMaterial_PublicKey{PublicKey: &commonv1.PublicKeyIdentifier{}}
	}
	if text := i.Annotations[annotationLog]; text != "" {
		entry, err := logEntry([]byte(text))
		if err != nil {
			return nil, fmt.Errorf("its log entry: %w", err)
		}
		b.VerificationMaterial.TlogEntries = []*rekorv1.TransparencyLogEntry{entry}
	}
	if text := i.Annotations[annotationTimestamp]; text != "" {
		var t struct{ SignedRFC3161Timestamp []byte }
		if err := json.Unmarshal([]byte(text), &t); err != nil {
			return nil, fmt.Errorf("its timestamp: %w", err)
		}
		b.VerificationMaterial.TimestampVerificationData = &bundlev1.TimestampVerificationData{
			Rfc3161Timestamps: []*commonv1.RFC3161SignedTimestamp{{SignedTimestamp: t.SignedRFC3161Timestamp}},
		}
	}
	return bundle.NewBundle(b)
}

// logEntry reads the entry of a transparency log, with the promise that it is included.
func logEntry(text []byte) (*rekorv1.TransparencyLogEntry, error) {
	var e struct {
		SignedEntryTimestamp []byte
		Payload              struct {
			Body           []byte `json:"body"`
			IntegratedTime int64  `json:"integratedTime"`
			LogIndex       int64  `json:"logIndex"`
			LogID          string `json:"logID"`
		}
	}
	if err := json.Unmarshal(text, &e); err != nil {
		return nil, err
	}
	var body struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := json.Unmarshal(e.Payload.Body, &body); err != nil {
		return nil, err
	}
	id, err := hex.DecodeString(e.Payload.LogID)
	if err != nil {
		return nil, err
	}
	return &rekorv1.TransparencyLogEntry{
		LogIndex: e.Payload.LogIndex, LogId: &commonv1.LogId{KeyId: id}, IntegratedTime: e.Payload.IntegratedTime,
		KindVersion:       &rekorv1.KindVersion{Kind: body.Kind, Version: body.APIVersion},
		InclusionPromise:  &rekorv1.InclusionPromise{SignedEntryTimestamp: e.SignedEntryTimestamp},
		CanonicalizedBody: e.Payload.Body,
	}, nil
}
