package indexer

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"slices"

	cosign "github.com/xpkg-dev/xpkg/internal/signature"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

// A signature of an index has the format of cosign ("simple signing"), so that `cosign verify --key` accepts it, too:
// an artifact with the tag sha256-DIGEST.sig, whose layers are payloads that name the digest of the manifest, each with
// its signature in an annotation.
const (
	maxSignatures = 20
	maxPayload    = 16 << 10
)

// payload is what a signature signs.
type payload struct {
	Critical struct {
		Identity struct {
			Reference string `json:"docker-reference"`
		} `json:"identity"`
		Image struct {
			Digest oci.Digest `json:"docker-manifest-digest"`
		} `json:"image"`
		Type string `json:"type"`
	} `json:"critical"`
	Optional map[string]string `json:"optional"`
}

// signatureSuffix is the end of every SignatureTag.
const signatureSuffix = ".sig"

// SignatureTag returns the tag of the signatures of a manifest.
func SignatureTag(d oci.Digest) string { return oci.ArtifactTag(d, signatureSuffix) }

// IsSignatureTag reports whether a tag is that of the signatures of a manifest.
func IsSignatureTag(tag string) bool {
	_, suffix, ok := oci.ParseArtifactTag(tag)
	return ok && suffix == signatureSuffix
}

// A Signer signs indexes with a private key.
type Signer struct{ key crypto.Signer }

// ParseSigner parses a private key in PEM (PKCS #8): ECDSA with the curve P-256, or Ed25519.
func ParseSigner(text []byte) (*Signer, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "PRIVATE KEY" {
		return nil, ErrIndexKey.New(nil, "the file contains no private key in PEM (PKCS #8)")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, ErrIndexKey.New(err, "cannot read the private key")
	}
	key, ok := parsed.(crypto.Signer)
	if !ok || !supported(key.Public()) {
		return nil, ErrIndexKey.New(nil, "the private key is neither ECDSA with the curve P-256 nor Ed25519")
	}
	return &Signer{key}, nil
}

// supported reports whether a key can verify signatures of indexes.
func supported(key crypto.PublicKey) bool {
	switch k := key.(type) {
	case *ecdsa.PublicKey:
		return k.Curve == elliptic.P256()
	case ed25519.PublicKey:
		return true
	}
	return false
}

// Push signs the manifest with a digest in the repository of a reference, and pushes the signature. It is pushed before
// the tag of the index moves, so that every state that clients see is signed.
func (s *Signer) Push(ctx context.Context, client *remote.Client, ref oci.Reference, d oci.Digest) error {
	a, err := s.artifact(ref, d)
	if err != nil {
		return err
	}
	_, err = client.Push(ctx, ref.WithTag(SignatureTag(d)), a)
	return err
}

// HasSigned reports whether a state of an index has a signature by the key.
func (s *Signer) HasSigned(ctx context.Context, client *remote.Client, ref oci.Reference, d oci.Digest) (bool, error) {
	found, err := (&Client{Remote: client}).signatures(ctx, ref, d)
	if errors.Is(err, ErrIndexSignature) || err != nil && isFinal(err) {
		return false, nil // There is no signature, or other content under its tag.
	}
	keys := Keys{s.key.Public()}
	return slices.ContainsFunc(found, func(made signature) bool { return keys.accept(made, d) }), err
}

// IsSigned reports whether a state of an index has a signature, by any key.
func IsSigned(ctx context.Context, client *remote.Client, ref oci.Reference, d oci.Digest) (bool, error) {
	signatures, err := Current(ctx, client, ref.WithTag(SignatureTag(d)))
	return !signatures.IsZero(), err
}

// artifact returns the artifact with the signature of a manifest.
func (s *Signer) artifact(ref oci.Reference, d oci.Digest) (oci.Artifact, error) {
	var p payload
	p.Critical.Identity.Reference, p.Critical.Image.Digest, p.Critical.Type = ref.Name(), d, cosign.PayloadType
	text, err := json.Marshal(p)
	if err != nil {
		return nil, ErrIndexKey.New(err, "cannot encode the signature")
	}
	signature, err := s.sign(text)
	if err != nil {
		return nil, ErrIndexKey.New(err, "cannot sign the index")
	}
	layer := oci.DescriptorOf(cosign.MediaTypePayload, text)
	layer.Annotations = map[string]string{cosign.AnnotationSignature: base64.StdEncoding.EncodeToString(signature)}
	a, err := image.NewLayered([]oci.Descriptor{layer}, nil, text)
	if err != nil {
		return nil, ErrIndexKey.New(err, "cannot encode the signature")
	}
	return a, nil
}

func (s *Signer) sign(text []byte) ([]byte, error) {
	if _, ok := s.key.(ed25519.PrivateKey); ok {
		return s.key.Sign(rand.Reader, text, crypto.Hash(0))
	}
	sum := sha256.Sum256(text)
	return s.key.Sign(rand.Reader, sum[:], crypto.SHA256)
}

// Keys are public keys of which one must have signed an index.
type Keys []crypto.PublicKey

// ParseKeys parses public keys in PEM (PKIX), one after another: ECDSA with the curve P-256, or Ed25519. With the keys
// before and after a change, clients accept both.
func ParseKeys(text []byte) (Keys, error) {
	var keys Keys
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		key, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			return nil, ErrIndexKey.New(err, "cannot read the public key")
		}
		if !supported(key) {
			return nil, ErrIndexKey.New(nil, "a public key is neither ECDSA with the curve P-256 nor Ed25519")
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, ErrIndexKey.New(nil, "the file contains no public key in PEM")
	}
	return keys, nil
}

// signature is a payload with its signature.
type signature struct {
	Payload   []byte `json:"payload"`
	Signature []byte `json:"signature"`
}

// accept reports whether one of the keys has signed the payload for a digest.
func (k Keys) accept(s signature, d oci.Digest) bool {
	var p payload
	if json.Unmarshal(s.Payload, &p) != nil || p.Critical.Image.Digest != d || p.Critical.Type != cosign.PayloadType {
		return false
	}
	sum := sha256.Sum256(s.Payload)
	for _, key := range k {
		switch key := key.(type) {
		case *ecdsa.PublicKey:
			if ecdsa.VerifyASN1(key, sum[:], s.Signature) {
				return true
			}
		case ed25519.PublicKey:
			if ed25519.Verify(key, s.Payload, s.Signature) {
				return true
			}
		}
	}
	return false
}

// signatureKind is the kind of the records with accepted signatures in the package cache, for offline use.
const signatureKind = "index-signatures"

// verify fails with ErrIndexSignature unless one of the keys has signed the state with a digest. Without keys, it
// accepts every state.
func (c *Client) verify(ctx context.Context, ref oci.Reference, d oci.Digest) error {
	if len(c.Keys) == 0 {
		return nil
	}
	var kept signature
	if record, err := c.Store.GetRecord(ctx, signatureKind, d.String()); err == nil &&
		json.Unmarshal(record.Data, &kept) == nil && c.Keys.accept(kept, d) {
		return nil
	}
	if c.Offline {
		return ErrIndexSignature.New(nil, "no signature of the state of %s was fetched on this machine", ref).
			WithDo("Run the command once without --offline.")
	}
	found, err := c.signatures(ctx, ref, d)
	if err != nil {
		return err
	}
	for _, s := range found {
		if !c.Keys.accept(s, d) {
			continue
		}
		text, err := json.Marshal(s)
		if err != nil {
			return err
		}
		return c.Store.PutRecord(store.Record{Kind: signatureKind, Name: d.String(), Data: text})
	}
	return ErrIndexSignature.New(nil, "none of %d signatures of %s is by a trusted key", len(found), ref)
}

// signatures returns the signatures of a state in its repository.
func (c *Client) signatures(ctx context.Context, ref oci.Reference, d oci.Digest) ([]signature, error) {
	a, err := c.Remote.Artifact(ctx, ref.WithTag(SignatureTag(d)))
	if IsAbsent(err) {
		return nil, ErrIndexSignature.New(nil, "the state %s of %s is not signed", d.Short(), ref)
	}
	if err != nil {
		return nil, err
	}
	_, doc, err := oci.ReadDocument(ctx, a, a.Root(), oci.Limits{})
	if err != nil {
		return nil, err
	}
	var out []signature
	for _, layer := range doc.Layers[:min(len(doc.Layers), maxSignatures)] {
		text, err := base64.StdEncoding.DecodeString(layer.Annotations[cosign.AnnotationSignature])
		if err != nil || layer.MediaType != cosign.MediaTypePayload || layer.Size > maxPayload {
			continue
		}
		signed, err := oci.ReadSmall(ctx, a, layer, oci.Limits{Manifest: maxPayload})
		if err != nil {
			return nil, err
		}
		out = append(out, signature{bytes.Clone(signed), text})
	}
	return out, nil
}
