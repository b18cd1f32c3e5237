package signing

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"errors"

	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
)

// leastRSA is the least size of an RSA key, in bits.
const leastRSA = 2048

// Key is a private key.
type Key struct {
	signer signature.Signer
	// public is the public key in PEM.
	public []byte
	// hint is the digest of the public key, by which verifiers find it.
	hint string
}

// ReadKey reads a private key in PEM: ECDSA, Ed25519 or RSA, as PKCS #8, PKCS #1 or SEC 1, or encrypted with a password
// by cosign. It signs with SHA-256, which is the default of verifiers. Password is called for an encrypted key. It
// fails with ErrKey.
func ReadKey(text []byte, password func() (string, error)) (*Key, error) {
	private, err := cryptoutils.UnmarshalPEMToPrivateKey(text, func(bool) ([]byte, error) {
		typed, err := password()
		return []byte(typed), err
	})
	if err != nil {
		return nil, ErrKey.New(err, "cannot read the private key")
	}
	signer, ok := private.(crypto.Signer)
	if !ok {
		return nil, ErrKey.New(errors.New("it cannot sign"), "cannot read the private key")
	}
	if k, ok := private.(*rsa.PrivateKey); ok && k.N.BitLen() < leastRSA {
		return nil, ErrKey.New(nil, "the private key has %d bits, at least %d are needed", k.N.BitLen(), leastRSA)
	}
	out := &Key{}
	if out.signer, err = signature.LoadSigner(private, crypto.SHA256); err != nil {
		return nil, ErrKey.New(err, "cannot use the private key")
	}
	if out.public, err = cryptoutils.MarshalPublicKeyToPEM(signer.Public()); err != nil {
		return nil, ErrKey.New(err, "cannot use the private key")
	}
	der, err := cryptoutils.MarshalPublicKeyToDER(signer.Public())
	if err != nil {
		return nil, ErrKey.New(err, "cannot use the private key")
	}
	sum := sha256.Sum256(der)
	out.hint = base64.StdEncoding.EncodeToString(sum[:])
	return out, nil
}

// PublicPEM returns the public key.
func (k *Key) PublicPEM() []byte { return k.public }
