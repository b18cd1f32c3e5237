package indexer

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// newKey returns a private and a public key in PEM.
func newKey(t *testing.T, private crypto.Signer) (signer, public []byte) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	pub, err := x509.MarshalPKIXPublicKey(private.Public())
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: pub})
}

func newKeys(t *testing.T) map[string]crypto.Signer {
	t.Helper()
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]crypto.Signer{"ecdsa": curve, "ed25519": edwards}
}

func TestOnlyAnIndexThatATrustedKeyHasSignedIsUsed(t *testing.T) {
	for name, private := range newKeys(t) {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			s.push(t, "one", "v1.0.0", true, "Bucket")
			m, ref := newMachine(t, nil), s.ref("index", "main")
			own, public := newKey(t, private)
			otherKey, other := newKey(t, newKeys(t)[name])
			signer, err := ParseSigner(own)
			if err != nil {
				t.Fatal(err)
			}
			first := publishAt(t, m, ref, build(t, m, s.config("one")), nil, day(1), time.Time{})
			open := func(offline bool, keys ...[]byte) error {
				t.Helper()
				client := m.client()
				client.Offline = offline
				if client.Keys, err = ParseKeys(slices.Concat(keys...)); err != nil {
					t.Fatal(err)
				}
				_, err := client.Open(t.Context(), ref)
				return err
			}
			if err := open(false, public); !errors.Is(err, ErrIndexSignature) {
				t.Errorf("an index without a signature: %v", err)
			}
			signed := func() bool {
				t.Helper()
				signed, err := signer.HasSigned(t.Context(), m.Remote, ref, first.Manifest().Digest)
				if err != nil {
					t.Fatal(err)
				}
				return signed
			}
			if signed() {
				t.Error("an index without a signature is signed")
			}
			if foreign, err := ParseSigner(otherKey); err != nil {
				t.Fatal(err)
			} else if err := foreign.Push(t.Context(), m.Remote, ref, first.Manifest().Digest); err != nil {
				t.Fatal(err)
			}
			if signed() {
				t.Error("the signature of another key is one of the key")
			}
			if err := signer.Push(t.Context(), m.Remote, ref, first.Manifest().Digest); err != nil {
				t.Fatal(err)
			}
			if !signed() {
				t.Error("a signed index has no signature of the key")
			}
			if err := open(true, public); !errors.Is(err, ErrIndexSignature) {
				t.Errorf("a signature that was never fetched, offline: %v", err)
			}
			if err := open(false, other, public); err != nil {
				t.Errorf("a signed index with two trusted keys: %v", err)
			}
			if err := open(false, other); !errors.Is(err, ErrIndexSignature) {
				t.Errorf("an index that another key has signed: %v", err)
			}
			if err := open(true, public); err != nil {
				t.Errorf("a signed index offline: %v", err)
			}

			s.push(t, "one", "v1.1.0", true, "Bucket", "Role")
			second := publishAt(t, m, ref, build(t, m, s.config("one")), first, day(2), time.Time{})
			if err := open(false, public); !errors.Is(err, ErrIndexSignature) {
				t.Errorf("a new state without a signature: %v", err)
			}
			replayed, err := signer.artifact(ref, first.Manifest().Digest)
			if err != nil {
				t.Fatal(err)
			}
			s.pushArtifact(t, ref.WithTag(SignatureTag(second.Manifest().Digest)), replayed)
			if err := open(false, public); !errors.Is(err, ErrIndexSignature) {
				t.Errorf("the signature of the former state: %v", err)
			}
			if err := signer.Push(t.Context(), m.Remote, ref, second.Manifest().Digest); err != nil {
				t.Fatal(err)
			}
			if err := open(false, public); err != nil {
				t.Errorf("a new state with a signature: %v", err)
			}
		})
	}
}

func TestKeysThatCannotSignAnIndexAreRefused(t *testing.T) {
	large, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	private, public := newKey(t, large)
	own, ownPublic := newKey(t, newKeys(t)["ecdsa"])
	for name, text := range map[string][]byte{
		"nothing": nil, "no PEM": []byte("key"), "another curve": private, "a public key": ownPublic,
		"a damaged key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("key")}),
	} {
		if _, err := ParseSigner(text); !errors.Is(err, ErrIndexKey) {
			t.Errorf("%s as a private key: %v", name, err)
		}
	}
	for name, text := range map[string][]byte{
		"nothing": nil, "another curve": public, "a private key": own, "one of two": slices.Concat(ownPublic, public),
	} {
		if _, err := ParseKeys(text); !errors.Is(err, ErrIndexKey) {
			t.Errorf("%s as public keys: %v", name, err)
		}
	}
}

// FuzzSignature checks that no payload and no signature other than those of the key are accepted.
func FuzzSignature(f *testing.F) {
	private := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	signer, keys := &Signer{private}, Keys{private.Public()}
	d := oci.DigestOf([]byte("state"))
	a, err := signer.artifact(oci.MustParseReference("registry.example.org/index:main"), d)
	if err != nil {
		f.Fatal(err)
	}
	if err := oci.Walk(f.Context(), a, oci.Limits{}, func(ctx context.Context, at oci.Descriptor, _ []byte) error {
		r, err := a.Open(ctx, at)
		if err != nil {
			return err
		}
		blob, err := io.ReadAll(r)
		f.Add(blob, blob)
		return err
	}); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, payload, text []byte) {
		if keys.accept(signature{payload, text}, d) && !ed25519.Verify(private.Public().(ed25519.PublicKey), payload, text) {
			t.Errorf("accepted: %q %q", payload, text)
		}
	})
}
