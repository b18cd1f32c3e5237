package certificates

import (
	"bytes"
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"slices"
)

const (
	pemCertificate = "CERTIFICATE"
	pemRSAKey      = "RSA PRIVATE KEY"
	pemKey         = "PRIVATE KEY"
	pemECKey       = "EC PRIVATE KEY"
)

// certificatesIn returns every certificate of a PEM text and skips all other blocks.
func certificatesIn(text []byte) []*x509.Certificate {
	var out []*x509.Certificate
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return out
		}
		if block.Type != pemCertificate {
			continue
		}
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			out = append(out, c)
		}
	}
}

// firstCertificate returns nil if there is no certificate.
func firstCertificate(text []byte) *x509.Certificate {
	if all := certificatesIn(text); len(all) > 0 {
		return all[0]
	}
	return nil
}

func certificatePEM(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: pemCertificate, Bytes: c.Raw})
}

// bundlePEM writes each certificate once, the oldest first. The order does not depend on their roles.
func bundlePEM(certificates []*x509.Certificate) []byte {
	var out []byte
	for _, c := range distinct(certificates) {
		out = append(out, certificatePEM(c)...)
	}
	return out
}

func distinct(certificates []*x509.Certificate) []*x509.Certificate {
	out := slices.Clone(certificates)
	slices.SortFunc(out, func(a, b *x509.Certificate) int {
		if c := a.NotBefore.Compare(b.NotBefore); c != 0 {
			return c
		}
		return bytes.Compare(a.Raw, b.Raw)
	})
	return slices.CompactFunc(out, (*x509.Certificate).Equal)
}

// fingerprint returns a text that identifies a set of certificates.
func fingerprint(certificates ...*x509.Certificate) string {
	h := sha256.New()
	for _, c := range distinct(certificates) {
		h.Write(c.Raw)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

var errNoKey = errors.New("the Secret contains no private key")

// privateKey parses a key in PKCS #8, PKCS #1 or SEC 1.
func privateKey(text []byte) (crypto.Signer, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errNoKey
	}
	var key any
	var err error
	switch block.Type {
	case pemRSAKey:
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case pemECKey:
		key, err = x509.ParseECPrivateKey(block.Bytes)
	default:
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	}
	if err != nil {
		return nil, err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, errNoKey
	}
	return signer, nil
}

// belongs reports whether a key matches a certificate.
func belongs(key crypto.Signer, c *x509.Certificate) bool {
	public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	return ok && public.Equal(c.PublicKey)
}
