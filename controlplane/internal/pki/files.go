package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
)

// load reads a pair and proves that the key belongs to the certificate.
func load(at Pair) (tls.Certificate, error) {
	return tls.LoadX509KeyPair(at.Certificate, at.Key)
}

// store writes the key before the certificate: a crash in between leaves a pair
// that does not load, and the next start makes it again.
func store(at Pair, der []byte, key *ecdsa.PrivateKey) error {
	if err := writeKey(at.Key, key); err != nil {
		return err
	}
	return Replace(at.Certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// ensureKey keeps a private key for ever: tokens of service accounts that were
// signed with it stay valid.
func ensureKey(path string) error {
	_, err := readKey(path)
	if err == nil {
		return nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("key of the service accounts: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	return writeKey(path, key)
}

func readKey(path string) (*ecdsa.PrivateKey, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(content)
	if block == nil {
		return nil, fmt.Errorf("%s is not a PEM file", path)
	}
	return x509.ParseECPrivateKey(block.Bytes)
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return Replace(path, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}))
}

// Replace writes a file that only its owner may read, and puts it in place at once:
// a reader sees the old content or the new, never a part.
func Replace(path string, content []byte) error {
	temporary := path + ".new"
	if err := os.WriteFile(temporary, content, 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}
