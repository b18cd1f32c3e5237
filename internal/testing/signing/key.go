package signing

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"fmt"
	"testing"

	bundlev1 "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	commonv1 "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
)

// Key is a private key.
type Key struct {
	signer signature.Signer
	public crypto.PublicKey
}

// NewKey returns a new key of a kind: p256, p384, ed25519 or rsa.
func NewKey(t testing.TB, kind string, hash crypto.Hash) *Key {
	t.Helper()
	var private crypto.Signer
	var err error
	switch kind {
	case "p256":
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "p384":
		private, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case "ed25519":
		_, private, err = ed25519.GenerateKey(rand.Reader)
	case "rsa":
		private, err = rsa.GenerateKey(rand.Reader, 2048)
	default:
		t.Fatalf("there is no kind %q", kind)
	}
	check(t, err)
	signer, err := signature.LoadSigner(private, hash)
	check(t, err)
	return &Key{signer, private.Public()}
}

// PEM returns the public key.
func (k *Key) PEM(t testing.TB) []byte {
	t.Helper()
	out, err := cryptoutils.MarshalPublicKeyToPEM(k.public)
	check(t, err)
	return out
}

// Required returns the requirement of a signature with the key that a value of a Secret contains.
func Required(secret, value string) *v1beta1.ImageVerification {
	return &v1beta1.ImageVerification{Provider: v1beta1.Cosign, Cosign: &v1beta1.CosignVerification{
		Authorities: []v1beta1.CosignAuthority{{Name: value, Key: &v1beta1.KeyReference{
			SecretRef: v1beta1.SecretKeySelector{Name: secret, Key: value}, HashAlgorithm: "sha256",
		}}},
	}}
}

func (k *Key) sign(t testing.TB, message []byte) []byte {
	t.Helper()
	out, err := k.signer.SignMessage(bytes.NewReader(message))
	check(t, err)
	return out
}

// envelope returns the signature of a statement in an envelope, as of DSSE.
func (k *Key) envelope(t testing.TB, statement []byte) []byte {
	t.Helper()
	const kind = "application/vnd.in-toto+json"
	return k.sign(t, fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(kind), kind, len(statement), statement))
}

// Bundle returns a bundle with a statement, signed with the key.
func (k *Key) Bundle(t testing.TB, statement []byte) []byte {
	t.Helper()
	out, err := protojson.Marshal(&bundlev1.Bundle{
		MediaType: MediaTypeBundle,
		Content:   &bundlev1.Bundle_DsseEnvelope{DsseEnvelope: envelope(statement, k.envelope(t, statement))},
		VerificationMaterial: &bundlev1.VerificationMaterial{Content: &bundlev1.VerificationMaterial_PublicKey{
			PublicKey: &commonv1.PublicKeyIdentifier{Hint: "key"},
		}},
	})
	check(t, err)
	return out
}

// Tagged returns the annotations of a payload under the tag of signatures of cosign.
func (k *Key) Tagged(t testing.TB, payload []byte) map[string]string {
	t.Helper()
	return map[string]string{
		"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(k.sign(t, payload)),
	}
}

// Envelope returns an attestation as it is under a tag of cosign.
func (k *Key) Envelope(t testing.TB, statement []byte) []byte {
	t.Helper()
	return fmt.Appendf(nil,
		`{"payloadType":"application/vnd.in-toto+json","payload":%q,"signatures":[{"keyid":"","sig":%q}]}`,
		base64.StdEncoding.EncodeToString(statement), base64.StdEncoding.EncodeToString(k.envelope(t, statement)),
	)
}
