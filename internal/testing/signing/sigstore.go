// Package signing signs images in tests: with keys, and with the certificate authority, transparency log and timestamp
// authority of an instance of Sigstore in the process of the test.
package signing

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"testing"
	"time"

	bundlev1 "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	commonv1 "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	dssev1 "github.com/sigstore/protobuf-specs/gen/pb-go/dsse"
	rekorv1 "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
	"github.com/sigstore/sigstore-go/pkg/tlog"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// Sign is the type of the predicate of a signature that is a bundle.
const Sign = "https://sigstore.dev/cosign/sign/v1"

// MediaTypeBundle is the media type and the artifact type of bundles.
const MediaTypeBundle = "application/vnd.dev.sigstore.bundle.v0.3+json"

// Sigstore is an instance of Sigstore.
type Sigstore struct{ ca *ca.VirtualSigstore }

// NewSigstore returns an instance with new keys.
func NewSigstore(t testing.TB) *Sigstore {
	t.Helper()
	s, err := ca.NewVirtualSigstore()
	check(t, err)
	return &Sigstore{s}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Root returns the trust root of the instance. Without a log, signatures need a timestamp.
func (s *Sigstore) Root(t testing.TB, log bool) []byte {
	t.Helper()
	logs := func(all map[string]*root.TransparencyLog) map[string]*root.TransparencyLog {
		out := map[string]*root.TransparencyLog{}
		for id, l := range all {
			raw, err := hex.DecodeString(id)
			check(t, err)
			next := *l
			next.ID, next.SignatureHashFunc, next.BaseURL = raw, l.HashFunc, "https://log.example.org"
			out[id] = &next
		}
		return out
	}
	rekor := logs(s.ca.RekorLogs())
	if !log {
		rekor = nil
	}
	trusted, err := root.NewTrustedRoot(
		root.TrustedRootMediaType01, s.ca.FulcioCertificateAuthorities(), logs(s.ca.CTLogs()),
		s.ca.TimestampingAuthorities(), rekor,
	)
	check(t, err)
	out, err := trusted.MarshalJSON()
	check(t, err)
	return out
}

// Statement returns a statement about an image.
func Statement(d oci.Digest, predicateType string) []byte {
	return fmt.Appendf(nil,
		`{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"sha256":%q}}],"predicateType":%q,"predicate":{}}`,
		d.Hex(), predicateType,
	)
}

// Payload returns what a signature under a tag of cosign signs.
func Payload(d oci.Digest) []byte {
	return fmt.Appendf(nil,
		`{"critical":{"identity":{"docker-reference":""},"image":{"docker-manifest-digest":%q},"type":"cosign container image signature"},"optional":null}`,
		d.String(),
	)
}

// Bundle returns a bundle with a statement, signed by an identity.
func (s *Sigstore) Bundle(t testing.TB, identity, issuer string, statement []byte) []byte {
	t.Helper()
	e, err := s.ca.AttestAtTime(identity, issuer, statement, time.Now().Add(5*time.Minute), true)
	check(t, err)
	p := s.proofOf(t, e)
	out, err := protojson.Marshal(&bundlev1.Bundle{
		MediaType: MediaTypeBundle,
		Content:   &bundlev1.Bundle_DsseEnvelope{DsseEnvelope: envelope(statement, p.signature)},
		VerificationMaterial: &bundlev1.VerificationMaterial{
			Content: &bundlev1.VerificationMaterial_Certificate{
				Certificate: &commonv1.X509Certificate{RawBytes: p.certificate},
			},
			TlogEntries: []*rekorv1.TransparencyLogEntry{p.entry},
			TimestampVerificationData: &bundlev1.TimestampVerificationData{
				Rfc3161Timestamps: []*commonv1.RFC3161SignedTimestamp{{SignedTimestamp: p.timestamp}},
			},
		},
	})
	check(t, err)
	return out
}

func envelope(statement, signature []byte) *dssev1.Envelope {
	return &dssev1.Envelope{
		PayloadType: "application/vnd.in-toto+json", Payload: statement, Signatures: []*dssev1.Signature{{Sig: signature}},
	}
}

// Tagged returns the annotations of a payload under the tag of signatures of cosign, signed by an identity.
func (s *Sigstore) Tagged(t testing.TB, identity, issuer string, payload []byte) map[string]string {
	t.Helper()
	e, err := s.ca.Sign(identity, issuer, payload)
	check(t, err)
	p := s.proofOf(t, e)
	stamp, err := json.Marshal(map[string][]byte{"SignedRFC3161Timestamp": p.timestamp})
	check(t, err)
	return map[string]string{
		"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(p.signature),
		"dev.sigstore.cosign/certificate": string(pem.EncodeToMemory(&pem.Block{
			Type: "CERTIFICATE", Bytes: p.certificate,
		})),
		"dev.sigstore.cosign/bundle":           logEntry(t, p.entry),
		"dev.sigstore.cosign/rfc3161timestamp": string(stamp),
	}
}

// proof is a signature with what proves who has made it, and when.
type proof struct {
	signature, certificate, timestamp []byte
	entry                             *rekorv1.TransparencyLogEntry
}

func (s *Sigstore) proofOf(t testing.TB, e *ca.TestEntity) proof {
	t.Helper()
	content, err := e.SignatureContent()
	check(t, err)
	material, err := e.VerificationContent()
	check(t, err)
	entries, err := e.TlogEntries()
	check(t, err)
	times, err := e.Timestamps()
	check(t, err)
	return proof{
		content.Signature(), material.Certificate().Raw, times[0], s.promised(t, entries[0].TransparencyLogEntry()),
	}
}

// promised completes a log entry with its kind and the promise of the log.
func (s *Sigstore) promised(t testing.TB, e *rekorv1.TransparencyLogEntry) *rekorv1.TransparencyLogEntry {
	t.Helper()
	var body struct{ APIVersion, Kind string }
	check(t, json.Unmarshal(e.CanonicalizedBody, &body))
	promise, err := s.ca.RekorSignPayload(tlog.RekorPayload{
		Body: e.CanonicalizedBody, IntegratedTime: e.IntegratedTime, LogIndex: e.LogIndex,
		LogID: hex.EncodeToString(e.LogId.KeyId),
	})
	check(t, err)
	e.KindVersion = &rekorv1.KindVersion{Kind: body.Kind, Version: body.APIVersion}
	e.InclusionPromise = &rekorv1.InclusionPromise{SignedEntryTimestamp: promise}
	return e
}

func logEntry(t testing.TB, e *rekorv1.TransparencyLogEntry) string {
	t.Helper()
	out, err := json.Marshal(map[string]any{
		"SignedEntryTimestamp": e.InclusionPromise.SignedEntryTimestamp,
		"Payload": map[string]any{
			"body": e.CanonicalizedBody, "integratedTime": e.IntegratedTime, "logIndex": e.LogIndex,
			"logID": hex.EncodeToString(e.LogId.KeyId),
		},
	})
	check(t, err)
	return string(out)
}
