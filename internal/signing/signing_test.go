package signing_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"os"
	"testing"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/signature"
	"github.com/xpkg-dev/xpkg/internal/signing"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

func encode(kind string, der []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func pkcs8(key any) []byte {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return encode("PRIVATE KEY", der, err)
}

func generate[K any](key K, err error) K {
	if err != nil {
		panic(err)
	}
	return key
}

func required(t *testing.T, key []byte, attestations ...v1beta1.Attestation) signature.Requirement {
	t.Helper()
	r, err := signature.NewRequirement(t.Context(), "", &v1beta1.CosignVerification{Authorities: []v1beta1.CosignAuthority{{
		Name: "key", Key: &v1beta1.KeyReference{}, Attestations: attestations,
	}}}, func(context.Context, v1beta1.SecretKeySelector) ([]byte, error) { return key, nil })
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Each kind of key in each encoding signs what the product verifies, for its image and its statement alone.
func TestSignedIsVerified(t *testing.T) {
	curve := generate(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	larger := generate(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	factors := generate(rsa.GenerateKey(rand.Reader, 2048))
	if err != nil {
		t.Fatal(err)
	}
	sec1, err := x509.MarshalECPrivateKey(curve)
	sec1PEM := encode("EC PRIVATE KEY", sec1, err)
	cosign, err := os.ReadFile("testdata/cosign.key")
	if err != nil {
		t.Fatal(err)
	}
	image, other := oci.DigestOf([]byte("image")), oci.DigestOf([]byte("other"))
	stranger := generate(signing.ReadKey(pkcs8(generate(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))), nil))
	sbom := v1beta1.Attestation{Name: "sbom", PredicateType: "cyclonedx"}
	for name, text := range map[string][]byte{
		"P-256": pkcs8(curve), "P-384": pkcs8(larger), "Ed25519": pkcs8(edwards), "RSA": pkcs8(factors), "SEC 1": sec1PEM,
		"PKCS #1": encode("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(factors), nil), "cosign": cosign,
	} {
		key, err := signing.ReadKey(text, func() (string, error) { return "secret", nil })
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		sign := generate(key.Bundle(image, signing.Statement{}))
		attest := generate(key.Bundle(image, signing.Statement{
			PredicateType: signature.PredicateType("cyclonedx"), Predicate: json.RawMessage(`{"components":[]}`),
		}))
		evidence := func(bundles ...[]byte) (e signature.Evidence) {
			for _, b := range bundles {
				e = append(e, signature.Item{Bundle: b})
			}
			return e
		}
		for what, tc := range map[string]struct {
			by   signature.Requirement
			d    oci.Digest
			have signature.Evidence
			want error
		}{
			"a signature":           {required(t, key.PublicPEM()), image, evidence(sign), nil},
			"both":                  {required(t, key.PublicPEM(), sbom), image, evidence(attest, sign), nil},
			"an attestation alone":  {required(t, key.PublicPEM()), image, evidence(attest), signature.ErrNotSigned},
			"without attestation":   {required(t, key.PublicPEM(), sbom), image, evidence(sign), signature.ErrNotSigned},
			"of another image":      {required(t, key.PublicPEM()), other, evidence(sign), signature.ErrNotTrusted},
			"by another key":        {required(t, stranger.PublicPEM()), image, evidence(sign), signature.ErrNotTrusted},
			"with another payload":  {required(t, key.PublicPEM()), image, evidence(forge(t, sign, attest)), signature.ErrNotTrusted},
			"with the hash SHA-512": {withHash(t, key.PublicPEM()), image, evidence(sign), hashError(name)},
		} {
			if _, _, err := tc.by.Verify("acme/x", tc.d, tc.have); !errors.Is(err, tc.want) {
				t.Errorf("%s, %s: %v, want %v", name, what, err, tc.want)
			}
		}
	}
}

// forge returns the bundle a with the payload of b and the signature of a.
func forge(t *testing.T, a, b []byte) []byte {
	t.Helper()
	var into, from map[string]any
	if err := errors.Join(json.Unmarshal(a, &into), json.Unmarshal(b, &from)); err != nil {
		t.Fatal(err)
	}
	signatures := from["dsseEnvelope"].(map[string]any)["signatures"]
	into["dsseEnvelope"].(map[string]any)["signatures"] = signatures
	return generate(json.Marshal(into))
}

// withHash requires signatures with SHA-512, which those of Ed25519 do not distinguish.
func withHash(t *testing.T, key []byte) signature.Requirement {
	t.Helper()
	r, err := signature.NewRequirement(t.Context(), "", &v1beta1.CosignVerification{Authorities: []v1beta1.CosignAuthority{{
		Name: "key", Key: &v1beta1.KeyReference{HashAlgorithm: "sha512"},
	}}}, func(context.Context, v1beta1.SecretKeySelector) ([]byte, error) { return key, nil })
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func hashError(name string) error {
	if name == "Ed25519" {
		return nil
	}
	return signature.ErrNotTrusted
}

// A file without a usable key is an error of the user, and so is a wrong password.
func TestKeysThatCannotSign(t *testing.T) {
	cosign, err := os.ReadFile("testdata/cosign.key")
	if err != nil {
		t.Fatal(err)
	}
	public, err := os.ReadFile("testdata/cosign.pub")
	if err != nil {
		t.Fatal(err)
	}
	missing := errors.New("no password")
	for name, tc := range map[string]struct {
		text     []byte
		password string
		err      error
	}{
		"nothing": {nil, "", nil}, "text": {[]byte("key"), "", nil}, "a public key": {public, "", nil},
		"a certificate": {encode("CERTIFICATE", []byte{1}, nil), "", nil},
		"half of a key": {cosign[:len(cosign)/2], "secret", nil}, "a wrong password": {cosign, "wrong", nil},
		"no password": {cosign, "", missing}, "damaged": {bytes.Replace(pkcs8(ed25519.NewKeyFromSeed(make([]byte, 32))), []byte("MC"), []byte("MD"), 1), "", nil},
	} {
		_, err := signing.ReadKey(tc.text, func() (string, error) { return tc.password, tc.err })
		if !errors.Is(err, signing.ErrKey) || tc.err != nil && !errors.Is(err, tc.err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzReadKey(f *testing.F) {
	f.Add(pkcs8(ed25519.NewKeyFromSeed(make([]byte, 32))))
	f.Add([]byte("-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\ne30=\n-----END ENCRYPTED SIGSTORE PRIVATE KEY-----\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if key, err := signing.ReadKey(text, func() (string, error) { return "x", nil }); err == nil {
			if _, err := key.Bundle(oci.DigestOf(nil), signing.Statement{}); err != nil {
				t.Error(err)
			}
		} else if !errors.Is(err, signing.ErrKey) {
			t.Error(err)
		}
	})
}
